import fs from "node:fs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BufferedLogOutput } from "../../../src/observability/log-output.js";

// Stubs take the writes: a real full disk shows no recovery. test/process/log-output.test.ts uses real outputs.

type Outcome = "ENOSPC" | "EPIPE" | "EAGAIN" | number | undefined;
type WriteCallback = (error: NodeJS.ErrnoException | null, count: number) => void;

/** What becomes of the next writes: an error code, a number of bytes, or undefined for all bytes. */
let outcomes: Outcome[];
/** What becomes of the writes after those. */
let laterOutcome: Outcome;
let writes: string[];
let exitHooks: readonly unknown[];

function takeWrite(bytes: Buffer): number {
  const outcome = outcomes.length > 0 ? outcomes.shift() : laterOutcome;
  if (typeof outcome === "string") throw Object.assign(new Error(outcome), { code: outcome });
  const count = outcome ?? bytes.length;
  writes.push(bytes.subarray(0, count).toString());
  return count;
}

beforeEach(() => {
  vi.useFakeTimers();
  [outcomes, laterOutcome, writes] = [[], undefined, []];
  exitHooks = process.listeners("exit");
  vi.spyOn(fs, "writeSync").mockImplementation(((_file: number, bytes: Buffer) => takeWrite(bytes)) as never);
  vi.spyOn(fs, "write").mockImplementation(((_file: number, bytes: Buffer, onWritten: WriteCallback) => {
    setImmediate(() => {
      let [error, count]: [NodeJS.ErrnoException | null, number] = [null, 0];
      try {
        count = takeWrite(bytes);
      } catch (failure) {
        error = failure as NodeJS.ErrnoException;
      }
      onWritten(error, count);
    });
  }) as never);
});
afterEach(() => {
  vi.restoreAllMocks();
  for (const hook of process.listeners("exit")) if (!exitHooks.includes(hook)) process.off("exit", hook);
});

/** Creates an output to a file, whose writes are asynchronous. */
const createFileOutput = () => new BufferedLogOutput(fs.openSync("/dev/null", "w"));

/** Lets the flush interval pass, and the writes end that begin then. */
const flush = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1_000);

const NOTHING_LOST = { reader_too_slow: 0, write_failed: 0, output_closed: 0 };
const MIB = 1024 * 1024;

function parseReport(line: string | undefined): number {
  const report = JSON.parse(line ?? "");
  expect(report).toMatchObject({ level: 40, msg: "log reader too slow or write failed; lines dropped" });
  expect(new Date(report.time).toISOString()).toBe(report.time);
  return report.droppedLines;
}

describe("on a full disk", () => {
  test("keeps the lines and writes them when there is room again, none of them torn", async () => {
    const output = createFileOutput();
    outcomes = ["ENOSPC", "first\nsec".length, "ENOSPC", "ENOSPC"];
    for (const line of ["first\n", "second\n", "third\n"]) output.write(line);
    await flush();
    output.write("fourth\n");
    await flush();
    expect(writes.join("")).toBe("first\nsecond\nthird\nfourth\n");
    expect(output.countLostLines()).toEqual(NOTHING_LOST);
  });

  test("tries again five times per second, however many lines are logged", async () => {
    const output = createFileOutput();
    laterOutcome = "ENOSPC";
    for (let turn = 0; turn < 100; turn++) {
      output.write(`${"x".repeat(MIB / 32)}\n`);
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(vi.mocked(fs.write).mock.calls.length).toBeLessThanOrEqual(6);
  });

  test("counts the lines beyond the buffer, and reports them in the log when there is room again", async () => {
    const output = createFileOutput();
    const line = `${"x".repeat(MIB - 1)}\n`;
    laterOutcome = "ENOSPC";
    output.write("first\n");
    await flush();
    for (let index = 0; index < 6; index++) output.write(line);
    await flush();
    expect(output.countLostLines()).toEqual({ ...NOTHING_LOST, write_failed: 3 });
    expect(writes).toEqual([]);

    laterOutcome = undefined;
    await flush();
    const written = writes.join("").split("\n");
    expect(written.slice(0, 4).map((text) => text.length)).toEqual([5, MIB - 1, MIB - 1, MIB - 1]);
    expect(parseReport(written[4])).toBe(3);
    expect(written.slice(5)).toEqual([""]);
    output.write("last\n");
    await flush();
    expect(writes.at(-1)).toBe("last\n");
    expect(output.countLostLines()).toEqual({ ...NOTHING_LOST, write_failed: 3 });
  });
});

describe("when the reader is gone", () => {
  test("counts the lines that were waiting, and every line after that", async () => {
    const output = createFileOutput();
    outcomes = ["EPIPE"];
    const line = `${"x".repeat(2_999)}\n`;
    for (let index = 0; index < 5; index++) output.write(line);
    await flush();
    expect(output.countLostLines()).toEqual({ ...NOTHING_LOST, output_closed: 5 });
    output.write(line);
    await flush();
    expect(output.countLostLines()).toEqual({ ...NOTHING_LOST, output_closed: 6 });
    expect(writes).toEqual([]);
  });

  test("counts each line once, also those of a partial write and those lost before", async () => {
    const output = createFileOutput();
    laterOutcome = "ENOSPC";
    output.write("first\n");
    await flush();
    for (let index = 0; index < 2; index++) output.write(`${"x".repeat(3 * MIB)}\n`);
    await flush();
    outcomes = ["first\n".length];
    laterOutcome = "EPIPE";
    await flush();
    expect(output.countLostLines()).toEqual({ ...NOTHING_LOST, write_failed: 1, output_closed: 1 });
  });
});

test("counts the lines beyond the buffer of 4 MiB while the reader is too slow", async () => {
  const output = createFileOutput();
  for (let index = 0; index < 20; index++) output.write(`${"x".repeat(MIB / 2 - 1)}\n`);
  expect(output.countLostLines()).toEqual({ ...NOTHING_LOST, reader_too_slow: 12 });
  await flush();
  expect(parseReport(writes.join("").split("\n").at(-2))).toBe(12);
});

test("combines lines into writes of 32 to 64 KiB, and writes the remainder at the flush interval", async () => {
  const output = createFileOutput();
  const line = `${"x".repeat(999)}\n`;
  for (let index = 0; index < 166; index++) output.write(line);
  await vi.advanceTimersByTimeAsync(10);
  expect(writes.map((text) => text.length / 1_000)).toEqual([33, 65, 65]);
  await vi.advanceTimersByTimeAsync(200);
  expect(writes.map((text) => text.length / 1_000)).toEqual([33, 65, 65, 3]);
});

test("writes nothing and has no timer while there are no lines", async () => {
  const output = createFileOutput();
  output.write("line\n");
  await flush();
  expect(writes).toEqual(["line\n"]);
  expect(vi.getTimerCount()).toBe(0);
});

describe("to a pipe", () => {
  const createPipeOutput = () =>
    new BufferedLogOutput(1_000, (descriptor) => ({ descriptor, isBlocking: false, isPipe: true }));

  test.each([
    ["as they come", undefined],
    ["after the pipe was full", "EAGAIN" as const],
  ])("writes whole lines of at most 4096 bytes at once, whatever their characters: %s", async (_, first) => {
    const output = createPipeOutput();
    outcomes = [first];
    const lines = Array.from({ length: 100 }, (_, index) => `${index} ${"\u20ac".repeat(100 + index)}\n`);
    for (const line of lines) output.write(line);
    await flush();
    expect(writes.join("")).toBe(lines.join(""));
    for (const text of writes) expect(text).toMatch(/\n$/);
    for (const text of writes) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4096);
    expect(writes.length).toBeLessThan(20);
  });

  test("tries again after 5 ms when the pipe is full", async () => {
    const output = createPipeOutput();
    outcomes = ["EAGAIN"];
    output.write(`${"x".repeat(3_500)}\n`);
    expect(writes).toEqual([]);
    await vi.advanceTimersByTimeAsync(5);
    expect(writes.join("")).toHaveLength(3_501);
    expect(output.countLostLines()).toEqual(NOTHING_LOST);
  });

  test("writes a full buffer at once when its reader reads again", async () => {
    const output = createPipeOutput();
    laterOutcome = "EAGAIN";
    const line = `${"x".repeat(249)}\n`;
    for (let index = 0; index < 20_000; index++) output.write(line);
    const { reader_too_slow: lost } = output.countLostLines();
    expect(lost).toBe(20_000 - Math.floor((4 * MIB) / line.length));
    laterOutcome = undefined;
    await flush();
    const written = writes.join("").split("\n");
    expect(written.filter((text) => text.startsWith("x"))).toHaveLength(20_000 - lost);
    expect(parseReport(written.at(-2))).toBe(lost);
  });
});
