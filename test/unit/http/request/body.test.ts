import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ServerReflectionRequestSchema } from "../../../../gen/grpc/reflection/v1/reflection_pb.js";
import { OverloadManager } from "../../../../src/http/admission/overload-manager.js";
import { DEFAULT_HTTP_LIMITS } from "../../../../src/http/connection/http-limits.js";
import { readBody, readBuffered, startBodyTimer } from "../../../../src/http/request/body.js";
import type { HttpRequest, RequestContext } from "../../../../src/http/request/request-context.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { collectText, envelope, openHttp2, openRawSocket, readStream } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

const WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

test.each([
  ["the time for a body", 20, undefined, "timeout"],
  ["the deadline of the caller", 60_000, 20, "deadline"],
])(
  "%s does not end while bytes that arrived in time wait for a busy process",
  async (_, timeoutMs, remainingMs, cause) => {
    const server = closeAfterTest(createServer().listen(0, "127.0.0.1"));
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const [[accepted], sender] = await Promise.all([
      once(server, "connection") as Promise<[Socket]>,
      openRawSocket(port),
    ]);
    const causes: string[] = [];

    const stop = startBodyTimer(timeoutMs, remainingMs, (each) => causes.push(each));
    const received = once(accepted, "data");
    accepted.once("data", stop);
    sender.write("the end of the body");
    const startedAt = performance.now();
    while (performance.now() - startedAt < 100);
    await received;
    await sleep(50);
    expect(causes).toEqual([]);

    startBodyTimer(timeoutMs, remainingMs, (each) => causes.push(each));
    await expect.poll(() => causes).toEqual([cause]);
  },
);

test("a deadline that has passed is a timer without a delay", () => {
  const setTimer = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => setTimer.mockRestore());
  startBodyTimer(1000, -5, () => {})();
  expect(setTimer.mock.calls.map(([, delayMs]) => delayMs)).toEqual([0]);
});

test.each([
  ["nothing", [], undefined],
  ["one chunk", ["ab"], "ab"],
  ["several chunks", ["a", "bc", "d"], "abcd"],
])("returns %s that is buffered", (_, chunks, expected) => {
  const stream = new Readable({ read() {} });
  for (const chunk of chunks) stream.push(Buffer.from(chunk));
  expect(readBuffered(stream)?.toString()).toBe(expected);
});

test("returns all buffered chunks of a stream that gives them one by one, as from Node.js 26 on", () => {
  const chunks = ["a", "bc", "d"].map((text) => Buffer.from(text));
  const stream = new Readable({ read() {} });
  Object.defineProperty(stream, "readableLength", { get: () => Buffer.concat(chunks).length });
  stream.read = () => chunks.shift() ?? null;
  expect(readBuffered(stream)?.toString()).toBe("abcd");
});

test("a stream of messages ends when it is given up in the moment in which a message is complete", async () => {
  const limits = { ...DEFAULT_HTTP_LIMITS, receivedBytes: 8000 };
  const overload = new OverloadManager(limits, new Scheduler(), new FairScheduler());
  const req = new PassThrough();
  const context = { caller: "a", isAborted: false, recordFailure: (error: unknown) => error };
  const messages = readBody(
    { req: req as unknown as HttpRequest, context: context as unknown as RequestContext },
    {
      ...{ maxBytes: 10_000, timeoutMs: 10_000, overload, errorDomain: "test" },
      draining: new AbortController().signal,
    },
  );
  const next = messages.next();
  req.write(envelope(Buffer.alloc(6000)).subarray(0, 3005));
  await expect.poll(() => overload.getLoad().receivedBytes).toBeGreaterThan(7000);
  // Ends a reader that looks for its bytes for ever.
  const { concat } = Buffer;
  let calls = 0;
  const guard = vi.spyOn(Buffer, "concat").mockImplementation((...list) => {
    calls += 1;
    if (calls > 100) throw new Error("the reader does not end");
    return concat(...list);
  });
  onTestFinished(() => guard.mockRestore());
  // Not within a promise: the manager acts before the reader then, as with bytes of the network.
  setTimeout(() => req.write(Buffer.alloc(3000)));
  await expect(next).rejects.toThrow("too many request bodies are being received here");
  expect(overload.getLoad()).toMatchObject({ receivedBytes: 0, cuts: { received_bytes: 1 } });
});

describe("a streaming body", () => {
  async function startStream(limits = {}) {
    const { port } = await startTestServer({ limits });
    const stream = openHttp2(port).request({
      ...{ ":method": "POST", ":path": REFLECTION, "content-type": "application/grpc" },
    });
    let answers = 0;
    stream.on("data", (chunk: Buffer) => {
      answers += chunk.toString("latin1").split("hop.bridge.v1.BridgeService").length - 1;
    });
    const status = readStream(stream).then(({ fields }) => fields["grpc-status"]);
    return { stream, answers: () => answers, status };
  }

  const listServices = { messageRequest: { case: "listServices" as const, value: "" } };
  const question = envelope(
    toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, listServices)),
  );

  test("yields each message as soon as it is complete, whatever the chunks", async () => {
    const { stream, answers, status } = await startStream();
    for (const byte of question) {
      expect(answers()).toBe(0);
      stream.write(Buffer.from([byte]));
      await sleep(2);
    }
    await expect.poll(answers).toBe(1);
    stream.write(Buffer.concat([question, question, question.subarray(0, 6)]));
    await expect.poll(answers).toBe(3);
    stream.end(Buffer.concat([question.subarray(6), question]));
    expect(await status).toBe("0");
    expect(answers()).toBe(5);
  });

  test("is rejected by the length prefix of a message before that arrives", async () => {
    const { stream, status } = await startStream();
    stream.write(Buffer.from([0, 0, 1, 0, 1, 0, 0]));
    expect(await status).toBe("8");
  });

  test("is rejected when it ends in the middle of a message", async () => {
    const { stream, status } = await startStream();
    stream.end(question.subarray(0, 6));
    expect(await status).toBe("3");
  });

  test("has its whole time again with each message", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { stream, answers, status } = await startStream({ idleMs: 400 });
    let isOver = false;
    void status.then(() => {
      isOver = true;
    });
    for (let count = 1; count <= 4; count++) {
      stream.write(question);
      // A poll would advance the timers.
      while (answers() < count) await once(stream, "data");
      vi.advanceTimersByTime(300);
    }
    expect(isOver).toBe(false);
    // No more data arrives: the body ends.
    vi.advanceTimersByTime(400);
    expect(await status).toBe("0");
  });
});

// Calls whose body never ends. Without a deadline they fail after the 30 seconds of every request.

const EMPTY = Buffer.alloc(0);
const MESSAGE = Buffer.alloc(5);
const PART = MESSAGE.subarray(0, 3);
const GRPC = { "content-type": "application/grpc", "grpc-timeout": "50m" };

/** Sends the headers and the start of a body over HTTP/2, and returns the response. */
function sendUnended(port: number, path: string, headers: Record<string, string>, body: Buffer) {
  const stream = openHttp2(port).request({ ":method": "POST", ":path": path, ...headers });
  stream.write(body);
  return readStream(stream);
}

describeOnBothPaths(() => {
  describe("a call whose body does not end is answered at its deadline", () => {
    const message = "the deadline passed before the call arrived";

    test.each([
      ["nothing", QUOTE_PATH, GRPC, EMPTY],
      ["half a message", QUOTE_PATH, GRPC, PART],
      ["a message without its end", QUOTE_PATH, GRPC, MESSAGE],
      ["a part of a compressed message", QUOTE_PATH, { ...GRPC, "grpc-encoding": "gzip" }, PART],
      ["a watch without its end", WATCH, GRPC, MESSAGE],
      ["a watch without its message", WATCH, GRPC, EMPTY],
      ["open reflection", REFLECTION, GRPC, EMPTY],
      ["reflection in the middle of a message", REFLECTION, GRPC, PART],
    ])("with gRPC: %s", async (_, path, headers, body) => {
      const { port, internalErrors, logged } = await startTestServer();
      const { fields } = await sendUnended(port, path, headers, body);
      expect(fields).toMatchObject({ ":status": 200, "grpc-status": "4", "grpc-message": message });
      expect(await logged(1)).toMatchObject([{ code: "deadline_exceeded" }]);
      expect(internalErrors).toEqual([]);
    });

    test.each([
      ["JSON", "application/json", '{"amo'],
      ["binary", "application/proto", "\x0a"],
      ["a spelling for the general path", "application/json;charset=utf-8", "{"],
    ])("with Connect over HTTP/2: %s", async (_, type, start) => {
      const { port } = await startTestServer();
      const headers = { "content-type": type, "connect-timeout-ms": "50" };
      const { fields, body } = await sendUnended(port, QUOTE_PATH, headers, Buffer.from(start));
      expect(fields).toMatchObject({ ":status": 504, "cache-control": "no-store" });
      const details = [{ type: "google.rpc.ErrorInfo" }];
      expect(JSON.parse(body)).toMatchObject({ code: "deadline_exceeded", message, details });
    });

    const CONNECT_TIMEOUT = "Connect-Timeout-Ms: 50";
    test.each([
      ["Connect", QUOTE_PATH, "json", CONNECT_TIMEOUT, /^HTTP\/1\.1 504 .*"deadline_exceeded".*details/s],
      ["gRPC-Web", QUOTE_PATH, "grpc-web+proto", "Grpc-Timeout: 50m", /^HTTP\/1\.1 200 .*grpc-status: 4\r\n/s],
      ["a Connect stream", WATCH, "connect+json", CONNECT_TIMEOUT, /^HTTP\/1\.1 200 .*"deadline_exceeded"/s],
    ])("with %s over HTTP/1.1, while bytes keep arriving", async (_, path, type, timeout, expected) => {
      const { port, logged } = await startTestServer();
      const socket = await openRawSocket(port);
      const received = collectText(socket);
      const headers = `Content-Type: application/${type}\r\n${timeout}\r\nTransfer-Encoding: chunked`;
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n`);
      const drip = setInterval(() => socket.write("1\r\n\0\r\n"), 5);
      onTestFinished(() => clearInterval(drip));
      expect(await logged(1)).toMatchObject([{ code: "deadline_exceeded" }]);
      await expect.poll(received).toMatch(expected);
    });
  });

  test("the time for a body ends before a later deadline", async () => {
    const { port } = await startTestServer({ limits: { requestMs: 1_000, headersMs: 1_000 } });
    const { fields } = await sendUnended(port, QUOTE_PATH, { ...GRPC, "grpc-timeout": "1H" }, PART);
    expect(fields).toMatchObject({ "grpc-status": "3", "grpc-message": "the request body did not arrive in time" });
  });

  test("a call that arrives in parts before its deadline is answered", async () => {
    const { port } = await startTestServer();
    const headers = { ":method": "POST", ":path": QUOTE_PATH, ...GRPC, "grpc-timeout": "1H" };
    const stream = openHttp2(port).request(headers);
    for (const byte of MESSAGE) {
      stream.write(Buffer.from([byte]));
      await sleep(2);
    }
    stream.end();
    expect((await readStream(stream)).fields["grpc-status"]).toBe("0");
  });
});
