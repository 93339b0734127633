import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { ServiceError } from "../../errors.js";
import { NO_STORE_HEADERS } from "../request/cache-headers.js";
import { buildCommonHeaders, type HttpExchange, sendTrailersOnly, writeHead } from "../request/response.js";
import { mapConnectError, toNodeTrailers } from "./rpc-errors.js";

/** Answers a gRPC, gRPC-Web or Connect call with an error of its protocol, without reading the request. */
export function sendRpcError(exchange: HttpExchange, error: ServiceError, domain: string): void {
  const { res, context } = exchange;
  const connectError = mapConnectError(context, error, domain);
  if (!context.protocol.startsWith("connect")) {
    const trailer = setTrailerStatus(new Headers(), connectError);
    sendTrailersOnly(exchange, Object.entries(toNodeTrailers(trailer)).flat());
    return;
  }
  const body = Buffer.from(errorToJsonBytes(connectError, undefined));
  writeHead(res, codeToHttpStatus(connectError.code), [
    ...buildCommonHeaders(context),
    ...["content-type", "application/json", "content-length", String(body.length)],
    ...NO_STORE_HEADERS,
    ...[...connectError.metadata].flat(),
  ]);
  res.end(body);
}
