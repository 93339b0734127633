import { once } from "node:events";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
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
import { openRawSocket } from "../support/raw-client.js";
import { describeOnBothPaths, QUOTE_PATH, startTestServer } from "../support/test-server.js";

test.each([
  ["the time for a body", 20, undefined, "timeout"],
  ["the deadline of the caller", 60_000, 20, "deadline"],
])(
  "%s does not end while bytes that arrived in time wait for a busy process",
  async (_, timeoutMs, remainingMs, cause) => {
    const server = createServer().listen(0, "127.0.0.1");
    closeAfterTest({ close: async () => void server.close() });
    await once(server, "listening");
    const address = server.address() as { port: number };
    const [[accepted], sender] = await Promise.all([
      once(server, "connection") as Promise<[Socket]>,
      openRawSocket(address.port),
    ]);
    closeAfterTest({ close: async () => void sender.destroy() });
    const causes: string[] = [];

    const stop = startBodyTimer(timeoutMs, remainingMs, (each) => causes.push(each));
    const received = once(accepted, "data");
    accepted.once("data", stop);
    sender.write("the end of the body");
    const startedAt = performance.now();
    while (performance.now() - startedAt < 100);
    await received;
    await new Promise((resolve) => setTimeout(resolve, 50));
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

const streamOf = (...chunks: string[]): Readable => {
  const stream = new Readable({ read() {} });
  for (const chunk of chunks) stream.push(Buffer.from(chunk));
  return stream;
};

test.each([
  ["nothing", [], null],
  ["one chunk", ["ab"], "ab"],
  ["several chunks", ["a", "bc", "d"], "abcd"],
])("returns %s that is buffered", (_, chunks, expected) => {
  expect(readBuffered(streamOf(...chunks))?.toString() ?? null).toBe(expected);
});

test("returns all buffered chunks of a stream that gives them one by one, as from Node.js 26 on", () => {
  const chunks = ["a", "bc", "d"].map((text) => Buffer.from(text));
  const stream = new Readable({ read() {} });
  Object.defineProperty(stream, "readableLength", { get: () => Buffer.concat(chunks).length });
  stream.read = () => chunks.shift() ?? null;
  expect(readBuffered(stream)?.toString()).toBe("abcd");
});

test("a stream of messages ends when it is given up in the moment in which a message is complete", async () => {
  const overload = new OverloadManager(
    { ...DEFAULT_HTTP_LIMITS, receivedBytes: 8000 },
    new Scheduler(),
    new FairScheduler(),
  );
  const req = new PassThrough();
  const context = { caller: "a", isAborted: false, recordFailure: (error: unknown) => error };
  const messages = readBody(
    { req: req as unknown as HttpRequest, context: context as unknown as RequestContext },
    {
      maxBytes: 10_000,
      timeoutMs: 10_000,
      draining: new AbortController().signal,
      overload,
      errorDomain: "test",
    },
  );
  const next = messages.next();
  req.write(Buffer.concat([Buffer.from([0, 0, 0, 0x17, 0x70]), Buffer.alloc(3000)]));
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

// A streaming body is read message by message, whatever its chunks, and each message has its limit.

async function startStream(limits = {}) {
  const { url } = await startTestServer({ limits });
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  const stream: ClientHttp2Stream = session.request({
    ":method": "POST",
    ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "content-type": "application/grpc",
  });
  let answers = 0;
  let status: unknown;
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    answers += chunk.toString("latin1").split("hop.bridge.v1.BridgeService").length - 1;
  });
  stream.on("trailers", (trailers) => {
    status = trailers["grpc-status"];
  });
  return { stream, answers: () => answers, status: () => status };
}

const question = (() => {
  const request = create(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "" } });
  const bytes = toBinary(ServerReflectionRequestSchema, request);
  return Buffer.concat([Buffer.from([0, 0, 0, 0, bytes.length]), bytes]);
})();

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
  await expect.poll(status).toBe("0");
  expect(answers()).toBe(5);
});

test("rejects a message by its length prefix before it arrives", async () => {
  const { stream, status } = await startStream();
  stream.write(Buffer.from([0, 0, 1, 0, 1, 0, 0]));
  await expect.poll(status).toBe("8");
});

test("rejects a body that ends in the middle of a message", async () => {
  const { stream, status } = await startStream();
  stream.end(question.subarray(0, 6));
  await expect.poll(status).toBe("3");
});

test("restarts the timeout with each message", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { stream, answers, status } = await startStream({ idleMs: 400 });
  for (let count = 1; count <= 4; count++) {
    stream.write(question);
    // A poll would advance the timers.
    while (answers() < count) await once(stream, "data");
    vi.advanceTimersByTime(300);
  }
  expect(status()).toBeUndefined();
  // No more data arrives: the body ends.
  vi.advanceTimersByTime(400);
  await expect.poll(status).toBe("0");
});

// Calls whose body never ends. Without a deadline they fail after the 30 seconds of every request.

const WATCH = "/grpc.health.v1.Health/Watch";
const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const MESSAGE = Buffer.alloc(5);
const GRPC = { "content-type": "application/grpc", "grpc-timeout": "50m" };

/** Sends the headers and the start of a body over HTTP/2, and returns the response. */
async function sendUnended(url: string, path: string, headers: Record<string, string>, body: Buffer) {
  const session = connectHttp2(url);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.write(body);
  let fields: Record<string, unknown> = {};
  let text = "";
  stream.on("response", (head) => {
    fields = { ...fields, ...head };
  });
  stream.on("trailers", (trailers) => {
    fields = { ...fields, ...trailers };
  });
  stream.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
  });
  await once(stream, "end");
  stream.close();
  return { fields, text };
}

describeOnBothPaths(() => {
  describe("a call whose body does not end is answered at its deadline", () => {
    test.each([
      ["nothing", QUOTE_PATH, GRPC, Buffer.alloc(0)],
      ["half a message", QUOTE_PATH, GRPC, MESSAGE.subarray(0, 3)],
      ["a message without its end", QUOTE_PATH, GRPC, MESSAGE],
      ["a part of a compressed message", QUOTE_PATH, { ...GRPC, "grpc-encoding": "gzip" }, MESSAGE.subarray(0, 3)],
      ["a watch without its end", WATCH, GRPC, MESSAGE],
      ["a watch without its message", WATCH, GRPC, Buffer.alloc(0)],
      ["open reflection", REFLECTION, GRPC, Buffer.alloc(0)],
      ["reflection in the middle of a message", REFLECTION, GRPC, MESSAGE.subarray(0, 3)],
    ])("with gRPC: %s", async (_, path, headers, body) => {
      const { url, accessLines, internalErrors, waitForAccessLines } = await startTestServer();
      const { fields } = await sendUnended(url, path, headers, body);
      expect(fields).toMatchObject({
        ":status": 200,
        "grpc-status": "4",
        "grpc-message": "the deadline passed before the call arrived",
      });
      await waitForAccessLines(1);
      expect(accessLines).toMatchObject([{ code: "deadline_exceeded" }]);
      expect(internalErrors).toEqual([]);
    });

    test.each([
      ["JSON", "application/json", '{"amo'],
      ["binary", "application/proto", "\x0a"],
      ["a spelling for the general path", "application/json;charset=utf-8", "{"],
    ])("with Connect over HTTP/2: %s", async (_, type, body) => {
      const { url } = await startTestServer();
      const headers = { "content-type": type, "connect-timeout-ms": "50" };
      const { fields, text } = await sendUnended(url, QUOTE_PATH, headers, Buffer.from(body));
      expect(fields).toMatchObject({ ":status": 504, "cache-control": "no-store" });
      expect(JSON.parse(text)).toMatchObject({
        code: "deadline_exceeded",
        message: "the deadline passed before the call arrived",
        details: [{ type: "google.rpc.ErrorInfo" }],
      });
    });

    test.each([
      [
        "Connect",
        QUOTE_PATH,
        "application/json",
        "Connect-Timeout-Ms: 50",
        /^HTTP\/1\.1 504 .*"deadline_exceeded".*details/s,
      ],
      [
        "gRPC-Web",
        QUOTE_PATH,
        "application/grpc-web+proto",
        "Grpc-Timeout: 50m",
        /^HTTP\/1\.1 200 .*grpc-status: 4\r\n/s,
      ],
      [
        "a Connect stream",
        WATCH,
        "application/connect+json",
        "Connect-Timeout-Ms: 50",
        /^HTTP\/1\.1 200 .*"deadline_exceeded"/s,
      ],
    ])("with %s over HTTP/1.1, while bytes keep arriving", async (_, path, type, timeout, expected) => {
      const { port, accessLines, waitForAccessLines } = await startTestServer();
      const socket = await openRawSocket(port);
      let received = "";
      socket.on("data", (chunk: Buffer) => {
        received += chunk.toString("latin1");
      });
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n${timeout}\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      const drip = setInterval(() => socket.write("1\r\n\0\r\n"), 5);
      onTestFinished(() => clearInterval(drip));
      await waitForAccessLines(1);
      await expect.poll(() => received).toMatch(expected);
      expect(accessLines).toMatchObject([{ code: "deadline_exceeded" }]);
      socket.destroy();
    });
  });

  test("the time for a body ends before a later deadline", async () => {
    const { url } = await startTestServer({ limits: { requestMs: 1_000, headersMs: 1_000 } });
    const headers = { ...GRPC, "grpc-timeout": "1H" };
    const { fields } = await sendUnended(url, QUOTE_PATH, headers, MESSAGE.subarray(0, 3));
    expect(fields).toMatchObject({ "grpc-status": "3", "grpc-message": "the request body did not arrive in time" });
  });

  test("a call that arrives in parts before its deadline is answered", async () => {
    const { url } = await startTestServer();
    const session = connectHttp2(url);
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":method": "POST", ":path": QUOTE_PATH, ...GRPC, "grpc-timeout": "1H" });
    for (const byte of MESSAGE) {
      stream.write(Buffer.from([byte]));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    stream.end();
    const [trailers] = (await once(stream.resume(), "trailers")) as [Record<string, unknown>];
    expect(trailers["grpc-status"]).toBe("0");
  });
});
