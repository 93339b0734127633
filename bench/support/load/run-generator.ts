import { spawn, spawnSync } from "node:child_process";
import { text } from "node:stream/consumers";
import type { LoadResult } from "./load.js";

/** Returns whether a program is on the PATH. */
export function isInstalled(program: string): boolean {
  return spawnSync("sh", ["-c", 'command -v "$1"', "sh", program]).status === 0;
}

/**
 * Runs a load generator that is a program of its own.
 * @param readResult parses what it prints; throws on failed requests
 */
export async function runGenerator(
  program: string,
  args: readonly string[],
  readResult: (printed: string) => Pick<LoadResult, "completed" | "seconds">,
): Promise<LoadResult> {
  // The shell adds the CPU time of its children: a line for itself, then one for them (POSIX `times`).
  const child = spawn("sh", ["-c", '"$@"; code=$?; times; exit $code', "sh", program, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = new Promise<number | null>((resolve, reject) => child.once("close", resolve).once("error", reject));
  const printed = await text(child.stdout);
  const code = await exited;
  if (code !== 0) throw new Error(`${program} exited with ${code}: ${printed}`);
  const { completed, seconds } = readResult(printed);
  return { completed, seconds, generatorUtilization: readChildrenSeconds(printed) / seconds };
}

function readChildrenSeconds(printed: string): number {
  const times = printed.trimEnd().split("\n").at(-1) ?? "";
  return [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, s]) => sum + Number(minutes) * 60 + Number(s),
    0,
  );
}
