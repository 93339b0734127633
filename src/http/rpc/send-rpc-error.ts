import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { ServiceError } from "../../errors.js";
import { NO_STORE } from "../request/cache-headers.js";
import { answerTrailersOnly, commonHeaders, type Exchange, writeHead } from "../request/response.js";
import { tellFailure, trailerFields } from "./rpc-errors.js";

/** Answers a call of gRPC, gRPC-Web or Connect of which nothing is read, in the words of its protocol. */
export function refuseRpc(exchange: Exchange, refusal: ServiceError, domain: string): void {
  const { req, res, call } = exchange;
  const told = tellFailure(call, refusal, domain);
  if (call.protocol !== "rest") {
    const trailer = setTrailerStatus(new Headers(), told);
    answerTrailersOnly(exchange, Object.entries(trailerFields(trailer)).flat());
    return;
  }
  call.protocol = req.method === "POST" ? "connect" : "connect-get";
  const body = Buffer.from(errorToJsonBytes(told, undefined));
  writeHead(res, codeToHttpStatus(told.code), [
    ...commonHeaders(call),
    ...["content-type", "application/json", "content-length", String(body.length)],
    ...NO_STORE,
    ...[...told.metadata].flat(),
  ]);
  res.end(body);
}
