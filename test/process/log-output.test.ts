import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import ts from "typescript";
import { beforeAll, describe, expect, test } from "vitest";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Uses real processes and pipes: the exit of a process with unread log lines is what matters.

const folder = useTemporaryFolder();
let program: string;

beforeAll(async () => {
  const source = readFileSync(new URL("../../src/observability/log-output.ts", import.meta.url), "utf8");
  const file = join(folder(), "log-output.mjs");
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  await writeFile(file, ts.transpileModule(source, { compilerOptions }).outputText);
  program = `
    import { createLogOutput } from ${JSON.stringify(file)};
    const output = createLogOutput(1);
    const [count, then] = process.argv.slice(1);
    for (let index = 0; index < Number(count); index++) output.write(JSON.stringify({ index, fill: "x".repeat(80) }) + "\\n");
    if (then === "crash") throw new Error("crash");
    if (then === "exit") process.exit(0);
    if (then === "later") setTimeout(() => process.exit(0), 1500);
    if (then === "lose all") setInterval(() => {
      const lost = output.lostLines();
      if (lost.write_failed < Number(count)) return;
      process.stderr.write(JSON.stringify(lost));
      process.exit(0);
    }, 10);
    if (then === "live") {
      process.on("SIGTERM", () => process.exit(0));
      setInterval(() => {}, 1000);
      setTimeout(() => process.stderr.write("ready"), 100);
    }
  `;
});

function start(count: number, then: string, stdout: "pipe" | number = "pipe"): ChildProcess {
  const args = ["--input-type=module", "-e", program, String(count), then];
  return spawn(process.execPath, args, { stdio: ["ignore", stdout, "pipe"] });
}

const indexes = (lines: string): number[] =>
  lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).index);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

test("delivers every line to a slow reader of a pipe", async () => {
  const command = `"$0" --input-type=module -e "$1" 5000 later | { sleep 0.5; cat; }`;
  const child = spawn("sh", ["-c", command, process.execPath, program], { stdio: ["ignore", "pipe", "ignore"] });
  expect(indexes(await text(child.stdout))).toEqual(upTo(5_000));
});

describe("writes every line completely and in order", () => {
  test.each([
    ["when the process ends by itself", "", 0],
    ["when the process exits immediately", "exit", 0],
    ["when the process crashes", "crash", 1],
  ])("%s", async (_, then, code) => {
    const child = start(2_000, then);
    const [lines, [ended]] = await Promise.all([text(child.stdout as NodeJS.ReadableStream), once(child, "exit")]);
    expect(indexes(lines)).toEqual(upTo(2_000));
    expect(ended).toBe(code);
  });

  test("soon while the process continues", async () => {
    const child = start(3, "live");
    const [chunk] = await once(child.stdout as NodeJS.ReadableStream, "data");
    expect(indexes(String(chunk))).toEqual([0, 1, 2]);
    child.kill("SIGTERM");
    expect((await once(child, "exit"))[0]).toBe(0);
  });
});

describe("a process exits promptly on SIGTERM", () => {
  async function expectPromptExit(child: ChildProcess): Promise<void> {
    await once(child.stderr as NodeJS.ReadableStream, "data");
    const signaledAt = performance.now();
    child.kill("SIGTERM");
    expect((await once(child, "exit"))[0]).toBe(0);
    expect(performance.now() - signaledAt).toBeLessThan(60_000);
  }

  test.runIf(process.platform === "linux")("when nothing reads its lines", async () => {
    const pipe = join(folder(), "pipe");
    execFileSync("mkfifo", [pipe]);
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(pipe, constants.O_WRONLY);
    await expectPromptExit(start(50_000, "live", writer));
    closeSync(writer);
    closeSync(reader);
  });

  test("when the reader is gone", async () => {
    const child = start(50_000, "live");
    child.stdout?.destroy();
    await expectPromptExit(child);
  });

  test.runIf(process.platform === "linux")("when the device is full", async () => {
    const full = openSync("/dev/full", "w");
    await expectPromptExit(start(5_000, "live", full));
    closeSync(full);
  });
});

describe.runIf(process.platform === "linux")("on a full device", () => {
  async function readErrors(count: number, then: string): Promise<string> {
    const full = openSync("/dev/full", "w");
    const child = start(count, then, full);
    closeSync(full);
    const [errors] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, "exit")]);
    return errors;
  }

  test("counts every line", async () => {
    expect(JSON.parse(await readErrors(5_000, "lose all"))).toEqual({
      reader_too_slow: 0,
      write_failed: 5_000,
      output_closed: 0,
    });
  });

  test("says on standard error how many lines the exit loses", async () => {
    expect(await readErrors(10, "exit")).toBe("hop-gateway: 10 log lines could not be written before the exit\n");
  });
});

test("drops unread lines beyond a size and reports them once they are read", async () => {
  const child = start(200_000, "live");
  await sleep(1_000);
  const memory = process.platform === "linux" ? readFileSync(`/proc/${child.pid}/status`, "utf8") : "VmRSS: 0 kB";
  expect(Number(/VmRSS:\s+(\d+)/.exec(memory)?.[1])).toBeLessThan(200_000);
  let lines = "";
  child.stdout?.on("data", (chunk) => {
    lines += chunk;
  });
  await expect
    .poll(() => /"droppedLines":\d+,"msg":"log reader too slow or write failed; lines dropped/.test(lines), {
      timeout: 10_000,
    })
    .toBe(true);
  const dropped = Number(/"droppedLines":(\d+)/.exec(lines)?.[1]);
  child.kill("SIGTERM");
  await once(child, "exit");
  expect(indexes(lines).filter((index) => index !== undefined)).toEqual(upTo(200_000 - dropped));
});
