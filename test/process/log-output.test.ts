import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { beforeAll, describe, expect, test } from "vitest";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Uses real processes and pipes: the exit of a process with unread log lines is what matters.

const folder = useTemporaryFolder();
let program: string;

beforeAll(async () => {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  for (const name of ["log-output"]) {
    const source = readFileSync(new URL(`../../src/observability/${name}.ts`, import.meta.url), "utf8");
    await writeFile(join(folder(), `${name}.js`), ts.transpileModule(source, { compilerOptions }).outputText);
  }
  await writeFile(join(folder(), "package.json"), JSON.stringify({ type: "module" }));
  await symlink(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(folder(), "node_modules"));
  program = `
    import { BufferedLogOutput } from ${JSON.stringify(join(folder(), "log-output.js"))};
    const output = new BufferedLogOutput(1);
    const [count, then] = process.argv.slice(1);
    const writeLines = (from, to) => {
      for (let index = from; index < to; index++)
        output.write(JSON.stringify({ pid: process.pid, index, fill: "x".repeat(80) }) + "\\n");
    };
    writeLines(0, Number(count));
    if (then === "crash") throw new Error("crash");
    if (then === "exit") process.exit(0);
    if (then === "later") setTimeout(() => process.exit(0), 1500);
    if (then === "count losses") setInterval(() => {
      const lost = Object.values(output.countLostLines()).reduce((sum, lines) => sum + lines, 0);
      if (lost === 0) return;
      process.stderr.write(JSON.stringify(output.countLostLines()) + "\\n");
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

/** Creates a pipe of the system: those of child processes are sockets. */
function createPipe(): { readonly reader: number; readonly writer: number } {
  const path = join(folder(), `pipe-${performance.now()}`);
  execFileSync("mkfifo", [path]);
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  const reader = openSync(path, constants.O_RDONLY);
  closeSync(first);
  return { reader, writer };
}

/** Starts to read what is written to a pipe, to the end. */
function readPipe(reader: number): Promise<string> {
  const cat = spawn("cat", { stdio: [reader, "pipe", "ignore"] });
  closeSync(reader);
  return text(cat.stdout as NodeJS.ReadableStream);
}

const isLinux = process.platform === "linux";

describe("writes every line completely and in order", () => {
  test("to a file", async () => {
    const path = join(folder(), "file");
    const file = openSync(path, "w");
    const child = start(20_000, "exit", file);
    closeSync(file);
    expect((await once(child, "exit"))[0]).toBe(0);
    expect(indexes(readFileSync(path, "utf8"))).toEqual(upTo(20_000));
  });

  test.runIf(isLinux)("to a pipe that is read", async () => {
    const { reader, writer } = createPipe();
    const child = start(2_000, "exit", writer);
    closeSync(writer);
    const [lines, [ended]] = await Promise.all([readPipe(reader), once(child, "exit")]);
    expect(indexes(lines)).toEqual(upTo(2_000));
    expect(ended).toBe(0);
  });

  test.runIf(isLinux)("to a pipe that processes share", async () => {
    const { reader, writer } = createPipe();
    const children = Array.from({ length: 3 }, () => start(5_000, "exit", writer));
    closeSync(writer);
    const [output] = await Promise.all([readPipe(reader), ...children.map((child) => once(child, "exit"))]);
    const lines = output.split("\n");
    for (const { pid } of children) {
      expect(indexes(lines.filter((line) => line.startsWith(`{"pid":${pid},`)).join("\n"))).toEqual(upTo(5_000));
    }
  });

  test.each(["pipe", "socket"])("to a %s that is read only once the process is told to stop", async (kind) => {
    const pipe = kind === "pipe" && isLinux ? createPipe() : undefined;
    const child = start(20_000, "live", pipe?.writer);
    if (pipe !== undefined) closeSync(pipe.writer);
    await once(child.stderr as NodeJS.ReadableStream, "data");
    child.kill("SIGTERM");
    const lines = pipe === undefined ? text(child.stdout as NodeJS.ReadableStream) : readPipe(pipe.reader);
    expect((await once(child, "exit"))[0]).toBe(0);
    expect(indexes(await lines)).toEqual(upTo(20_000));
  });

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

  test.runIf(isLinux)("when nothing reads its lines from a pipe", async () => {
    const { reader, writer } = createPipe();
    await expectPromptExit(start(50_000, "live", writer));
    closeSync(writer);
    closeSync(reader);
  });

  test("when nothing reads its lines from a socket", async () => {
    await expectPromptExit(start(50_000, "live"));
  });

  test("when the reader is gone", async () => {
    const child = start(50_000, "live");
    child.stdout?.destroy();
    await expectPromptExit(child);
  });

  test.runIf(isLinux)("when the device is full", async () => {
    const full = openSync("/dev/full", "w");
    await expectPromptExit(start(5_000, "live", full));
    closeSync(full);
  });
});

describe.runIf(isLinux)("on a full device", () => {
  test.each([
    [10, "exit"],
    // During a write.
    [2_000, "exit"],
    [60_000, "count losses"],
  ])("counts each of %d lines, at the latest when the process exits", async (count, then) => {
    const full = openSync("/dev/full", "w");
    const child = start(count, then, full);
    closeSync(full);
    const [errors] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, "exit")]);
    const lostBefore = Object.values(JSON.parse(/^\{.*\}/.exec(errors)?.[0] ?? "{}") as Record<string, number>);
    const lostAtExit = /^hop-gateway: (\d+) log lines could not be written before the exit\n$/m.exec(errors)?.[1];
    expect(lostBefore.reduce((sum, lines) => sum + lines, Number(lostAtExit))).toBe(count);
  });
});

test("goes on and counts every line when the reader is gone", async () => {
  const child = start(5_000, "count losses");
  child.stdout?.destroy();
  const [errors, [code]] = await Promise.all([text(child.stderr as NodeJS.ReadableStream), once(child, "exit")]);
  const { output_closed: lost } = JSON.parse(errors);
  // A socket takes some lines before its other end is closed.
  expect(lost).toBeGreaterThan(0);
  expect(lost).toBeLessThanOrEqual(5_000);
  expect(code).toBe(0);
});
