import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import {
  WatchTransfersRequestSchema,
  type WatchTransfersResponse,
  WatchTransfersResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../../../src/errors.js";
import { createGrpcClient } from "../support/grpc-client.js";
import {
  envelope,
  openHttp2,
  openRawSocket,
  post,
  postJson,
  readStream,
  sendHttp1,
  sendHttp2,
} from "../support/raw-client.js";
import {
  bookmarkEvent,
  createControlledWatch,
  transferEvent,
  WATCH_GET_PATH,
  WATCH_PATH,
  type WatchOperation,
  type WatchStream,
} from "../support/stream-contract.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

// Streams of a mounted operation over gRPC, gRPC-Web and Connect, on the fast path and by Connect's adapter.

const request = create(WatchTransfersRequestSchema, { transferId: ["1", "2"], network: "goerli" });
const BINARY = envelope(toBinary(WatchTransfersRequestSchema, request));
const JSON_BODY = envelope(Buffer.from('{"transferId":["1","2"],"network":"goerli"}'));

/** An operation that does what the network of its request says. */
const scripted =
  (work: (stream: WatchStream) => void): WatchOperation =>
  ({ transferId, network }, stream, context) => {
    context.setResponseMetadata({ source: "chain" });
    context.addLogFields({ watched: `${transferId.join()} ${network}` });
    work(stream);
    return { onReady() {}, onDrain() {}, onEnd() {} };
  };

const works: Readonly<Record<string, (stream: WatchStream) => void>> = {
  "messages and a complete end"(stream) {
    stream.send(transferEvent("t1", "é".repeat(900)));
    stream.send(bookmarkEvent("t2"));
    stream.end();
  },
  "no message and a complete end": (stream) => stream.end(),
  "an interruption after a bookmark"(stream) {
    stream.send(bookmarkEvent("t1"));
    stream.interrupt();
  },
  "an error before the first message"() {
    throw new ServiceError("INVALID_PARAMETER", "é is wrong", { field: "transferId" });
  },
  "an error after a message"(stream) {
    stream.send(bookmarkEvent("t1"));
    stream.end(new ServiceError("OVERLOADED", "too many", { retryAfterSeconds: 3 }));
  },
  "an internal error"(stream) {
    stream.send(bookmarkEvent("t1"));
    stream.end(new TypeError("secret"));
  },
};
const forms = [
  ["gRPC over HTTP/2", sendHttp2, "application/grpc", BINARY],
  ["gRPC-Web over HTTP/2", sendHttp2, "application/grpc-web+proto", BINARY],
  ["gRPC-Web over HTTP/1.1", sendHttp1, "application/grpc-web+proto", BINARY],
  ["Connect with JSON over HTTP/1.1", sendHttp1, "application/connect+json", JSON_BODY],
  ["Connect with binary over HTTP/2", sendHttp2, "application/connect+proto", BINARY],
] as const;

describe.each(Object.entries(works))("%s", (_, work) => {
  test.each(forms)("%s: both paths send equal responses, and log equal lines", async (__, send, type, body) => {
    const outcomes = await Promise.all(
      [true, false].map(async (fastPaths) => {
        const server = await startTestServer({ fastPaths, watch: scripted(work) });
        const response = await send(server.port, WATCH_PATH, post(type, body, { "x-request-id": "mine" }));
        const lines = (await server.logged(1)).map(({ durationMs: ___, ...line }) => line);
        return { ...response, headers: { ...response.headers, date: "" }, lines };
      }),
    );
    expect(outcomes[0]).toEqual(outcomes[1]);
    expect(outcomes[0]?.lines).toMatchObject([{ watched: "1,2 goerli", messages: expect.any(Number) }]);
  });
});

describeOnBothPaths(() => {
  function watchWithGrpcJs(port: number) {
    const call = createGrpcClient(port).makeServerStreamRequest(
      WATCH_PATH,
      (value: typeof request) => Buffer.from(toBinary(WatchTransfersRequestSchema, value)),
      (bytes): WatchTransfersResponse => fromBinary(WatchTransfersResponseSchema, bytes),
      request,
      new Metadata(),
    );
    const messages: WatchTransfersResponse[] = [];
    call.on("data", (message: WatchTransfersResponse) => messages.push(message));
    const ended = new Promise<number>((resolve) => {
      call.on("error", ({ code }: { code: number }) => resolve(code));
      call.on("end", () => resolve(0));
    });
    return { call, messages, ended };
  }

  test("grpc-js reads messages as they are sent, and the end", async () => {
    const watch = createControlledWatch();
    const { port } = await startTestServer({ watch: watch.operation });
    const { call, messages, ended } = watchWithGrpcJs(port);
    const { stream } = await watch.next();
    for (const token of ["t1", "t2"]) {
      const received = once(call, "data");
      stream.send(transferEvent(token, token));
      await received;
    }
    stream.end();
    expect(await ended).toBe(0);
    expect(messages.map(({ resumeToken }) => resumeToken)).toEqual(["t1", "t2"]);
  });

  test("the caller's own deadline ends a stream with DEADLINE_EXCEEDED", async () => {
    const watch = createControlledWatch();
    const { port, logged } = await startTestServer({ watch: watch.operation });
    const headers = { "content-type": "application/grpc", "grpc-timeout": "60m", te: "trailers" };
    const stream = openHttp2(port).request({ ":method": "POST", ":path": WATCH_PATH, ...headers });
    stream.end(BINARY);
    const { events } = await watch.next();
    expect((await readStream(stream)).fields["grpc-status"]).toBe("4");
    expect(events).toEqual(["end"]);
    expect(await logged(1)).toMatchObject([{ code: "deadline_exceeded", messages: 0 }]);
  });

  test("a caller that cancels ends its stream", async () => {
    const watch = createControlledWatch();
    const { port, logged, server } = await startTestServer({ watch: watch.operation });
    const { call, ended } = watchWithGrpcJs(port);
    const { stream, events } = await watch.next();
    stream.send(bookmarkEvent("t"));
    await once(call, "data");
    call.cancel();
    expect(await ended).toBe(1);
    await expect.poll(() => events).toEqual(["end"]);
    expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
    expect(server.getLoad().streamingCalls).toBe(0);
  });

  test("a compressed request is a stream like any other", async () => {
    const watch = scripted((stream) => stream.end());
    const { port, logged } = await startTestServer({ watch });
    const body = envelope(gzipSync(toBinary(WatchTransfersRequestSchema, request)), 1);
    await sendHttp2(port, WATCH_PATH, post("application/grpc", body, { "grpc-encoding": "gzip" }));
    expect(await logged(1)).toMatchObject([{ code: "ok", watched: "1,2 goerli", messages: 0 }]);
  });

  test("at the end of the server each stream sends its last message and ends in good order", async () => {
    const watch = createControlledWatch();
    const { port, server } = await startTestServer({ watch: watch.operation });
    const { messages, ended } = watchWithGrpcJs(port);
    const events = sendHttp1(port, WATCH_GET_PATH);
    const calls = [await watch.next(), await watch.next()];
    await server.close(600_000);
    expect(await ended).toBe(0);
    expect(messages.map(({ event }) => event.case)).toEqual(["bookmark"]);
    expect((await events).body).toMatch(/^retry: \d+\n\nevent: bookmark\nid: last\ndata: {}\n\n$/);
    expect(calls.map((call) => call.events.join())).toEqual(["drain,end", "drain,end"]);
  });
});

describe("a caller that does not read", () => {
  /** Sends until the stream is not ready, as an operation would. Returns the bytes, about. */
  function sendWhileReady(stream: WatchStream, messageBytes: number): number {
    let sent = 0;
    while (stream.isReady() && sent < 1e9) {
      stream.send(transferEvent("t", "x".repeat(messageBytes)));
      sent += messageBytes;
    }
    return sent;
  }

  test.each([
    ["Server-Sent Events over HTTP/1.1", "http1", "GET"],
    ["Server-Sent Events over HTTP/2", "http2", "GET"],
    ["gRPC", "http2", "POST"],
  ])("%s: takes bounded memory, and is ready again when it reads", async (_, protocol, method) => {
    const watch = createControlledWatch();
    const { port, server } = await startTestServer({ watch: watch.operation });
    let read = () => {};
    if (protocol === "http1") {
      const socket = await openRawSocket(port);
      socket.pause();
      socket.write(`GET ${WATCH_GET_PATH} HTTP/1.1\r\nHost: a\r\n\r\n`);
      read = () => void socket.resume();
    } else {
      const session = openHttp2(port, { settings: { initialWindowSize: 1000 } });
      const headers = method === "GET" ? { ":path": WATCH_GET_PATH } : { ":path": WATCH_PATH };
      const stream = session.request({ ...headers, ":method": method, "content-type": "application/grpc" });
      stream.end(method === "GET" ? undefined : BINARY);
      read = () => void stream.resume();
    }
    const { stream, events } = await watch.next();
    // What the system itself holds for an HTTP/1.1 connection comes first.
    let waited = 0;
    for (let turns = 0; turns < 2000 && waited < 5; turns += 1) {
      waited = sendWhileReady(stream, 3000) === 0 ? waited + 1 : 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(stream.isReady()).toBe(false);
    expect(waited).toBe(5);
    const readyBefore = events.filter((event) => event === "ready").length;
    read();
    await expect.poll(() => events.filter((event) => event === "ready").length).toBeGreaterThan(readyBefore);
    expect(stream.isReady()).toBe(true);
    expect(server.getLoad().streamingCalls).toBe(1);
  });
});

test("open streams leave the places of HTTP/2 requests to others", async () => {
  const watch = createControlledWatch();
  const { port } = await startTestServer({ watch: watch.operation, limits: { totalStreams: 4 } });
  const session = openHttp2(port);
  for (let count = 0; count < 6; count += 1) {
    session.request({ ":path": WATCH_GET_PATH }).on("error", () => {});
    await watch.next();
  }
  const stream = session.request({ ":path": "/v1/quote?amount=1" });
  expect((await once(stream, "response"))[0][":status"]).toBe(200);
  expect((await sendHttp2(port, QUOTE_PATH, postJson("{}"))).status).toBe(200);
});
