import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { ServiceError } from "../errors.js";
import { FairQuota } from "../resilience/fair-quota.js";
import { FairScheduler } from "../resilience/fair-scheduler.js";
import { Scheduler } from "../resilience/scheduler.js";
import { OverloadManager } from "./admission/overload-manager.js";
import { RateLimiter, type RateLimitOptions } from "./admission/rate-limiter.js";
import type { ReadTurns } from "./admission/read-turns.js";
import { createHeadersTooLargeError, createUrlTooLongError, RequestAdmission } from "./admission/request-admission.js";
import { DEFAULT_HTTP_LIMITS, HTTP1_STREAM_CONNECTION_SHARE, type HttpLimits } from "./connection/http-limits.js";
import { HTTP_CONNECT_METHOD, type HttpProtocolError } from "./connection/http1-server.js";
import { HttpSocketListener } from "./connection/listener.js";
import { Dispatcher } from "./dispatch.js";
import { createDocumentRoutes, type Documents } from "./documents.js";
import { identifyCaller } from "./request/caller.js";
import { toCodeName } from "./request/error-mapping.js";
import { InFlightRequests } from "./request/in-flight-requests.js";
import { type MountedService, traceOperations } from "./request/mounted-service.js";
import {
  type AccessLog,
  createRequestId,
  type InternalErrorReporter,
  type RequestTracer,
} from "./request/request-context.js";
import { formatRawErrorResponse, type HttpRoute, SUPPORTED_METHODS } from "./request/response.js";
import type { HeaderList } from "./request/response-headers.js";
import { createRestRoutes } from "./rest/rest-routes.js";
import { GrpcFastPath } from "./rpc/grpc-fast-path.js";
import { createRpcRoutes, type RpcRoutesOptions } from "./rpc/rpc-routes.js";
import { StreamPlaces } from "./stream/stream-places.js";
import { StreamingCalls } from "./stream/streaming-calls.js";

export interface HttpServerOptions {
  /** Address to listen on. */
  readonly host: string;
  /** Port to listen on; 0 picks a free one. */
  readonly port: number;
  readonly services: readonly MountedService[];
  /** Maximum duration of a unary call, in milliseconds. */
  readonly maxTimeoutMs: number;
  /** Documents at other paths. Default: none. */
  readonly documents?: Documents;
  /** Called once for each request of any protocol and outcome, when the response is sent or the caller is gone. */
  readonly log: AccessLog;
  /** Receives the cause of each INTERNAL response. */
  readonly onInternalError: InternalErrorReporter;
  /** Reads callers' addresses from X-Forwarded-For: set it behind a proxy that writes this header. Default: false. */
  readonly trustProxy?: boolean;
  /** Base of the links to the documentation in errors. Default: errors have none. */
  readonly docsUrl?: string | undefined;
  readonly limits?: Partial<HttpLimits>;
  /** Traces the calls of operations. Default: no tracing, at no cost. */
  readonly tracer?: RequestTracer | undefined;
  /** Divides the time of the event loop among callers. Default: one of its own. */
  readonly eventLoop?: FairScheduler;
  /** Divides what is read of HTTP/2 connections among turns of the event loop. Default: one of its own. */
  readonly reads?: ReadTurns;
  /** Runs the periodic checks of connections. Default: one of its own. */
  readonly scheduler?: Scheduler;
  /** Limits the calls of each caller. Default: no limit. */
  readonly rateLimit?: RateLimitOptions | undefined;
  /**
   * Serves common requests by fast paths. False serves all by the general path, with equal responses. Default: true.
   */
  readonly fastPaths?: boolean;
}

/** Share of the time of a stop after which streams that were not told yet are told at once: they need the rest to end. */
const DRAIN_SHARE = 0.8;

/**
 * Serves operations over HTTP GET with JSON, gRPC, gRPC-Web and Connect, on one port, with gRPC health checking and
 * reflection.
 *
 * @example
 * const services = [mountService(BridgeService, { getQuote, getTransferStatus, listAvailableRoutes })];
 * const address = { host: "127.0.0.1", port: 0 };
 * const server = new HttpServer({ ...address, services, maxTimeoutMs: 10_000, log, onInternalError });
 * const { url } = await server.listen();
 */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #limits: HttpLimits;
  readonly #draining = new AbortController();
  readonly #overload: OverloadManager;
  readonly #calls = new StreamingCalls(this.#draining.signal);
  readonly #pendingCalls: FairQuota;
  readonly #streamPlaces: RpcRoutesOptions["places"];
  readonly #requests: InFlightRequests;
  readonly #admission: RequestAdmission;
  readonly #dispatcher: Dispatcher;
  /** Undefined: plain gRPC calls take the general path, too. */
  readonly #grpc: GrpcFastPath | undefined;
  readonly #listener: HttpSocketListener;

  constructor(options: HttpServerOptions) {
    const { host, port, fastPaths = true, trustProxy = false, tracer } = options;
    const limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
    this.#options = options;
    this.#limits = limits;
    // Each open stream adds a listener.
    setMaxListeners(0, this.#draining.signal);
    const { scheduler = new Scheduler(), eventLoop = new FairScheduler() } = options;
    const overload = new OverloadManager(limits, scheduler, eventLoop, options.reads);
    this.#overload = overload;
    this.#pendingCalls = new FairQuota(() => limits.pendingCalls);
    this.#streamPlaces = createStreamPlaces(limits, overload.maxConnections);
    const rateLimiter = options.rateLimit && new RateLimiter(options.rateLimit);
    this.#admission = new RequestAdmission(limits, rateLimiter);
    this.#requests = new InFlightRequests(
      {
        ...options,
        eventLoop,
        pendingCalls: this.#pendingCalls,
        trustProxy,
        countMoreRequests: rateLimiter && ((context, count) => rateLimiter.countMore(context, count)),
      },
      overload,
    );
    const services = tracer === undefined ? options.services : options.services.map(traceOperations);
    const { routes, unaryMethods } = this.#createRoutes(services);
    const parts = { requests: this.#requests, admission: this.#admission, overload };
    this.#dispatcher = new Dispatcher(routes, parts);
    this.#grpc = fastPaths ? new GrpcFastPath({ methods: unaryMethods, limits, ...parts }) : undefined;
    this.#listener = new HttpSocketListener({
      host,
      port,
      limits,
      overload,
      onRequest: this.#dispatcher.dispatch,
      onStream: (stream, headers, rawHeaders, fallBack) => this.#onStream(stream, headers, rawHeaders, fallBack),
      onProtocolError: (protocolError, socket) => this.#onProtocolError(protocolError, socket),
      identifyCaller: (address, headers) =>
        identifyCaller(address, trustProxy ? headers["x-forwarded-for"]?.toString() : undefined),
    });
  }

  /** Starts to serve. Rejects if the address is not available. */
  async listen(): Promise<{ url: string; port: number }> {
    const address = await this.#listener.listen();
    return { url: formatUrl(address), port: address.port };
  }

  /**
   * Shuts down gracefully: reports NOT_SERVING, accepts no more connections, lets running requests finish for up to
   * `graceMs` milliseconds, then closes their connections. Further calls wait for the first.
   */
  close(graceMs: number): Promise<void> {
    this.#draining.abort();
    const timer = setTimeout(() => this.#calls.drainRest(), graceMs * DRAIN_SHARE);
    return this.#listener.close(graceMs).finally(() => clearTimeout(timer));
  }

  /** Returns what callers occupy at present. */
  getLoad() {
    const places = Object.values(this.#streamPlaces);
    return {
      ...this.#overload.getLoad(),
      pendingRequests: this.#pendingCalls.heldCount(),
      streamingCalls: places.reduce((sum, kind) => sum + kind.openCount, 0),
    };
  }

  /** Returns the handlers of all paths, and the methods that the fast path for gRPC serves. */
  #createRoutes(services: readonly MountedService[]) {
    const { fastPaths = true, documents = new Map() } = this.#options;
    const [limits, overload, places] = [this.#limits, this.#overload, this.#streamPlaces];
    const draining = this.#draining.signal;
    const calls = this.#calls;
    const { byPath, unaryMethods } = createRpcRoutes(services, {
      limits,
      draining,
      calls,
      places,
      overload,
      fastPaths,
    });
    const routes = new Map<string, HttpRoute>(byPath);
    const restRoutes = createRestRoutes(services, { fastPath: fastPaths, calls, places: places.operations });
    for (const [path, route] of restRoutes) routes.set(path, route);
    for (const [path, route] of createDocumentRoutes(documents)) {
      if (routes.has(path)) throw new Error(`an operation and a document share the path ${path}`);
      routes.set(path, route);
    }
    return { routes, unaryMethods };
  }

  #onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    fallBack: () => void,
  ): (() => void) | undefined {
    if (this.#grpc === undefined || this.#admission.exceedsHeaderLimits(rawHeaders)) return undefined;
    return this.#grpc.begin(stream, headers, (context, bufferedBody) => {
      this.#dispatcher.continueStream(stream, context, bufferedBody);
      fallBack();
    });
  }

  #onProtocolError(protocolError: HttpProtocolError, socket: Socket): string {
    const { status, error, headers = [] } = toHttpProtocolErrorResponse(protocolError, this.#limits);
    const { reason } = error;
    const code = toCodeName(reason);
    const context = this.#requests.findPending(socket);
    if (context !== undefined) {
      context.code = code;
      context.reason = reason;
      context.isMalformed = true;
      return formatRawErrorResponse(context, status, error, headers);
    }
    const requestId = createRequestId();
    const fields = { errorCode: protocolError.code };
    this.#options.log({ requestId, protocol: "rest", operation: "", code, durationMs: 0, fields }, reason);
    return formatRawErrorResponse(
      { requestId, rateLimitHeaders: [], docsUrl: this.#options.docsUrl },
      status,
      error,
      headers,
    );
  }
}

function createStreamPlaces(limits: HttpLimits, maxConnections: number): RpcRoutesOptions["places"] {
  const connections = Math.floor(maxConnections * HTTP1_STREAM_CONNECTION_SHARE);
  return {
    operations: new StreamPlaces({ total: limits.operationStreams, connections }),
    health: new StreamPlaces({ total: limits.streamingCalls }),
    generalPath: new StreamPlaces({ total: limits.generalStreamingCalls }),
  };
}

/** Returns a URL that can be called; wildcard addresses become the loopback address. */
function formatUrl({ address, family, port }: AddressInfo): string {
  if (family !== "IPv6") return `http://${address === "0.0.0.0" ? "127.0.0.1" : address}:${port}`;
  return `http://[${address === "::" ? "::1" : address}]:${port}`;
}

/** Errors of HTTP/2 sessions that sent too much. All others are malformed input. */
const FLOOD_ERROR_CODES: ReadonlySet<string> = new Set([
  "ERR_HTTP2_TOO_MANY_INVALID_FRAMES",
  "EXCESS_BYTES",
  "REFUSED_STREAMS",
]);

/** Maps input that Node.js did not accept as a request to a response. */
function toHttpProtocolErrorResponse(
  { code, rawPacket }: HttpProtocolError,
  limits: HttpLimits,
): { readonly status: number; readonly error: ServiceError; readonly headers?: HeaderList } {
  if (code === HTTP_CONNECT_METHOD) {
    const error = new ServiceError("METHOD_NOT_ALLOWED", "the method CONNECT is not supported");
    return { status: 405, error, headers: ["allow", SUPPORTED_METHODS] };
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    const line = rawPacket.subarray(0, limits.urlBytes);
    const isUrl = /^[A-Z]+ /.test(line.toString("latin1", 0, 10)) && !line.includes("\n");
    if (isUrl) return { status: 414, error: createUrlTooLongError(limits) };
    return { status: 431, error: createHeadersTooLargeError(limits) };
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return { status: 408, error: new ServiceError("INVALID_PARAMETER", "the request did not arrive in time") };
  }
  if (FLOOD_ERROR_CODES.has(code)) {
    return { status: 429, error: new ServiceError("RATE_LIMITED", "the connection sent too much data") };
  }
  return { status: 400, error: new ServiceError("INVALID_PARAMETER", "malformed HTTP request") };
}
