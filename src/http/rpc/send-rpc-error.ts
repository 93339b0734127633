import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { ServiceError } from "../../errors.js";
import { NO_STORE_HEADERS } from "../request/cache-headers.js";
import { buildCommonHeaders, type HttpExchange, sendTrailersOnly, writeHead } from "../request/response.js";
import { mapRpcError, toNodeTrailers } from "./rpc-errors.js";

/** Answers a call of gRPC, gRPC-Web or Connect of which nothing is read, in the words of its protocol. */
export function sendRpcError(exchange: HttpExchange, refusal: ServiceError, domain: string): void {
  const { req, res, context } = exchange;
  const told = mapRpcError(context, refusal, domain);
  if (context.protocol !== "rest") {
    const trailer = setTrailerStatus(new Headers(), told);
    sendTrailersOnly(exchange, Object.entries(toNodeTrailers(trailer)).flat());
    return;
  }
  context.protocol = req.method === "POST" ? "connect" : "connect-get";
  const body = Buffer.from(errorToJsonBytes(told, undefined));
  writeHead(res, codeToHttpStatus(told.code), [
    ...buildCommonHeaders(context),
    ...["content-type", "application/json", "content-length", String(body.length)],
    ...NO_STORE_HEADERS,
    ...[...told.metadata].flat(),
  ]);
  res.end(body);
}
