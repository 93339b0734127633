import Module from "node:module";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../../../src/observability/log.js";

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 0, 2, 3, 4, 5, 6) }));
afterEach(() => void vi.restoreAllMocks());

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const METHODS = ["debug", "info", "warn", "error"] as const;

function createOutput() {
  const lines: string[] = [];
  return { lines, write: (line: string) => void lines.push(line) };
}

test.each(LEVELS)("writes the events that pino writes at level %s", (level) => {
  const [output, expected] = [createOutput(), createOutput()];
  const logger = createLogger(level, output);
  const reference = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, expected);
  const error = new Error("failed", { cause: new TypeError("why") });
  for (const method of METHODS) {
    for (const target of [logger, reference]) {
      target[method]({ a: 1, text: 'é"', nested: { b: [null] } }, "message");
      target[method]({ err: error }, "failure");
      target[method]("text alone");
    }
  }
  expect(output.lines).toEqual(expected.lines);
});

test("writes events without their fields while pino cannot be loaded", () => {
  const output = createOutput();
  const logger = createLogger("info", output);
  const loading = vi.spyOn(Module as unknown as { _load(name: string): unknown }, "_load").mockImplementation(() => {
    throw Object.assign(new Error("too many open files"), { code: "EMFILE" });
  });
  logger.warn({ a: 1 }, "first");
  logger.debug("not at this level");
  loading.mockRestore();
  logger.warn({ a: 1 }, "second");
  expect(output.lines).toEqual([
    '{"level":40,"time":"2026-01-02T03:04:05.006Z","msg":"first"}\n',
    '{"level":40,"time":"2026-01-02T03:04:05.006Z","a":1,"msg":"second"}\n',
  ]);
});
