import { promisify } from "node:util";
import { gunzipSync, gzip } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";

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

/**
 * Decompresses a request. Synchronous: a request is small, and a thread takes three times as long to begin as 64 KiB take.
 * @throws ConnectError for a result that is larger than the limit, and for anything but gzip
 */
export function decompressGzip(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.length === 0) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes, chunkSize: maxBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_BUFFER_TOO_LARGE")
      throw new ConnectError("the request is not valid gzip", Code.InvalidArgument);
    const message = `message is larger than configured readMaxBytes ${maxBytes} after decompression`;
    throw new ConnectError(message, Code.ResourceExhausted, undefined, undefined, error);
  }
}

/** Gzip that reports broken input as such. Brotli would cost far more time than it saves bytes. */
export const gzipCompression: Compression = {
  name: "gzip",
  compress: promisify<Uint8Array, Buffer<ArrayBuffer>>(gzip),
  decompress: async (bytes, maxBytes) => decompressGzip(bytes, maxBytes) as Uint8Array<ArrayBuffer>,
};
