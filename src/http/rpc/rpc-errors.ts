import { promisify } from "node:util";
import { gunzip, gzip, type ZlibOptions } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ServiceError } from "../../errors.js";
import { toConnectError } from "../request/error-mapping.js";
import type { RequestContext } from "../request/request-context.js";

// The outcome of a call in gRPC and Connect, for the fast paths and the general path.

/** Gzip that reports broken input as such. Brotli would cost far more time than it saves bytes. */
export const gzipCompression: Compression = {
  name: "gzip",
  compress: promisify<Uint8Array, Buffer<ArrayBuffer>>(gzip),
  async decompress(bytes, readMaxBytes) {
    if (bytes.length === 0) return new Uint8Array(0);
    try {
      return await promisify<Uint8Array, ZlibOptions, Buffer<ArrayBuffer>>(gunzip)(bytes, {
        maxOutputLength: readMaxBytes,
      });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_BUFFER_TOO_LARGE")
        throw new ConnectError("the request is not valid gzip", Code.InvalidArgument);
      const message = `message is larger than configured readMaxBytes ${readMaxBytes} after decompression`;
      throw new ConnectError(message, Code.ResourceExhausted, undefined, undefined, error);
    }
  },
};

/** Records an error that an operation threw, and returns the public error. */
export function mapConnectError(context: RequestContext, error: unknown, domain: string): ConnectError {
  const connectError = error instanceof ConnectError ? error : toConnectError(context.recordFailure(error), domain);
  recordConnectError(context, connectError);
  return connectError;
}

/** Records the outcome of a call by its public error. */
export function recordConnectError(context: RequestContext, error: ConnectError): void {
  context.code = codeToString(error.code);
  if (error.cause instanceof ServiceError) context.reason = error.cause.reason;
}

/** Sets gRPC trailers for a response message that does not serialise. The cause is logged. */
export function setInternalErrorTrailers(trailer: Headers, context: RequestContext, error: unknown): void {
  const { message } = context.recordFailure(error);
  trailer.set("grpc-status", String(Code.Internal));
  trailer.set("grpc-message", message);
}

/** Converts gRPC trailers for Node.js. */
export function toNodeTrailers(trailer: Headers): Record<string, string> {
  const fields = Object.fromEntries(trailer);
  const message = fields["grpc-message"];
  // Connect percent-encodes more than gRPC requires, and some clients, such as grpc-js, do not decode all of it.
  if (message !== undefined) {
    fields["grpc-message"] = decodeURIComponent(message).replace(/[^\x20-\x24\x26-\x7e]+/g, encodeURIComponent);
  }
  return fields;
}
