/** Shorter bodies are sent as they are: gzip's header and the extra response headers would eat up the gain. */
export const COMPRESS_MIN_BYTES = 1024;

const GZIP_OR_WILDCARD = /gzip|\*/i;
const ZERO_WEIGHT = /;\s*q=0(?:\.0*)?\s*(?:;|$)/i;

/**
 * Returns whether an Accept-Encoding header (RFC 9110 12.5.3) accepts gzip: by its name, or else by `*`, with a weight
 * above zero. Works for `grpc-accept-encoding` too, which lists names without weights.
 */
export function acceptsGzip(acceptEncoding: string | readonly string[] | undefined): boolean {
  if (acceptEncoding === undefined) return false;
  const header = String(acceptEncoding);
  if (!GZIP_OR_WILDCARD.test(header)) return false;
  let isWildcardAccepted = false;
  for (const item of header.split(",")) {
    const semicolon = item.indexOf(";");
    const coding = (semicolon === -1 ? item : item.slice(0, semicolon)).trim().toLowerCase();
    if (coding !== "gzip" && coding !== "*") continue;
    const isAccepted = semicolon === -1 || !ZERO_WEIGHT.test(item.slice(semicolon));
    if (coding === "gzip") return isAccepted;
    isWildcardAccepted = isAccepted;
  }
  return isWildcardAccepted;
}
