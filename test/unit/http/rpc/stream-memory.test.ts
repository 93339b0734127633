import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import {
  encodeClientPreface,
  encodeFrame,
  encodeHeaders,
  FRAME_FLAGS,
  FRAME_TYPES,
} from "../../../../bench/support/http2-frames.js";
import { DEFAULT_HTTP_LIMITS } from "../../../../src/http/connection/http-limits.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { openRawSocket } from "../support/raw-client.js";
import { startTestServer } from "../support/test-server.js";

// What as many streams as the limits admit take together. nghttp2 takes about 8 KB more for each, outside the heap.

const MAX_HEAP_MB = 40;
const STREAMS_PER_CONNECTION = 200;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");
function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function openStreams(port: number, path: string, count: number): Promise<void> {
  for (let opened = 0; opened < count; opened += STREAMS_PER_CONNECTION) {
    const socket = await openRawSocket(port);
    closeAfterTest({ close: async () => void socket.destroy() });
    socket.resume();
    socket.write(encodeClientPreface());
    const fields: [string, string][] = [
      [":method", "POST"],
      [":scheme", "http"],
      [":path", path],
    ];
    fields.push([":authority", "a"], ["content-type", "application/grpc"], ["te", "trailers"]);
    const { first, later } = encodeHeaders(fields);
    for (let index = 0; index < Math.min(STREAMS_PER_CONNECTION, count - opened); index += 1) {
      const id = 2 * index + 1;
      socket.write(encodeFrame(FRAME_TYPES.headers, FRAME_FLAGS.endHeaders, id, index === 0 ? first : later));
      // An empty message. Reflection stays open only while its request does.
      const flags = path.endsWith("Watch") ? FRAME_FLAGS.endStream : 0;
      socket.write(encodeFrame(FRAME_TYPES.data, flags, id, Buffer.alloc(5)));
    }
  }
}

/** Returns the bytes of the heap that each stream of one kind takes, measured with half of those that a caller may have. */
async function measureBytesPerStream(path: string, limit: number): Promise<number> {
  const { port, server } = await startTestServer();
  await openStreams(port, path, 20);
  await expect.poll(() => server.getLoad().streamingCalls).toBe(20);
  const before = usedBytes();
  const count = Math.floor(limit / 4);
  await openStreams(port, path, count);
  await expect.poll(() => server.getLoad().streamingCalls).toBe(20 + count);
  return (usedBytes() - before) / count;
}

test(`at their limits all streams take less than ${MAX_HEAP_MB} MB of the heap`, async () => {
  const { streamingCalls, generalStreamingCalls } = DEFAULT_HTTP_LIMITS;
  const perWatch = await measureBytesPerStream("/grpc.health.v1.Health/Watch", streamingCalls);
  const perReflection = await measureBytesPerStream(
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    generalStreamingCalls,
  );
  const total = streamingCalls * perWatch + generalStreamingCalls * perReflection;
  expect(perWatch).toBeLessThan(20_000);
  expect(total / 1e6).toBeLessThan(MAX_HEAP_MB);
});
