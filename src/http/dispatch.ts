import { ServiceError } from "../errors.js";
import { answerError, commonHeaders, type Exchange, type PathHandler } from "./answer.js";
import type { GivenBody } from "./body.js";
import type { Calls, HttpRequest, HttpResponse, Protocol, StreamCall } from "./call.js";
import { codeNameOf } from "./errors.js";
import type { HttpLimits } from "./limits.js";

/** A call that has begun on a stream, and what was read of its body there. */
export interface Begun {
  readonly call: StreamCall;
  readonly given: GivenBody;
}

/** Serves a request; `begun` where it had begun on its stream. */
export type Dispatch = (req: HttpRequest, res: HttpResponse, begun?: Begun) => void;

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
    if (req.httpVersion === "1.1" && req.headers.host === undefined) {
      answerError(exchange, new ServiceError("INVALID_PARAMETER", "the Host header is missing"));
      return;
    }
    // Over HTTP/2 Node.js takes up to 64 KiB, whatever the settings tell callers.
    if (req.httpVersionMajor > 1 && sizeOf(req.rawHeaders) > limits.headerBytes) {
      answerError(exchange, headersTooLong(limits), { status: 431 });
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

export function headersTooLong(limits: HttpLimits): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `the headers are longer than ${limits.headerBytes} bytes`);
}

export function sizeOf(texts: readonly string[]): number {
  return texts.reduce((size, text) => size + text.length, 0);
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
  const { res, call } = exchange;
  if (call.protocol === "rest") {
    answerError(exchange, new ServiceError("PATH_NOT_FOUND", "there is nothing at this path"));
    return;
  }
  // A gRPC client reads its own protocol's word for it, which tells it to try an older service.
  call.code = codeNameOf("METHOD_NOT_ALLOWED");
  const headers = [
    ...commonHeaders(call.requestId),
    ...["content-type", call.protocol === "grpc" ? "application/grpc" : "application/grpc-web+proto"],
    ...["grpc-status", GRPC_UNIMPLEMENTED],
    ...["grpc-message", "there is no such method"],
  ];
  // Not by writeHead: a status that is no trailer must come with the end of the stream in one frame.
  for (let i = 0; i + 1 < headers.length; i += 2) res.setHeader(headers[i] ?? "", headers[i + 1] ?? "");
  res.end();
}
