import { createHash } from "node:crypto";

/** Name of an RPC endpoint for logs and metrics: its host and six hex digits that tell URLs of one host apart. */
export function endpointName(url: string): string {
  const digest = createHash("sha256").update(url).digest("hex").slice(0, 6);
  return `${URL.canParse(url) ? new URL(url).host : "invalid"}#${digest}`;
}
