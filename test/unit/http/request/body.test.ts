import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { OverloadManager } from "../../../../src/http/admission/overload-manager.js";
import { DEFAULT_HTTP_LIMITS } from "../../../../src/http/connection/http-limits.js";
import { readBody, readBuffered, startBodyTimer } from "../../../../src/http/request/body.js";
import type { HttpRequest, RequestContext } from "../../../../src/http/request/request-context.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { openRawSocket } from "../support/raw-client.js";

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
