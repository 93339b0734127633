import type { IncomingHttpHeaders } from "node:http";
import { acceptsGzip } from "../codec/compression.js";

/** Longest time that a timer of Node.js can hold; above it, it fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

const ACCEPT_ENCODING_HEADERS = ["accept-encoding", "grpc-accept-encoding"];

const GRPC_TIMEOUT_UNITS_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1 };

/** Milliseconds of a `grpc-timeout`, none longer than a timer can hold. Undefined where the text is none. */
export function parseGrpcTimeoutMs(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  if (unit === "") return undefined;
  const ms = Number(digits) * (GRPC_TIMEOUT_UNITS_MS[unit] ?? (unit === "u" ? 1e-3 : 1e-6));
  return ms > MAX_TIMER_MS ? Math.floor(MAX_TIMER_MS / 1000) * 1000 : ms;
}

/** Milliseconds of a `connect-timeout-ms`, as with `grpcTimeoutMs`. */
export function parseConnectTimeoutMs(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) ? Math.min(Number(text), MAX_TIMER_MS) : undefined;
}

/**
 * The headers of a node request as Connect takes them, with deadlines that no timer can hold cut to the longest that
 * one can. Undefined where a value holds what fetch's Headers refuse.
 */
export function toFetchHeaders(incoming: IncomingHttpHeaders): Headers | undefined {
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
  if (Number(digits) * (GRPC_TIMEOUT_UNITS_MS[unit ?? ""] ?? 0) > MAX_TIMER_MS) {
    headers.set("grpc-timeout", `${Math.floor(MAX_TIMER_MS / 1000)}S`);
  }
  const milliseconds = headers.get("connect-timeout-ms") ?? "";
  if (/^\d{10}$/.test(milliseconds) && Number(milliseconds) > MAX_TIMER_MS) {
    headers.set("connect-timeout-ms", String(MAX_TIMER_MS));
  }
  // Connect compares names only: what it reads carries no weights, so that all paths agree on what a caller accepts.
  for (const name of ACCEPT_ENCODING_HEADERS) {
    const accepted = headers.get(name);
    if (accepted !== null && accepted !== "") headers.set(name, acceptsGzip(accepted) ? "gzip" : "identity");
  }
  return headers;
}
