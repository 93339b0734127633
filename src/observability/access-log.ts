import type { AccessLogEntry } from "../http/request/request-context.js";

/** Levels of access log entries, as pino numbers them. */
type AccessLogLevel = 20 | 30;

/**
 * Formats an entry of the access log as the line that pino would write, at less than half the cost: its fields are
 * strings, numbers and booleans, for which JSON.stringify is faster than any serialiser on top of it.
 * @param time ISO 8601
 */
export function formatAccessLine(level: AccessLogLevel, time: string, entry: AccessLogEntry): string {
  return `{"level":${level},"time":"${time}",${JSON.stringify(entry).slice(1, -1)},"msg":"request"}\n`;
}

/** Returns a function that formats the present time as ISO 8601, once per millisecond. */
export function createIsoClock(now: () => number): () => string {
  let [formattedMs, text] = [Number.NaN, ""];
  return () => {
    const ms = now();
    if (ms !== formattedMs) {
      formattedMs = ms;
      text = new Date(ms).toISOString();
    }
    return text;
  };
}
