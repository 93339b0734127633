import type { ServerHttp2Stream } from "node:http2";
import { ServiceError } from "../errors.js";
import type { OverloadManager } from "./admission/overload-manager.js";
import type { RequestAdmission } from "./admission/request-admission.js";
import type { BufferedBody } from "./request/body.js";
import { toCodeName } from "./request/error-mapping.js";
import type { InFlightRequests } from "./request/in-flight-requests.js";
import type { HttpRequest, HttpResponse, Protocol, RequestContext } from "./request/request-context.js";
import {
  type HttpExchange,
  type HttpRoute,
  SUPPORTED_METHODS,
  sendError,
  sendOptions,
  sendTrailersOnly,
} from "./request/response.js";

/** What the start of a stream is expected to take, in milliseconds: it waits among longer requests, after short ones. */
const STREAM_START_MS = 2;

/** The gRPC status UNIMPLEMENTED. */
const GRPC_UNIMPLEMENTED = "12";

/** Opens the context of each request, has it admitted, and begins it on the route of its path. */
export class Dispatcher {
  readonly #routes: ReadonlyMap<string, HttpRoute>;
  readonly #requests: InFlightRequests;
  readonly #admission: RequestAdmission;
  readonly #overload: OverloadManager;
  /** Streams that the gRPC fast path began and the general path finishes, with the part of the body that was read. */
  readonly #fallbacks = new WeakMap<ServerHttp2Stream, Pick<HttpExchange, "context" | "bufferedBody">>();

  constructor(
    routes: ReadonlyMap<string, HttpRoute>,
    {
      requests,
      admission,
      overload,
    }: {
      readonly requests: InFlightRequests;
      readonly admission: RequestAdmission;
      readonly overload: OverloadManager;
    },
  ) {
    this.#routes = routes;
    this.#requests = requests;
    this.#admission = admission;
    this.#overload = overload;
  }

  /** Goes on with a stream that the fast path began when its request is dispatched. */
  continueStream(stream: ServerHttp2Stream, context: RequestContext, bufferedBody: BufferedBody): void {
    this.#fallbacks.set(stream, { context, bufferedBody });
  }

  /** Serves a request. A function of its own, for the events of a server. */
  readonly dispatch = (req: HttpRequest, res: HttpResponse): void => {
    const fallback = "stream" in req ? this.#fallbacks.get(req.stream) : undefined;
    const context = this.#requests.register(req, res, fallback?.context);
    context.protocol = detectProtocol(req);
    const exchange: HttpExchange = { req, res, context, bufferedBody: fallback?.bufferedBody };
    const refusal = this.#admission.findRefusal(req);
    if (refusal !== undefined) {
      const { status, error, isAmbiguous } = refusal;
      if (isAmbiguous) disableKeepAlive(exchange);
      sendError(exchange, error, { status });
      return;
    }
    const target = req.url ?? "";
    if (target === "*" && req.method === "OPTIONS") {
      sendOptions(exchange, SUPPORTED_METHODS);
      return;
    }
    const { path, query } = splitTarget(target);
    const route = this.#routes.get(path);
    if (route === undefined) sendPathNotFound(exchange);
    // A call that falls back from its stream has begun there.
    else if (exchange.bufferedBody !== undefined) route.handle(exchange, query);
    else {
      const reject = (error: ServiceError): void => {
        context.protocol = resolveProtocol(exchange, route);
        context.operation = route.operation;
        route.reject(exchange, error);
      };
      const { isRateLimited, isStream } = route;
      if (isStream) context.takenMs = STREAM_START_MS;
      // Probes and documents are late rather than refused: a process that is busy is not one that hangs. So are streams:
      // thousands are resumed at once when a replica stops, and each that is refused comes again.
      const refuse = isRateLimited && !isStream ? reject : undefined;
      this.#overload.beginInTurn(context, () => this.#serve(exchange, route, query), refuse);
    }
  };

  #serve(exchange: HttpExchange, route: HttpRoute, query: string): void {
    const { req, context } = exchange;
    // Malformed requests count too: a flood of them would be free otherwise. CORS preflights do not count.
    const isRateLimited = route.isRateLimited && req.method !== "OPTIONS";
    const counting = this.#admission.begin(context, resolveProtocol(exchange, route), route.operation, isRateLimited);
    if (counting === undefined) {
      route.handle(exchange, query);
      return;
    }
    void counting.then((rejection) => {
      if (context.isAborted) return;
      if (rejection === undefined) route.handle(exchange, query);
      else route.reject(exchange, rejection);
    });
  }
}

/** Closes an HTTP/1 connection after the response. */
function disableKeepAlive({ res, context }: HttpExchange): void {
  if ("stream" in res) return;
  res.shouldKeepAlive = false;
  context.isMalformed = true;
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
  sendTrailersOnly(exchange, ["grpc-status", GRPC_UNIMPLEMENTED, "grpc-message", "method not found"]);
}
