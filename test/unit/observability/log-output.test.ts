import fs from "node:fs";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogOutput } from "../../../src/observability/log-output.js";

// A stub of node:fs takes the writes: a real full disk shows no recovery. test/process/log-output.test.ts uses real outputs.

type Outcome = "ENOSPC" | "EPIPE" | number | undefined;

const stub = vi.hoisted(() => ({
  /** What becomes of the next writes: an error code, a number of bytes, or undefined for all bytes. */
  outcomes: [] as Outcome[],
  written: "",
}));

vi.mock("node:fs", async (importOriginal) => {
  const actual = await importOriginal<typeof fs>();
  const write = (
    _file: number,
    bytes: Buffer,
    _offset: number,
    _length: number,
    _position: null,
    onWritten: (error: NodeJS.ErrnoException | null, count: number) => void,
  ): void => {
    const outcome = stub.outcomes.shift();
    setImmediate(() => {
      if (typeof outcome === "string") {
        onWritten(Object.assign(new Error(outcome), { code: outcome }), 0);
        return;
      }
      const count = outcome ?? bytes.length;
      stub.written += bytes.subarray(0, count).toString();
      onWritten(null, count);
    });
  };
  const mocked = { ...actual, write };
  return { ...mocked, default: mocked };
});

let exitHooks: readonly unknown[];
beforeEach(() => {
  vi.useFakeTimers();
  stub.outcomes = [];
  stub.written = "";
  exitHooks = process.listeners("exit");
});
afterEach(() => {
  vi.useRealTimers();
  for (const hook of process.listeners("exit")) if (!exitHooks.includes(hook)) process.off("exit", hook);
});

/** Creates an output to a regular file, so that its writes are asynchronous. */
function create() {
  return createLogOutput(fs.openSync("/dev/null", "w"));
}

/** Lets the flush interval pass, and the writes end that begin then. */
const flush = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1_000);

test("counts the lines of a chunk that a full disk loses, and writes and reports the next ones", async () => {
  const output = create();
  stub.outcomes = ["ENOSPC"];
  for (let index = 0; index < 3; index++) output.write(`{"index":${index}}\n`);
  await flush();
  expect(output.lostLines()).toEqual({ reader_too_slow: 0, write_failed: 3, output_closed: 0 });
  expect(stub.written).toBe("");

  output.write('{"index":3}\n');
  await flush();
  const [line = "", report = ""] = stub.written.split("\n");
  expect(line).toBe('{"index":3}');
  expect(JSON.parse(report)).toMatchObject({
    level: 40,
    droppedLines: 3,
    msg: expect.stringContaining("write failed"),
  });
  expect(output.lostLines()).toMatchObject({ write_failed: 3 });
});

test("counts the lines that are not completely written when the disk fills up during a write", async () => {
  const output = create();
  stub.outcomes = ["first\nsec".length, "ENOSPC"];
  output.write("first\n");
  output.write("second\n");
  output.write("third\n");
  await flush();
  expect(stub.written).toBe("first\nsec");
  expect(output.lostLines()).toEqual({ reader_too_slow: 0, write_failed: 2, output_closed: 0 });
});

test("counts the lines that were waiting when the reader went away, and every line after that", async () => {
  const output = create();
  stub.outcomes = ["EPIPE"];
  const line = `${"x".repeat(2_999)}\n`;
  for (let index = 0; index < 5; index++) output.write(line);
  await flush();
  expect(output.lostLines()).toEqual({ reader_too_slow: 0, write_failed: 0, output_closed: 5 });
  output.write(line);
  expect(output.lostLines()).toEqual({ reader_too_slow: 0, write_failed: 0, output_closed: 6 });
  expect(stub.written).toBe("");
});

test("counts the lines beyond the buffer of 16 MB", () => {
  const output = create();
  const line = `${"x".repeat(1024 * 1024 - 1)}\n`;
  for (let index = 0; index < 20; index++) output.write(line);
  expect(output.lostLines()).toEqual({ reader_too_slow: 4, write_failed: 0, output_closed: 0 });
});
