import type { IncomingMessage } from "node:http";
import { ServiceError } from "../errors.js";
import type { BeginRequest } from "./admission/begin.js";
import type { HttpLimits } from "./connection/http-limits.js";
import { createHeadersTooLargeError, createUrlTooLongError } from "./connection/protocol-errors.js";
import type { BufferedBody } from "./request/body.js";
import { toCodeName } from "./request/error-mapping.js";
import type { InFlightRegistry } from "./request/in-flight-registry.js";
import type { HttpRequest, HttpRequestContext, HttpResponse, Protocol } from "./request/request-context.js";
import {
  ALL_METHODS,
  type HttpExchange,
  type HttpRoute,
  sendError,
  sendOptions,
  sendTrailersOnly,
} from "./request/response.js";

/** A stream that the gRPC fast path began and the general path finishes. */
export interface StreamFallback {
  readonly context: HttpRequestContext;
  /** The part of the body that the fast path has read. */
  readonly bufferedBody: BufferedBody;
}

/** Serves a request; `fallback` if the fast path began it on its stream. */
export type Dispatcher = (req: HttpRequest, res: HttpResponse, fallback?: StreamFallback) => void;

const HOST_HEADER = "host";

/** The gRPC status UNIMPLEMENTED. */
const GRPC_UNIMPLEMENTED = "12";

/** Opens the context of each request, checks the request, and begins it on the route of its path. */
export function createDispatcher(
  routes: ReadonlyMap<string, HttpRoute>,
  limits: HttpLimits,
  registry: InFlightRegistry,
  begin: BeginRequest,
): Dispatcher {
  function serve(exchange: HttpExchange, route: HttpRoute, query: string): void {
    const { req, context, bufferedBody } = exchange;
    // A call that falls back from its stream has begun there.
    if (bufferedBody !== undefined) {
      route.handle(exchange, query);
      return;
    }
    // Malformed requests count too: a flood of them would be free otherwise. CORS preflights do not count.
    const isRateLimited = route.isRateLimited && req.method !== "OPTIONS";
    const admission = begin(context, resolveProtocol(exchange, route), route.operation, isRateLimited);
    if (admission === undefined) {
      route.handle(exchange, query);
      return;
    }
    void admission.then((rejection) => {
      if (context.isAborted) return;
      if (rejection === undefined) route.handle(exchange, query);
      else route.reject(exchange, rejection);
    });
  }

  return (req, res, fallback) => {
    const context = registry.register(req, res, fallback?.context);
    context.protocol = detectProtocol(req);
    const exchange: HttpExchange = { req, res, context, bufferedBody: fallback?.bufferedBody };
    const target = req.url ?? "";
    if (target.length > limits.urlBytes) {
      sendError(exchange, createUrlTooLongError(limits), { status: 414 });
      return;
    }
    // Over HTTP/2 Node.js accepts up to 64 KiB, whatever the SETTINGS frame announces.
    if (exceedsHeaderLimits(req.rawHeaders, limits)) {
      disableKeepAlive(exchange);
      sendError(exchange, createHeadersTooLargeError(limits), { status: 431 });
      return;
    }
    const violation = "stream" in req ? undefined : findHttp1Violation(req);
    if (violation !== undefined) {
      disableKeepAlive(exchange);
      sendError(exchange, new ServiceError("INVALID_PARAMETER", violation));
      return;
    }
    if (target === "*" && req.method === "OPTIONS") {
      sendOptions(exchange, ALL_METHODS);
      return;
    }
    const { path, query } = splitTarget(target);
    const route = routes.get(path);
    if (route !== undefined) serve(exchange, route, query);
    else sendPathNotFound(exchange);
  };
}

/** Returns whether raw headers, in Node's flat form, exceed the limit for their size or for their number. */
export function exceedsHeaderLimits(rawHeaders: readonly string[], { headerBytes, headers }: HttpLimits): boolean {
  let size = 0;
  for (const text of rawHeaders) size += text.length;
  return size > headerBytes || rawHeaders.length > 2 * headers;
}

/** Closes an HTTP/1 connection after the response: bytes that follow may belong to this request, not to a next one. */
function disableKeepAlive({ res, context }: HttpExchange): void {
  if ("stream" in res) return;
  res.shouldKeepAlive = false;
  context.isMalformed = true;
}

/**
 * Returns what makes an HTTP/1 request ambiguous. A proxy in front may have read such a request differently, which
 * enables request smuggling (RFC 9112 3.2, 6.3 and 11.2).
 */
function findHttp1Violation({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "this HTTP version is not supported";
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "chunked") return "this Transfer-Encoding is not supported";
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length === HOST_HEADER.length && name.toLowerCase() === HOST_HEADER) hosts += 1;
  }
  if (hosts > 1) return "there is more than one Host header";
  return hosts === 0 && httpVersion === "1.1" ? "the Host header is missing" : undefined;
}

/** Returns the protocol as far as the headers show it. Connect shows only in the path. */
function detectProtocol({ method, headers }: HttpRequest): Protocol {
  const type = headers["content-type"] ?? "";
  if (method !== "POST") return "rest";
  if (/^application\/grpc-web\b/i.test(type)) return "grpc-web";
  return /^application\/grpc\b/i.test(type) ? "grpc" : "rest";
}

function resolveProtocol({ req, context }: HttpExchange, { isRpc }: HttpRoute): Protocol {
  if (!isRpc || context.protocol !== "rest") return context.protocol;
  return req.method === "GET" ? "connect-get" : "connect";
}

/** Splits a request target into path and query. Requests through a proxy have an absolute URL as their target. */
function splitTarget(target: string): { path: string; query: string } {
  const local = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*/i, "");
  const mark = local.indexOf("?");
  return mark === -1 ? { path: local, query: "" } : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

function sendPathNotFound(exchange: HttpExchange): void {
  const { context } = exchange;
  if (context.protocol === "rest") {
    sendError(exchange, new ServiceError("PATH_NOT_FOUND", "path not found"));
    return;
  }
  // UNIMPLEMENTED makes gRPC clients try an older version of the service.
  context.code = toCodeName("METHOD_NOT_ALLOWED");
  sendTrailersOnly(exchange, [...["grpc-status", GRPC_UNIMPLEMENTED], ...["grpc-message", "method not found"]]);
}
