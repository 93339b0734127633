import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { isPingAck, openPeer } from "../support/http2-peer.js";
import { collectText, openHttp2, openRawSocket, readStream } from "../support/raw-client.js";
import { createLargeQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

/** The gRPC prefix of a message of 50,000 bytes. */
const MESSAGE_PREFIX = Buffer.from([0, 0, 0, 0xc3, 0x50]);

/** Sends a byte every 20 ms until the test ends. */
function drip(send: (byte: string) => void, byte: string): void {
  const timer = setInterval(() => send(byte), 20);
  onTestFinished(() => clearInterval(timer));
}

describe("a body that arrives byte by byte times out like one that does not arrive", () => {
  const limits = { requestMs: 500, headersMs: 500 };

  // The requests of a test run at the same time: each takes as long as the timeout.
  test("over HTTP/1.1", async () => {
    const { port } = await startTestServer({ limits });
    const cases: readonly [string, string, string, RegExp][] = [
      ["Connect", `POST ${QUOTE_PATH}`, "application/json", /^HTTP\/1\.1 (408|400) /],
      ["gRPC-Web", `POST ${QUOTE_PATH}`, "application/grpc-web+proto", /^HTTP\/1\.1 408 |grpc-status: 3/],
      ["gRPC", `POST ${QUOTE_PATH}`, "application/grpc", /^HTTP\/1\.1 408 |grpc-status: 3/],
      ["a path that does not accept POST", "POST /v1/quote", "application/json", /^HTTP\/1\.1 405 /],
      ["an unknown path", "POST /nowhere", "application/json", /^HTTP\/1\.1 404 /],
      ["GET", "GET /v1/quote?amount=1", "application/json", /^HTTP\/1\.1 200 /],
    ];
    await Promise.all(
      cases.map(async ([name, requestLine, contentType, expected]) => {
        const socket = await openRawSocket(port);
        const text = collectText(socket);
        const headers = `Host: x\r\nContent-Type: ${contentType}\r\nContent-Length: 5000`;
        socket.write(`${requestLine} HTTP/1.1\r\n${headers}\r\n\r\n`);
        drip((byte) => socket.write(byte), " ");
        await new Promise((resolve) => socket.once("close", resolve));
        expect(text(), name).toMatch(expected);
      }),
    );
  });

  const GRPC = { "content-type": "application/grpc", te: "trailers" };
  const GRPC_TIMEOUT = { "grpc-status": "3", "grpc-message": "the request body did not arrive in time" };
  test("over HTTP/2", async () => {
    const { port } = await startTestServer({ limits });
    const cases: readonly [string, string, Record<string, string>, object][] = [
      ["Connect", QUOTE_PATH, { "content-type": "application/json" }, { ":status": 400 }],
      ["a path that does not accept POST", "/v1/quote", {}, { ":status": 405 }],
      ["an unknown path", "/nowhere", {}, { ":status": 404 }],
      ["gRPC on the fast path", QUOTE_PATH, GRPC, GRPC_TIMEOUT],
      ["gRPC on the general path", QUOTE_PATH, { ...GRPC, "grpc-encoding": "gzip" }, GRPC_TIMEOUT],
    ];
    await Promise.all(
      cases.map(async ([name, path, headers, expected]) => {
        const request = { ":method": "POST", ":path": path, ...headers };
        const stream = openHttp2(port).request(request, { endStream: false });
        if (expected === GRPC_TIMEOUT) stream.write(MESSAGE_PREFIX);
        drip((byte) => stream.writable && stream.write(byte), expected === GRPC_TIMEOUT ? "\0" : " ");
        expect((await readStream(stream)).fields, name).toMatchObject(expected);
        if (!stream.closed) await new Promise((resolve) => stream.once("close", resolve));
      }),
    );
  });
});

describe("memory use depends on the bytes received, not on how they were split", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  function usedMegabytes(): number {
    collectGarbage();
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    return (heapUsed + external + arrayBuffers) / 1e6;
  }
  const STREAMS = 20;
  const BYTES = 9_000;
  const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

  const encodePost = (type: string, path = QUOTE_PATH, more = {}) => {
    const pseudo = { ":method": "POST", ":scheme": "http", ":authority": "a", ":path": path };
    return encodeHeaders(Object.entries({ ...pseudo, "content-type": type, ...more }));
  };
  const bytes = Buffer.concat(Array.from({ length: 1000 }, () => encodeFrame(FRAME_TYPES.data, 0, 1, Buffer.alloc(1))));

  test.each([
    ["gRPC on the fast path", encodePost("application/grpc"), MESSAGE_PREFIX],
    [
      "gRPC on the general path",
      encodePost("application/grpc", QUOTE_PATH, { "grpc-encoding": "gzip" }),
      MESSAGE_PREFIX,
    ],
    ["Connect on the fast path", encodePost("application/proto"), Buffer.from([0x12])],
    ["a stream of messages", encodePost("application/grpc", REFLECTION), MESSAGE_PREFIX],
  ])("%s, byte by byte", async (_, headers, prefix) => {
    // However long a busy machine takes for 180,000 frames, no request may time out.
    const { port, accessLines } = await startTestServer({ limits: { requestMs: 3_600_000 } });
    let onRead = (): void => {};
    const isRead = new Promise<void>((resolve) => {
      onRead = resolve;
    });
    const socket = await openPeer(port, (type, flags) => isPingAck(type, flags) && onRead());
    socket.write(encodeClientPreface());
    const before = usedMegabytes();
    for (let index = 0; index < STREAMS; index++) {
      const id = 2 * index + 1;
      socket.write(encodeFrame(FRAME_TYPES.headers, 4, id, index === 0 ? headers.first : headers.later));
      socket.write(encodeFrame(FRAME_TYPES.data, 0, id, prefix));
      const frames = Buffer.from(bytes);
      for (let offset = 0; offset < frames.length; offset += 10) frames.writeUInt32BE(id, offset + 5);
      for (let sent = 0; sent < BYTES; sent += 1000) {
        if (!socket.write(frames)) await once(socket, "drain");
      }
    }
    socket.write(encodeFrame(FRAME_TYPES.ping, 0, 0, Buffer.alloc(8)));
    await isRead;
    expect(accessLines).toEqual([]);
    // 20 bodies of 9000 bytes; kept as chunks of one byte, they would take more than 20 MB. A busy machine takes longer to
    // read and to free what was sent.
    await expect.poll(() => usedMegabytes() - before).toBeLessThan(10);
    expect(accessLines).toEqual([]);
  });

  test("requests without a flow-control window share the memory of one response", async () => {
    const response = Object.freeze(createLargeQuote(100_000));
    const { port } = await startTestServer({ getQuote: () => response });
    const session = openHttp2(port, { settings: { initialWindowSize: 0 } });
    await once(session, "remoteSettings");
    const before = usedMegabytes();
    const headers = { ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc" };
    const responses = Array.from({ length: 200 }, () => {
      const stream = session.request(headers);
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
      return once(stream, "response");
    });
    await Promise.all(responses);
    // 200 copies of 100 kB would take 20 MB.
    expect(usedMegabytes() - before).toBeLessThan(10);
  });
});
