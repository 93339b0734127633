import { type Logger, pino } from "pino";
import type { LogLevel } from "../config/config.js";
import { createLogOutput, type LogOutput } from "./log-output.js";

export type { Logger };

/** One JSON line per event, on standard output unless told otherwise. Callers log no URL: `endpointName` names one. */
export function createLogger(level: LogLevel, output: LogOutput = createLogOutput(1)): Logger {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, output);
}
