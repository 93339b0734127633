import { type Logger, pino } from "pino";
import type { LogLevel } from "./config.js";
import { createLogOutput } from "./log-output.js";

export type { Logger };

/** One JSON line per event on standard output. Callers log no URL: an endpoint is named by `endpointName`. */
export function createLogger(level: LogLevel): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, createLogOutput(1));
}
