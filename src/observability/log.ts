import type { Logger as PinoLogger, pino } from "pino";
import type { LogLevel } from "../config/environment-table.js";
import type { AccessLogEntry } from "../http/request/request-context.js";
import { createTurnClock } from "../resilience/clock.js";
import { createIsoClock, formatAccessLine } from "./access-log.js";
import { BufferedLogOutput, type LogOutput } from "./log-output.js";
import { createPackageLoader } from "./package-loader.js";

type EventLevel = "debug" | "info" | "warn" | "error";

export type Logger = Pick<PinoLogger, EventLevel> & {
  /**
   * Writes the access log entry of a request. Those of documents are written at level debug: they are frequent and of
   * little interest, probes being among them.
   */
  logRequest(entry: AccessLogEntry): void;
};

/** The levels by pino's numbers. */
const LEVEL_NUMBERS: Readonly<Record<LogLevel, number>> = {
  trace: 10,
  debug: 20,
  info: 30,
  warn: 40,
  error: 50,
  fatal: 60,
  silent: Number.POSITIVE_INFINITY,
};

/** Creates a logger that writes one JSON line per event, by default to standard output. Log no URL: use `createEndpointNamer`. */
export function createLogger(level: LogLevel, output: LogOutput = new BufferedLogOutput(1)): Logger {
  const formatTime = createIsoClock(createTurnClock(() => Date.now()));
  const isEnabled = (eventLevel: EventLevel): boolean => LEVEL_NUMBERS[eventLevel] >= LEVEL_NUMBERS[level];
  const [logsDebug, logsInfo] = [isEnabled("debug"), isEnabled("info")];
  let events: PinoLogger | undefined;

  function logEvent(eventLevel: EventLevel, args: Parameters<PinoLogger[EventLevel]>): void {
    try {
      events ??= createEventLogger(level, output);
    } catch {
      // No file can be opened, for instance. The next event tries again.
      const msg = args.find((arg) => typeof arg === "string");
      output.write(`${JSON.stringify({ level: LEVEL_NUMBERS[eventLevel], time: formatTime(), msg })}\n`);
      return;
    }
    events[eventLevel](...args);
  }

  const createMethod = (eventLevel: EventLevel): PinoLogger[EventLevel] =>
    isEnabled(eventLevel) ? (...args: Parameters<PinoLogger[EventLevel]>) => logEvent(eventLevel, args) : () => {};
  return {
    debug: createMethod("debug"),
    info: createMethod("info"),
    warn: createMethod("warn"),
    error: createMethod("error"),
    logRequest(entry) {
      const isDocument = entry.operation.startsWith("/");
      if (isDocument ? !logsDebug : !logsInfo) return;
      output.write(formatAccessLine(isDocument ? 20 : 30, formatTime(), entry));
    },
  };
}

/** Loads pino, for the first event: requests are logged without it, and it costs 13 ms and 5 MB. */
const loadPino = createPackageLoader<{ readonly pino: typeof pino }>("pino");

function createEventLogger(level: LogLevel, output: LogOutput): PinoLogger {
  const { pino: createPino } = loadPino();
  return createPino({ level, base: null, timestamp: createPino.stdTimeFunctions.isoTime }, output);
}
