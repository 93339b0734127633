import type { IncomingMessage } from "node:http";
import { ServiceError } from "../errors.js";
import type { HttpLimits } from "./connection/http-limits.js";
import type { BufferedBody } from "./request/body.js";
import { toCodeName } from "./request/error-mapping.js";
import type { InFlightRegistry } from "./request/in-flight-registry.js";
import type { HttpRequest, HttpResponse, Protocol, StreamRequestContext } from "./request/request-context.js";
import { type HttpExchange, type PathHandler, sendError, sendTrailersOnly } from "./request/response.js";

/** A call that has begun on a stream, and what was read of its body there. */
export interface StreamFallback {
  readonly context: StreamRequestContext;
  readonly bufferedBody: BufferedBody;
}

/** Serves a request; `begun` where it had begun on its stream. */
export type Dispatcher = (req: HttpRequest, res: HttpResponse, begun?: StreamFallback) => void;

const HOST_HEADER = "host";

/** gRPC's number for a method that is not there. */
const GRPC_UNIMPLEMENTED = "12";

/** Opens each request's record and gives the request to the handler of its path, or refuses it. */
export function createDispatcher(
  handlers: ReadonlyMap<string, PathHandler>,
  limits: HttpLimits,
  calls: InFlightRegistry,
): Dispatcher {
  return (req, res, begun) => {
    const context = calls.register(req, res, begun?.context);
    context.protocol = detectProtocol(req);
    const exchange: HttpExchange = { req, res, context, bufferedBody: begun?.bufferedBody };
    const target = req.url ?? "";
    if (target.length > limits.urlBytes) {
      sendError(exchange, createUrlTooLongError(limits), { status: 414 });
      return;
    }
    // Over HTTP/2 Node.js takes up to 64 KiB, whatever the settings tell callers.
    if (exceedsHeaderLimits(req.rawHeaders, limits)) {
      disableKeepAlive(exchange);
      sendError(exchange, createHeadersTooLargeError(limits), { status: 431 });
      return;
    }
    const problem = "stream" in req ? undefined : findHttp1Violation(req);
    if (problem !== undefined) {
      disableKeepAlive(exchange);
      sendError(exchange, new ServiceError("INVALID_PARAMETER", problem));
      return;
    }
    const { path, query } = splitTarget(target);
    const handler = handlers.get(path);
    if (handler !== undefined) handler(exchange, query);
    else sendPathNotFound(exchange);
  };
}

export function createUrlTooLongError(limits: HttpLimits): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `the URL is longer than ${limits.urlBytes} bytes`);
}

export function createHeadersTooLargeError({ headerBytes, headers }: HttpLimits): ServiceError {
  return new ServiceError(
    "INVALID_PARAMETER",
    `the headers are longer than ${headerBytes} bytes, or more than ${headers}`,
  );
}

/** Whether headers, names and values in turn, are longer or more than they may be. */
export function exceedsHeaderLimits(rawHeaders: readonly string[], { headerBytes, headers }: HttpLimits): boolean {
  let size = 0;
  for (const text of rawHeaders) size += text.length;
  return size > headerBytes || rawHeaders.length > 2 * headers;
}

/** What follows on a connection of HTTP/1 may be meant as part of this request: it is not to be taken for another. */
function disableKeepAlive({ res, context }: HttpExchange): void {
  if ("stream" in res) return;
  res.shouldKeepAlive = false;
  context.isMalformed = true;
}

/** What makes a request of HTTP/1 one that others in front of us may have read in another way. */
function findHttp1Violation({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "this version of HTTP is not served";
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") return "this Transfer-Encoding is not served";
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length === HOST_HEADER.length && name.toLowerCase() === HOST_HEADER) hosts += 1;
  }
  if (hosts > 1) return "there is more than one Host header";
  return hosts === 0 && httpVersion === "1.1" ? "the Host header is missing" : undefined;
}

function detectProtocol({ method, headers }: HttpRequest): Protocol {
  const type = headers["content-type"] ?? "";
  if (method !== "POST") return "rest";
  if (/^application\/grpc-web\b/i.test(type)) return "grpc-web";
  return /^application\/grpc\b/i.test(type) ? "grpc" : "rest";
}

/** Path and query of a request target, which may name a host in front as requests through a proxy do. */
function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*/i, "");
  const mark = local.indexOf("?");
  return mark === -1 ? { path: local, query: "" } : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

function sendPathNotFound(exchange: HttpExchange): void {
  const { context } = exchange;
  if (context.protocol === "rest") {
    sendError(exchange, new ServiceError("PATH_NOT_FOUND", "there is nothing at this path"));
    return;
  }
  // A gRPC client reads its own protocol's word for it, which tells it to try an older service.
  context.code = toCodeName("METHOD_NOT_ALLOWED");
  sendTrailersOnly(exchange, [...["grpc-status", GRPC_UNIMPLEMENTED], ...["grpc-message", "there is no such method"]]);
}
