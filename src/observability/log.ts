import { type Logger as PinoLogger, pino } from "pino";
import type { LogLevel } from "../config/environment-table.js";
import type { AccessLogEntry } from "../http/request/request-context.js";
import { createTurnClock } from "../resilience/clock.js";
import { createIsoClock, formatAccessLine } from "./access-log.js";
import { createLogOutput, type LogOutput } from "./log-output.js";

export type Logger = PinoLogger & {
  /**
   * Writes the access log entry of a request. Those of documents are written at level debug: they are frequent and of
   * little interest, probes being among them.
   */
  logRequest(entry: AccessLogEntry): void;
};

/** Creates a logger that writes one JSON line per event, by default to standard output. Log no URL: use `deriveEndpointName`. */
export function createLogger(level: LogLevel, output: LogOutput = createLogOutput(1)): Logger {
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, output);
  const [logsDebug, logsInfo] = [logger.isLevelEnabled("debug"), logger.isLevelEnabled("info")];
  const formatTime = createIsoClock(createTurnClock(() => Date.now()));
  return Object.assign(logger, {
    logRequest(entry: AccessLogEntry): void {
      const isDocument = entry.operation.startsWith("/");
      if (isDocument ? !logsDebug : !logsInfo) return;
      output.write(formatAccessLine(isDocument ? 20 : 30, formatTime(), entry));
    },
  });
}
