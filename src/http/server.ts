import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { createBeginRequest } from "./admission/begin.js";
import { createBodyBudget } from "./admission/body-budget.js";
import { createRateLimiter, type RateLimitOptions } from "./admission/rate-limiter.js";
import { createStreamQuota } from "./admission/stream-quota.js";
import { capToFileDescriptorLimit } from "./connection/connection-registry.js";
import { CONNECTION_STREAM_SHARE, DEFAULT_HTTP_LIMITS, type HttpLimits } from "./connection/http-limits.js";
import type { HttpProtocolError } from "./connection/http1-server.js";
import { type ConnectionLoad, createHttpSocketListener } from "./connection/listener.js";
import { toHttpProtocolErrorResponse } from "./connection/protocol-errors.js";
import { createDispatcher, exceedsHeaderLimits, type StreamFallback } from "./dispatch.js";
import { createDocumentRoutes, type Documents } from "./documents.js";
import { identifyCaller } from "./request/caller.js";
import { toCodeName } from "./request/error-mapping.js";
import { createInFlightRegistry } from "./request/in-flight-registry.js";
import {
  type AnyOperation,
  type AnyStreamOperation,
  decorateOperations,
  type MountedService,
} from "./request/mounted-service.js";
import {
  type AccessLog,
  type HttpRequest,
  HttpRequestContext,
  type HttpResponse,
  type InternalErrorReporter,
  type RequestTracer,
} from "./request/request-context.js";
import { createRequestId } from "./request/request-id.js";
import { formatRawErrorResponse, type HttpRoute } from "./request/response.js";
import { createRestRoutes } from "./rest/rest-routes.js";
import { createConnectFastPath } from "./rpc/connect-fast-path.js";
import { createGrpcFastPath } from "./rpc/grpc-fast-path.js";
import { createRpcRoutes } from "./rpc/rpc-routes.js";
import { createStreamingCalls } from "./stream/streaming-calls.js";

export interface HttpServerOptions {
  /** Address to listen on. */
  readonly host: string;
  /** Port to listen on; 0 picks a free one. */
  readonly port: number;
  readonly services: readonly MountedService[];
  /** Documents at other paths. Default: none. */
  readonly documents?: Documents;
  /** Called once for each request of any protocol and outcome, when the response is sent or the caller is gone. */
  readonly log: AccessLog;
  /** Receives the cause of each INTERNAL response. */
  readonly onInternalError: InternalErrorReporter;
  /** Reads callers' addresses from X-Forwarded-For: set it behind a proxy that writes this header. Default: false. */
  readonly trustProxy?: boolean;
  readonly limits?: Partial<HttpLimits>;
  /** Traces the calls of operations. Default: no tracing, at no cost. */
  readonly tracer?: RequestTracer | undefined;
  /** Limits the calls of each caller. Default: no limit. */
  readonly rateLimit?: RateLimitOptions | undefined;
  /** Serves common requests by fast paths. False serves all by the general path, with equal responses. Default: true. */
  readonly fastPaths?: boolean;
}

/** What the connections hold, and what their requests do. */
export interface HttpLoad extends Omit<ConnectionLoad, "cuts"> {
  /** Requests without a complete response. */
  readonly requests: number;
  readonly streamingCalls: number;
  /** What incomplete request bodies take. */
  readonly receivedBytes: number;
  /** How many requests, connections and streams have been refused or closed at a limit so far, by cause. */
  readonly cuts: ConnectionLoad["cuts"] & { readonly received_bytes: number };
}

export interface HttpServer {
  /** Starts to serve. Rejects if the address is not available. */
  listen(): Promise<{ url: string; port: number }>;
  /**
   * Shuts down gracefully: reports NOT_SERVING, accepts no more connections, lets running requests finish for up to
   * `graceMs` milliseconds, then closes their connections. Further calls wait for the first.
   */
  close(graceMs: number): Promise<void>;
  /** Returns what callers occupy at present. */
  getLoad(): HttpLoad;
}

/**
 * Serves operations over HTTP GET with JSON, gRPC, gRPC-Web and Connect, on one port, with gRPC health checking and
 * reflection.
 *
 * @example
 * const services = [mountService(BridgeService, { getQuote, getTransferStatus, listAvailableRoutes })];
 * const server = createHttpServer({ host: "127.0.0.1", port: 0, services, log, onInternalError });
 * const { url } = await server.listen();
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { fastPaths = true } = options;
  const limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
  const draining = new AbortController();
  // Each open stream adds a listener.
  setMaxListeners(0, draining.signal);
  const rateLimiter = options.rateLimit && createRateLimiter(options.rateLimit);
  const registry = createInFlightRegistry({
    trustProxy: false,
    ...options,
    countMoreRequests: rateLimiter?.countMore,
  });
  const services =
    options.tracer === undefined
      ? options.services
      : options.services.map((service) => decorateOperations(service, traceOperation, traceStreamOperation));
  const begin = createBeginRequest(rateLimiter);

  const streamQuotas = {
    operations: createStreamQuota({
      total: limits.operationStreams,
      connections: Math.floor(capToFileDescriptorLimit(limits.connections) * CONNECTION_STREAM_SHARE),
    }),
    health: createStreamQuota({ total: limits.streamingCalls }),
    generalPath: createStreamQuota({ total: limits.generalStreamingCalls }),
  };
  const budget = createBodyBudget(limits.receivedBytes);
  const calls = createStreamingCalls(draining.signal);
  const { generalRoutes, fastPathMethods, streamHandlers } = createRpcRoutes(services, {
    ...{ limits, draining: draining.signal, calls, quotas: streamQuotas, budget },
  });
  const routes = new Map<string, HttpRoute>(generalRoutes);
  for (const [path, method] of fastPaths ? fastPathMethods : []) {
    const general = generalRoutes.get(path);
    if (general === undefined) continue;
    routes.set(path, { ...general, handle: createConnectFastPath(method, limits, budget, general.handle) });
  }
  for (const [path, handle] of fastPaths ? streamHandlers : []) {
    const general = generalRoutes.get(path);
    if (general !== undefined) routes.set(path, { ...general, handle });
  }
  const restOptions = { fastPath: fastPaths, calls, quota: streamQuotas.operations };
  for (const [path, route] of createRestRoutes(services, restOptions)) routes.set(path, route);
  for (const [path, route] of createDocumentRoutes(options.documents ?? new Map())) {
    if (routes.has(path)) throw new Error(`an operation and a document share the path ${path}`);
    routes.set(path, route);
  }
  const dispatch = createDispatcher(routes, limits, registry, begin);
  const serveGrpc = fastPaths ? createGrpcFastPath(fastPathMethods, limits, registry, begin, budget) : undefined;
  const fallbacks = new WeakMap<ServerHttp2Stream, StreamFallback>();

  function onRequest(req: HttpRequest, res: HttpResponse): void {
    dispatch(req, res, "stream" in req ? fallbacks.get(req.stream) : undefined);
  }

  function onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    fallBack: () => void,
  ): (() => void) | undefined {
    if (serveGrpc === undefined || exceedsHeaderLimits(rawHeaders, limits)) return undefined;
    return serveGrpc(stream, headers, (context, bufferedBody) => {
      fallbacks.set(stream, { context, bufferedBody });
      fallBack();
    });
  }

  function onProtocolError(protocolError: HttpProtocolError, socket: Socket): string {
    const { status, error, headers = [] } = toHttpProtocolErrorResponse(protocolError, limits);
    const { reason } = error;
    const context = registry.findPending(socket);
    if (context !== undefined) {
      context.code = toCodeName(reason);
      context.reason = reason;
      context.isMalformed = true;
      return formatRawErrorResponse(context, status, error, headers);
    }
    const requestId = createRequestId();
    registry.logRejected(requestId, reason, protocolError.code);
    return formatRawErrorResponse({ requestId, rateLimitHeaders: [] }, status, error, headers);
  }

  const listener = createHttpSocketListener({
    host: options.host,
    port: options.port,
    limits,
    onRequest,
    onStream,
    onProtocolError,
    identifyCaller: (address, headers) =>
      identifyCaller(address, options.trustProxy ? headers["x-forwarded-for"]?.toString() : undefined),
  });
  return {
    async listen() {
      const address = await listener.listen();
      return { url: formatUrl(address), port: address.port };
    },
    close(graceMs) {
      draining.abort();
      return listener.close(graceMs);
    },
    getLoad() {
      const load = listener.getLoad();
      return {
        ...load,
        requests: registry.count(),
        streamingCalls: Object.values(streamQuotas).reduce((sum, quota) => sum + quota.openCount(), 0),
        receivedBytes: budget.countBytes(),
        cuts: { ...load.cuts, received_bytes: budget.countRefused() },
      };
    },
  };
}

/** Runs an operation within the trace of its call. */
function traceOperation(operation: AnyOperation): AnyOperation {
  // The call context of an operation is the request context itself.
  return (request, context) =>
    context instanceof HttpRequestContext
      ? context.runTraced(() => operation(request, context))
      : operation(request, context);
}

/** Opens a stream within the trace of its call. */
function traceStreamOperation(operation: AnyStreamOperation): AnyStreamOperation {
  return (request, stream, context) =>
    context instanceof HttpRequestContext
      ? context.runTraced(() => operation(request, stream, context))
      : operation(request, stream, context);
}

/** Returns a URL that can be called; wildcard addresses become the loopback address. */
function formatUrl({ address, family, port }: AddressInfo): string {
  if (family !== "IPv6") return `http://${address === "0.0.0.0" ? "127.0.0.1" : address}:${port}`;
  return `http://[${address === "::" ? "::1" : address}]:${port}`;
}
