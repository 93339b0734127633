import { printJsonString } from "../http/codec/json-printer.js";
import type { AccessLogEntry } from "../http/request/request-context.js";

/** Levels of access log entries, as pino numbers them. */
type AccessLogLevel = 20 | 30;

/** The members of a line that fields of an operation do not repeat. */
const FIXED_MEMBERS: ReadonlySet<string> = new Set(["requestId", "protocol", "operation", "code", "durationMs"]);

/** What follows the whole number of 0 to 999 thousandths. */
const FRACTIONS: readonly string[] = Array.from({ length: 1000 }, (_, thousandths) =>
  String(thousandths / 1000).slice(1),
);

/** Far above any duration. Doubles of this size have three exact decimals. */
const MAX_TABULATED_MICROS = 2 ** 40;

/** The printed form of fields that are frozen, and therefore used again. */
const printedFields = new WeakMap<object, string>();

/**
 * Formats an entry of the access log as the line that pino would write, by its known shape: at a fifth of the cost.
 * @param time ISO 8601
 */
export function formatAccessLine(level: AccessLogLevel, time: string, entry: AccessLogEntry): string {
  const { requestId, protocol, operation, code, durationMs, fields } = entry;
  return (
    `{"level":${level},"time":"${time}","requestId":${printJsonString(requestId)},"protocol":"${protocol}",` +
    `"operation":${printJsonString(operation)},"code":${printJsonString(code)},"durationMs":${printMilliseconds(durationMs)}` +
    `${fields === undefined ? "" : printFields(fields)},"msg":"request"}\n`
  );
}

/** Prints thousandths by table, since doubles take long to print. */
function printMilliseconds(milliseconds: number): string {
  const micros = Math.round(milliseconds * 1000);
  if (!(micros >= 0 && micros <= MAX_TABULATED_MICROS) || micros / 1000 !== milliseconds) {
    return JSON.stringify(milliseconds);
  }
  return `${Math.floor(micros / 1000)}${FRACTIONS[micros % 1000]}`;
}

/** Prints each field after a comma. */
function printFields(fields: NonNullable<AccessLogEntry["fields"]>): string {
  const memoized = printedFields.get(fields);
  if (memoized !== undefined) return memoized;
  let text = "";
  for (const [name, value] of Object.entries(fields)) {
    if (FIXED_MEMBERS.has(name)) continue;
    text += `,${printJsonString(name)}:${typeof value === "string" ? printJsonString(value) : JSON.stringify(value)}`;
  }
  if (Object.isFrozen(fields)) printedFields.set(fields, text);
  return text;
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
