import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, codeToString, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { ServiceError } from "../../errors.js";
import { toConnectError } from "../request/error-mapping.js";
import type { RequestContext } from "../request/request-context.js";
import { type HttpExchange, sendTrailersOnly, writeHead } from "../request/response.js";
import { buildCommonHeaders, NO_STORE_HEADERS, toHeaderList } from "../request/response-headers.js";

// The outcome of a call in gRPC and Connect, for the fast paths and the general path.

/** Records an error that an operation threw, and returns the public error. */
export function mapConnectError(context: RequestContext, error: unknown, domain: string): ConnectError {
  const connectError =
    error instanceof ConnectError ? error : toConnectError(context.recordFailure(error), domain, context);
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

/** Answers a gRPC, gRPC-Web or Connect call with an error of its protocol, without reading the request. */
export function sendRpcError(exchange: HttpExchange, error: ServiceError, domain: string): void {
  const { res, context } = exchange;
  const connectError = mapConnectError(context, error, domain);
  if (!context.protocol.startsWith("connect")) {
    const trailer = setTrailerStatus(new Headers(), connectError);
    sendTrailersOnly(exchange, toHeaderList(toNodeTrailers(trailer)));
    return;
  }
  const body = Buffer.from(errorToJsonBytes(connectError, undefined));
  writeHead(res, codeToHttpStatus(connectError.code), [
    ...buildCommonHeaders(context),
    "content-type",
    "application/json",
    "content-length",
    String(body.length),
    ...NO_STORE_HEADERS,
    ...[...connectError.metadata].flat(),
  ]);
  res.end(body);
}
