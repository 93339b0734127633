import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { DEFAULT_HTTP_LIMITS } from "../../../../src/http/connection/http-limits.js";
import { openHttp1Streams, openStreams } from "../support/open-streams.js";
import { bookmarkEvent, WATCH_GET_PATH, type WatchOperation } from "../support/stream-contract.js";
import { startTestServer } from "../support/test-server.js";

// What as many streams as the limits admit take together. nghttp2 takes about 8 KB more for each, outside the heap.

const MAX_HEAP_MB = 40;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");
function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Returns the bytes of the heap that each of so many streams takes. */
async function measure(count: number, open: (port: number, count: number) => Promise<void>): Promise<number> {
  const { port, server } = await startTestServer({ watch: watchOnce });
  await open(port, 20);
  await expect.poll(() => server.getLoad().streamingCalls).toBe(20);
  const before = usedBytes();
  await open(port, count);
  await expect.poll(() => server.getLoad().streamingCalls).toBe(20 + count);
  return (usedBytes() - before) / count;
}

test(`at their limits all streams take less than ${MAX_HEAP_MB} MB of the heap`, async () => {
  const { streamingCalls, generalStreamingCalls } = DEFAULT_HTTP_LIMITS;
  /** Measured with half of those that a caller may have. */
  const measureAt = (path: string, limit: number) =>
    measure(Math.floor(limit / 4), (port, count) => openStreams(port, path, count));
  const perWatch = await measureAt("/grpc.health.v1.Health/Watch", streamingCalls);
  const reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const perReflection = await measureAt(reflection, generalStreamingCalls);
  const total = streamingCalls * perWatch + generalStreamingCalls * perReflection;
  expect(perWatch).toBeLessThan(20_000);
  expect(total / 1e6).toBeLessThan(MAX_HEAP_MB);
});

/** Sends one message, as a watch does at first. */
const watchOnce: WatchOperation = (_, stream) => {
  stream.send(bookmarkEvent("token"));
  return { onReady() {}, onDrain: () => stream.interrupt(), onEnd() {} };
};

test("10,000 streams of Server-Sent Events take less than 150 MB of the heap", async () => {
  const overHttp2 = await measure(500, (port, count) => openStreams(port, WATCH_GET_PATH, count, { method: "GET" }));
  // With the sockets of their callers, which are in this process too.
  const overHttp1 = await measure(500, (port, count) => openHttp1Streams(port, count));
  expect((10_000 * overHttp2) / 1e6).toBeLessThan(120);
  expect((10_000 * overHttp1) / 1e6).toBeLessThan(150);
});
