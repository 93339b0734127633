import fc from "fast-check";
import type { RawHttpRequest } from "../support/service/http-connections.js";
import { type KnownTransfer, methodsWith } from "./grammar/methods.js";
import { arbitraryHttpRequests, getRequests } from "./grammar/rest-requests.js";
import { connectGetRequests, connectPostRequests, grpcRequests } from "./grammar/rpc-requests.js";

// Requests of every protocol: valid ones with none, some or many of their parts damaged.

/** Valid and invalid requests of every protocol. */
export function arbitraryRequest(known: readonly KnownTransfer[]): fc.Arbitrary<RawHttpRequest> {
  const methods = methodsWith(known);
  const requests = methods.flatMap((method) => [
    { weight: 4, arbitrary: getRequests(method) },
    { weight: 3, arbitrary: connectPostRequests(method) },
    { weight: 2, arbitrary: connectGetRequests(method) },
    { weight: 3, arbitrary: grpcRequests(method) },
  ]);
  return fc.oneof(...requests, { weight: 4, arbitrary: arbitraryHttpRequests });
}

/** Prints a request for a failure message. */
export function describeRequest({ isHttp2, method, target, headers, body }: RawHttpRequest): string {
  const shown = body === undefined ? "" : ` ${body.length > 300 ? `${body.length} bytes` : body.toString("base64")}`;
  return `${isHttp2 ? "HTTP/2" : "HTTP/1.1"} ${method} ${target} ${JSON.stringify(headers)}${shown}`;
}
