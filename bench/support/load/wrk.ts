import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HttpRequests } from "./http-requests.js";
import type { LoadResult } from "./load.js";
import { runGenerator } from "./run-generator.js";

export interface WrkOptions {
  readonly url: string;
  readonly connections: number;
  /** A whole number. */
  readonly seconds: number;
  readonly requests: HttpRequests;
}

/** Sends requests with wrk, in one thread. Rejects if wrk reports a status other than 2xx and 3xx, or a socket error. */
export async function runWrk({ url, connections, seconds, requests }: WrkOptions): Promise<LoadResult> {
  const folder = await mkdtemp(join(tmpdir(), "hop-wrk-"));
  try {
    const script = join(folder, "requests.lua");
    await writeFile(script, await writeScript(folder, requests));
    const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, url];
    const result = await runGenerator("wrk", args, readWrkResult);
    // Those that were in flight at the end used a value, too.
    requests.sent += result.completed + connections;
    return result;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns a Lua script that sends what `buildNextRequest` would return. */
async function writeScript(folder: string, { before, after, values, sent }: HttpRequests): Promise<string> {
  // Lua reads JSON strings of ASCII text.
  const request = (value: string): string =>
    `function request() index = index + 1; return ${JSON.stringify(before)} .. ${value} .. ${JSON.stringify(after)} end\n`;
  if (typeof values === "number") return `local index = ${values + sent - 1}\n${request("index")}`;
  const list = join(folder, "values");
  await writeFile(list, values.map((value) => `${value}\n`).join(""));
  return (
    `local index, values = ${sent - 1}, {}\n` +
    `for line in io.lines(${JSON.stringify(list)}) do values[#values + 1] = line end\n` +
    request("values[index % #values + 1]")
  );
}

function readWrkResult(printed: string): Pick<LoadResult, "completed" | "seconds"> {
  const [, completed, seconds] = /(\d+) requests in ([\d.]+)s/.exec(printed) ?? [];
  if (completed === undefined || /Non-2xx|Socket errors/.test(printed)) throw new Error(`wrk failed: ${printed}`);
  return { completed: Number(completed), seconds: Number(seconds) };
}
