import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { frameMessage, type GrpcLoadOptions } from "./grpc-load-generator.js";
import type { LoadResult } from "./load.js";
import { runGenerator } from "./run-generator.js";

/** Makes unary gRPC calls with h2load, in one thread, all with the same message. Rejects on any unexpected response. */
export async function runH2load(options: GrpcLoadOptions & { readonly seconds: number }): Promise<LoadResult> {
  const { url, path, connections, concurrency, seconds, message, responseBytes } = options;
  const folder = await mkdtemp(join(tmpdir(), "hop-h2load-"));
  try {
    const body = join(folder, "message");
    const frame = frameMessage(message());
    await writeFile(body, frame);
    const headers = ["content-type: application/grpc+proto", "te: trailers"].flatMap((header) => ["-H", header]);
    const args = [
      "-t1",
      `-c${connections}`,
      `-m${concurrency}`,
      `-D${seconds}`,
      "-d",
      body,
      ...headers,
      `${url}${path}`,
    ];
    const expected = { bytes: frameMessage(new Uint8Array(responseBytes)).length, connections };
    return await runGenerator("h2load", args, (printed) => readH2loadResult(printed, expected));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface ExpectedResponses {
  readonly bytes: number;
  /** How many may be incomplete at the end. */
  readonly connections: number;
}

function readH2loadResult(
  printed: string,
  { bytes, connections }: ExpectedResponses,
): Pick<LoadResult, "completed" | "seconds"> {
  const read = (pattern: RegExp): number => Number(pattern.exec(printed)?.[1] ?? Number.NaN);
  const completed = read(/, (\d+) done,/);
  const responses = read(/status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx/);
  const isComplete =
    completed === read(/, (\d+) succeeded,/) &&
    completed <= responses &&
    // A failed call has status 200, too, but no message.
    (responses - connections) * bytes <= read(/ headers .*\((\d+)\) data/);
  if (!isComplete) throw new Error(`h2load failed: ${printed}`);
  // It divides by the time that it measured; "finished in" includes closing the connections.
  return { completed, seconds: completed / read(/, ([\d.]+) req\/s/) };
}
