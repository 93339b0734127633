import type { IncomingHttpHeaders } from "node:http";

/** Longest time that a timer of Node.js can hold; above it, it fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const GRPC_TIMEOUT_UNITS_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1 };

/**
 * The headers of a node request as Connect takes them, with deadlines that no timer can hold cut to the longest that
 * one can. Undefined where a value holds what fetch's Headers refuse.
 */
export function toHeaders(incoming: IncomingHttpHeaders): Headers | undefined {
  const headers = new Headers();
  try {
    for (const [name, value] of Object.entries(incoming)) {
      if (name.startsWith(":") || value === undefined) continue;
      for (const each of Array.isArray(value) ? value : [value]) headers.append(name, each);
    }
  } catch {
    return undefined;
  }
  const [, digits, unit] = /^(\d{1,8})([HMSm])$/.exec(headers.get("grpc-timeout") ?? "") ?? [];
  if (Number(digits) * (GRPC_TIMEOUT_UNITS_MS[unit ?? ""] ?? 0) > LONGEST_TIMER_MS) {
    headers.set("grpc-timeout", `${Math.floor(LONGEST_TIMER_MS / 1000)}S`);
  }
  const milliseconds = headers.get("connect-timeout-ms") ?? "";
  if (/^\d{10}$/.test(milliseconds) && Number(milliseconds) > LONGEST_TIMER_MS) {
    headers.set("connect-timeout-ms", String(LONGEST_TIMER_MS));
  }
  return headers;
}
