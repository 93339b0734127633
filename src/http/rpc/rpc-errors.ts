import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { ServiceError } from "../../errors.js";
import { toConnectError } from "../request/error-mapping.js";
import type { RequestContext } from "../request/request-context.js";

// What gRPC and Connect say of a call's end, whichever way it was served.

/** Gzip with the truth about broken input; brotli would cost far more time than it saves bytes. */
export const gzipCompression: Compression = {
  ...compressionGzip,
  async decompress(bytes, readMaxBytes) {
    try {
      return await compressionGzip.decompress(bytes, readMaxBytes);
    } catch (error) {
      if (error instanceof ConnectError && error.code === Code.ResourceExhausted) throw error;
      throw new ConnectError("the request does not decompress", Code.InvalidArgument);
    }
  },
};

/** Notes what an operation threw, and gives what the caller is told. */
export function mapRpcError(call: RequestContext, error: unknown, domain: string): ConnectError {
  const told = error instanceof ConnectError ? error : toConnectError(call.recordFailure(error), domain);
  recordRpcError(call, told);
  return told;
}

/** Notes how a call ends, by what its caller is told. */
export function recordRpcError(call: RequestContext, told: ConnectError): void {
  call.code = codeToString(told.code);
  if (told.cause instanceof ServiceError) call.reason = told.cause.reason;
}

/** Puts a message of ours that does not serialise into gRPC's trailers. Why is for the log. */
export function setInternalErrorTrailers(trailer: Headers, call: RequestContext, error: unknown): void {
  const told = call.recordFailure(error);
  trailer.set("grpc-status", String(Code.Internal));
  trailer.set("grpc-message", told.message);
}

/** gRPC's trailers as Node.js takes them. */
export function toNodeTrailers(trailer: Headers): Record<string, string> {
  const fields = Object.fromEntries(trailer);
  const message = fields["grpc-message"];
  // Connect encodes more than gRPC asks for, and some clients, grpc-js among them, do not decode all of that.
  if (message !== undefined) {
    fields["grpc-message"] = decodeURIComponent(message).replace(/[^\x20-\x24\x26-\x7e]+/g, encodeURIComponent);
  }
  return fields;
}
