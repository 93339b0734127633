import { execFile } from "node:child_process";
import { promisify } from "node:util";

export interface PacedLoadOptions {
  /** Full URLs, which are requested in turn. */
  readonly urls: readonly string[];
  readonly protocol: "h1" | "h2";
  readonly connections: number;
  readonly perSecond: number;
  readonly seconds: number;
}

/** Requests by how they ended. */
export interface PacedLoadResult {
  readonly sent: number;
  readonly succeeded: number;
  /** Answers with another status than 2xx, and requests without an answer. */
  readonly failed: number;
  readonly slowestMs: number;
}

const MS_PER_UNIT: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1_000 };

/** Sends GET at a constant rate with h2load, whatever becomes of the earlier ones. */
export async function runPacedH2load(options: PacedLoadOptions): Promise<PacedLoadResult> {
  const { urls, protocol, connections, perSecond, seconds } = options;
  const args = [
    ...(protocol === "h1" ? ["--h1"] : ["-m20"]),
    "-t1",
    `-c${connections}`,
    `-D${seconds}`,
    `--rps=${Math.round(perSecond / connections)}`,
    ...urls,
  ];
  const { stdout } = await promisify(execFile)("h2load", args);
  const read = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? Number.NaN);
  const succeeded = read(/status codes: (\d+) 2xx/);
  const sent = read(/, (\d+) done,/);
  // Those with another status are among the failed.
  const failed = read(/, (\d+) failed,/);
  const [, slowest = "NaN", unit = "s"] = /time for request: +\S+ +([\d.]+)(us|ms|s)/.exec(stdout) ?? [];
  return { sent, succeeded, failed, slowestMs: Number(slowest) * (MS_PER_UNIT[unit] ?? Number.NaN) };
}
