import { createHash } from "node:crypto";

/** Name of an RPC endpoint for logs: its host and the six hex digits that tell URLs of one host apart. */
export function deriveEndpointName(url: string): string {
  return `${URL.canParse(url) ? new URL(url).host : "invalid"}#${deriveEndpointId(url)}`;
}

/** The six hex digits alone: what callers and metrics may know of an RPC endpoint. */
export function deriveEndpointId(url: string): string {
  return createHash("sha256").update(url).digest("hex").slice(0, 6);
}
