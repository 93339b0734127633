import type { IncomingHttpHeaders } from "node:http";
import { acceptsGzip } from "../codec/gzip.js";

/** Longest delay of a timer in Node.js; a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const ACCEPT_ENCODING_HEADERS = ["accept-encoding", "grpc-accept-encoding"];

const GRPC_TIMEOUT_UNITS_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1 };

/** Parses a `grpc-timeout` into milliseconds, capped at the longest timer. Returns undefined for invalid text. */
function parseGrpcTimeoutMs(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  if (unit === "") return undefined;
  const ms = Number(digits) * (GRPC_TIMEOUT_UNITS_MS[unit] ?? (unit === "u" ? 1e-3 : 1e-6));
  return ms > MAX_TIMER_MS ? Math.floor(MAX_TIMER_MS / 1000) * 1000 : ms;
}

/** Parses a `connect-timeout-ms` like `parseGrpcTimeoutMs`. */
function parseConnectTimeoutMs(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) ? Math.min(Number(text), MAX_TIMER_MS) : undefined;
}

/** Parses the time that a caller gives a call, in milliseconds. Returns undefined if it gives none, or invalid text. */
export function parseTimeoutMs(headers: IncomingHttpHeaders, isConnect: boolean): number | undefined {
  const text = headers[isConnect ? "connect-timeout-ms" : "grpc-timeout"];
  if (typeof text !== "string") return undefined;
  return isConnect ? parseConnectTimeoutMs(text) : parseGrpcTimeoutMs(text);
}

/**
 * Converts request headers for Connect. Caps deadlines at the longest timer, and reduces accepted encodings to the one
 * to use. Returns undefined if a value is not valid in fetch's Headers.
 */
export function toConnectHeaders(incoming: IncomingHttpHeaders): Headers | undefined {
  const headers = new Headers();
  try {
    for (const [name, value] of Object.entries(incoming)) {
      if (name.startsWith(":") || value === undefined) continue;
      for (const text of Array.isArray(value) ? value : [value]) headers.append(name, text);
    }
  } catch {
    return undefined;
  }
  const longestSeconds = Math.floor(MAX_TIMER_MS / 1000);
  if (parseTimeoutMs(incoming, false) === longestSeconds * 1000) headers.set("grpc-timeout", `${longestSeconds}S`);
  if (parseTimeoutMs(incoming, true) === MAX_TIMER_MS) headers.set("connect-timeout-ms", String(MAX_TIMER_MS));
  // Connect compares names only: what it reads carries no weights, so that all paths agree on what a caller accepts.
  for (const name of ACCEPT_ENCODING_HEADERS) {
    const accepted = headers.get(name);
    if (accepted !== null && accepted !== "") headers.set(name, acceptsGzip(accepted) ? "gzip" : "identity");
  }
  return headers;
}

/** Returns the end of a timeout in whole milliseconds since the epoch, as Connect computes it. */
export function toDeadlineMs(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined ? undefined : Math.trunc(Date.now() + timeoutMs);
}

/** Returns the time until a deadline in milliseconds; negative if it has passed. */
export function toRemainingMs(deadlineMs: number | undefined): number | undefined {
  return deadlineMs === undefined ? undefined : deadlineMs - Date.now();
}
