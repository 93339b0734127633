import fc from "fast-check";
import { pino } from "pino";
import { beforeEach, expect, test, vi } from "vitest";
import type { AccessLogEntry } from "../../../src/http/request/request-context.js";
import { createIsoClock, createLogger, formatAccessLine } from "../../../src/observability/log.js";

beforeEach(() => void vi.useFakeTimers({ now: Date.UTC(2026, 0, 2, 3, 4, 5, 6) }));

// Well-formed: pino passes a lone surrogate on, which its output then replaces.
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme", maxLength: 200 }),
  fc.base64String(),
);
// pino fails for fields like toString. Names that are array indices come first in every object, so pino moves them.
const name = text.filter((key) => !(key in {}) && !/^\d+$/.test(key));
const value = fc.oneof(text, fc.double(), fc.integer(), fc.boolean());
const entries = fc
  .record({
    requestId: text,
    protocol: fc.constantFrom("grpc" as const, "rest" as const),
    operation: text,
    code: text,
    durationMs: fc.oneof(
      fc.double(),
      fc.nat().map((micros) => micros / 1000),
    ),
  })
  .chain((fixed) =>
    fc
      .tuple(fc.dictionary(name, value), fc.boolean())
      .map(([more, isFrozen]): AccessLogEntry => ({ ...fixed, fields: isFrozen ? Object.freeze(more) : more })),
  );

test("prints an entry byte for byte as pino does", () => {
  let expected = "";
  const stream = {
    write(line: string) {
      expected = line;
    },
  };
  const logger = pino({ level: "debug", base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream);
  fc.assert(
    fc.property(entries, fc.boolean(), (entry, isInfo) => {
      const { fields, ...fixed } = entry;
      const members = { ...fixed, ...fields, ...fixed };
      if (isInfo) logger.info(members, "request");
      else logger.debug(members, "request");
      const line = formatAccessLine(isInfo ? 30 : 20, "2026-01-02T03:04:05.006Z", entry);
      expect([line, formatAccessLine(isInfo ? 30 : 20, "2026-01-02T03:04:05.006Z", entry)]).toEqual([
        expected,
        expected,
      ]);
    }),
    { numRuns: 1_000 },
  );
});

test("formats the time of each line", () => {
  const formatTime = createIsoClock(() => Date.now());
  expect([formatTime(), formatTime()]).toEqual(["2026-01-02T03:04:05.006Z", "2026-01-02T03:04:05.006Z"]);
  vi.advanceTimersByTime(1);
  expect(formatTime()).toBe("2026-01-02T03:04:05.007Z");
});

test.each([
  ["silent", []],
  ["warn", []],
  ["info", ["hop.bridge.v1.BridgeService/GetQuote"]],
  ["debug", ["hop.bridge.v1.BridgeService/GetQuote", "/livez"]],
] as const)("at level %s logs the requests of %j", (level, logged) => {
  const lines: string[] = [];
  const logger = createLogger(level, { write: (line) => void lines.push(line) });
  for (const operation of ["hop.bridge.v1.BridgeService/GetQuote", "/livez"])
    logger.logRequest({ requestId: "a", protocol: "rest", operation, code: "ok", durationMs: 1.5 });
  expect(lines.map((line) => JSON.parse(line).operation)).toEqual(logged);
});
