import { createHash } from "node:crypto";
import { parseUrl } from "../../resilience/parse-url.js";

/** Returns the name of an RPC endpoint for logs: its host and its id. Contains nothing else of the URL, which may hold a key. */
export function deriveEndpointName(url: string): string {
  return `${parseUrl(url)?.host ?? "invalid"}#${deriveEndpointId(url)}`;
}

/** Returns six hex digits of a hash of the URL: what callers and metrics may know of an RPC endpoint. */
export function deriveEndpointId(url: string): string {
  return createHash("sha256").update(url).digest("hex").slice(0, 6);
}
