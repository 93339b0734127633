import { type Logger, pino } from "pino";
import type { LogLevel } from "../config/environment-table.js";
import { createLogOutput, type LogOutput } from "./log-output.js";

export type { Logger };

/** Creates a logger that writes one JSON line per event, by default to standard output. Log no URL: use `deriveEndpointName`. */
export function createLogger(level: LogLevel, output: LogOutput = createLogOutput(1)): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, output);
}
