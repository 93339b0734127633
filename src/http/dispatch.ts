import type { IncomingMessage } from "node:http";
import { ServiceError } from "../errors.js";
import type { HttpLimits } from "./connection/http-limits.js";
import type { GivenBody } from "./request/body.js";
import { codeNameOf } from "./request/error-mapping.js";
import type { Calls } from "./request/in-flight-registry.js";
import type { HttpRequest, HttpResponse, Protocol, StreamCall } from "./request/request-context.js";
import { answerError, answerTrailersOnly, type Exchange, type PathHandler } from "./request/response.js";

/** A call that has begun on a stream, and what was read of its body there. */
export interface Begun {
  readonly call: StreamCall;
  readonly given: GivenBody;
}

/** Serves a request; `begun` where it had begun on its stream. */
export type Dispatch = (req: HttpRequest, res: HttpResponse, begun?: Begun) => void;

const HOST = "host";

/** gRPC's number for a method that is not there. */
const GRPC_UNIMPLEMENTED = "12";

/** Opens each request's record and gives the request to the handler of its path, or refuses it. */
export function createDispatch(handlers: ReadonlyMap<string, PathHandler>, limits: HttpLimits, calls: Calls): Dispatch {
  return (req, res, begun) => {
    const call = calls.open(req, res, begun?.call);
    call.protocol = protocolOf(req);
    const exchange: Exchange = { req, res, call, given: begun?.given };
    const target = req.url ?? "";
    if (target.length > limits.urlBytes) {
      answerError(exchange, urlTooLong(limits), { status: 414 });
      return;
    }
    // Over HTTP/2 Node.js takes up to 64 KiB, whatever the settings tell callers.
    if (hasTooMuch(req.rawHeaders, limits)) {
      readNoMore(exchange);
      answerError(exchange, headersTooLong(limits), { status: 431 });
      return;
    }
    const problem = "stream" in req ? undefined : problemOf(req);
    if (problem !== undefined) {
      readNoMore(exchange);
      answerError(exchange, new ServiceError("INVALID_PARAMETER", problem));
      return;
    }
    const { path, query } = split(target);
    const handler = handlers.get(path);
    if (handler !== undefined) handler(exchange, query);
    else answerUnknownPath(exchange);
  };
}

export function urlTooLong(limits: HttpLimits): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `the URL is longer than ${limits.urlBytes} bytes`);
}

export function headersTooLong({ headerBytes, headers }: HttpLimits): ServiceError {
  return new ServiceError(
    "INVALID_PARAMETER",
    `the headers are longer than ${headerBytes} bytes, or more than ${headers}`,
  );
}

/** Whether headers, names and values in turn, are longer or more than they may be. */
export function hasTooMuch(rawHeaders: readonly string[], { headerBytes, headers }: HttpLimits): boolean {
  let size = 0;
  for (const text of rawHeaders) size += text.length;
  return size > headerBytes || rawHeaders.length > 2 * headers;
}

/** What follows on a connection of HTTP/1 may be meant as part of this request: it is not to be taken for another. */
function readNoMore({ res, call }: Exchange): void {
  if ("stream" in res) return;
  res.shouldKeepAlive = false;
  call.malformed = true;
}

/** What makes a request of HTTP/1 one that others in front of us may have read in another way. */
function problemOf({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "this version of HTTP is not served";
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") return "this Transfer-Encoding is not served";
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length === HOST.length && name.toLowerCase() === HOST) hosts += 1;
  }
  if (hosts > 1) return "there is more than one Host header";
  return hosts === 0 && httpVersion === "1.1" ? "the Host header is missing" : undefined;
}

function protocolOf({ method, headers }: HttpRequest): Protocol {
  const type = headers["content-type"] ?? "";
  if (method !== "POST") return "rest";
  if (/^application\/grpc-web\b/i.test(type)) return "grpc-web";
  return /^application\/grpc\b/i.test(type) ? "grpc" : "rest";
}

/** Path and query of a request target, which may name a host in front as requests through a proxy do. */
function split(target: string): { path: string; query: string } {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*/i, "");
  const mark = local.indexOf("?");
  return mark === -1 ? { path: local, query: "" } : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

function answerUnknownPath(exchange: Exchange): void {
  const { call } = exchange;
  if (call.protocol === "rest") {
    answerError(exchange, new ServiceError("PATH_NOT_FOUND", "there is nothing at this path"));
    return;
  }
  // A gRPC client reads its own protocol's word for it, which tells it to try an older service.
  call.code = codeNameOf("METHOD_NOT_ALLOWED");
  answerTrailersOnly(exchange, [
    ...["grpc-status", GRPC_UNIMPLEMENTED],
    ...["grpc-message", "there is no such method"],
  ]);
}
