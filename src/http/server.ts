import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { ServiceError } from "../errors.js";
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from "./connection/http-limits.js";
import { CONNECT_METHOD, type ProtocolError } from "./connection/http1-server.js";
import { createHttpListener } from "./connection/listener.js";
import {
  createDispatcher,
  createHeadersTooLargeError,
  createUrlTooLongError,
  exceedsHeaderLimits,
  type StreamFallback,
} from "./dispatch.js";
import { createDocumentHandlers, type Documents } from "./documents.js";
import { toCodeName } from "./request/error-mapping.js";
import { createInFlightRegistry } from "./request/in-flight-registry.js";
import { type AnyOperation, decorateOperations, type MountedService } from "./request/mounted-service.js";
import {
  createRateLimiter,
  createRateLimitMiddleware,
  type RateLimitOptions,
  type SendRejection,
} from "./request/rate-limiter.js";
import {
  type AccessLog,
  type CallTracer,
  type HttpRequest,
  HttpRequestContext,
  type HttpResponse,
  type InternalErrorReporter,
} from "./request/request-context.js";
import { createRequestId } from "./request/request-id.js";
import { formatRawErrorResponse, type HeaderList, type PathHandler } from "./request/response.js";
import { createRestHandlers } from "./rest/rest-handlers.js";
import { createConnectFastPath } from "./rpc/connect-fast-path.js";
import { createGrpcFastPath } from "./rpc/grpc-fast-path.js";
import { createRpcHandlers } from "./rpc/rpc-handlers.js";
import { sendRpcError } from "./rpc/send-rpc-error.js";

export interface HttpServerOptions {
  /** Address to listen on. */
  readonly host: string;
  /** Port to listen on; 0 takes a free one. */
  readonly port: number;
  readonly services: readonly MountedService[];
  /** What stands at other paths. Default: nothing. */
  readonly documents?: Documents;
  /** Called once for each request of any protocol and outcome, when its answer is out or its caller gone. */
  readonly log: AccessLog;
  /** Gets what lies behind an answer INTERNAL. */
  readonly onInternalError: InternalErrorReporter;
  /** Take callers' addresses from X-Forwarded-For: true behind a proxy that sets it. Default: false. */
  readonly trustProxy?: boolean;
  readonly limits?: Partial<HttpLimits>;
  /** Follows the calls of the services' operations. Default: nobody does, at no cost. */
  readonly tracer?: CallTracer | undefined;
  /** Of the calls of each caller. Default: any number. */
  readonly rateLimit?: RateLimitOptions | undefined;
}

export interface HttpServer {
  /** Starts to serve. Rejects where the address cannot be had. */
  listen(): Promise<{ url: string; port: number }>;
  /**
   * Ends gracefully: says NOT_SERVING, takes no more connections, lets running requests finish for up to `graceMs`
   * milliseconds, then cuts them. Further calls wait for the first.
   */
  close(graceMs: number): Promise<void>;
  /** What is open now: connections, and requests that have no whole answer yet. */
  getLoad(): { readonly connections: number; readonly requests: number };
}

/**
 * Serves operations over HTTP GET with JSON, gRPC, gRPC-Web and Connect, on one port, with gRPC health checking and
 * reflection.
 *
 * @example
 * const server = createHttpServer({ host: "127.0.0.1", port: 0, services: [mount(...)], log, onInternalError });
 * const { url } = await server.listen();
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const limits = { ...DEFAULT_HTTP_LIMITS, ...options.limits };
  const draining = new AbortController();
  // Every open stream listens.
  setMaxListeners(0, draining.signal);
  const calls = createInFlightRegistry({ trustProxy: false, ...options });
  const services =
    options.tracer === undefined
      ? options.services
      : options.services.map((each) => decorateOperations(each, traceOperation));
  const { generalHandlers, fastPathMethods } = createRpcHandlers(services, limits, draining.signal);
  const rateLimit = options.rateLimit && createRateLimiter(options.rateLimit);
  const limitHandler = createRateLimitMiddleware(rateLimit);
  const handlers = new Map<string, PathHandler>(generalHandlers);
  for (const [path, method] of fastPathMethods) {
    const slow = generalHandlers.get(path);
    if (slow === undefined) continue;
    const handler = createConnectFastPath(method, limits, slow);
    const refuse: SendRejection = (exchange, refusal) => sendRpcError(exchange, refusal, method.errorDomain);
    handlers.set(path, method.isRateLimited ? limitHandler(handler, method.name, refuse) : handler);
  }
  for (const [path, handler] of createRestHandlers(services, limitHandler)) handlers.set(path, handler);
  for (const [path, handler] of createDocumentHandlers(options.documents ?? new Map())) {
    if (handlers.has(path)) throw new Error(`an operation and a document want ${path}`);
    handlers.set(path, handler);
  }
  const servePlainGrpc = createGrpcFastPath(fastPathMethods, limits, calls, rateLimit);
  const dispatch = createDispatcher(handlers, limits, calls);
  const handedOver = new WeakMap<ServerHttp2Stream, StreamFallback>();

  function onRequest(req: HttpRequest, res: HttpResponse): void {
    dispatch(req, res, "stream" in req ? handedOver.get(req.stream) : undefined);
  }

  function onStream(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    handOver: () => void,
  ): boolean {
    if (exceedsHeaderLimits(rawHeaders, limits)) return false;
    return servePlainGrpc(stream, headers, (call, bufferedBody) => {
      handedOver.set(stream, { context: call, bufferedBody });
      handOver();
    });
  }

  function onProtocolError(fault: ProtocolError, socket: Socket): string {
    const { status, error, headers = [] } = toErrorResponse(fault, limits);
    const { reason } = error;
    const call = calls.findPending(socket);
    if (call !== undefined) {
      call.code = toCodeName(reason);
      call.reason = reason;
      call.isMalformed = true;
      return formatRawErrorResponse(call, status, error, headers);
    }
    const requestId = createRequestId();
    calls.logRejected(requestId, reason, fault.code);
    return formatRawErrorResponse({ requestId, rateLimitHeaders: [] }, status, error, headers);
  }

  const listener = createHttpListener({
    host: options.host,
    port: options.port,
    limits,
    onRequest,
    onStream,
    onProtocolError,
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
    getLoad: () => ({ connections: listener.countConnections(), requests: calls.count() }),
  };
}

/** Runs an operation as a part of its call. */
function traceOperation(operation: AnyOperation): AnyOperation {
  // What operations see of a call is its record itself.
  return (request, context) =>
    context instanceof HttpRequestContext
      ? context.runTraced(() => operation(request, context))
      : operation(request, context);
}

/** Faults of HTTP/2 connections that are too much of something; the others are mistakes. */
const FLOOD_ERROR_CODES: ReadonlySet<string> = new Set(["ERR_HTTP2_TOO_MANY_INVALID_FRAMES", "EXCESS_BYTES"]);

function toErrorResponse(
  { code, rawPacket }: ProtocolError,
  limits: HttpLimits,
): { status: number; error: ServiceError; headers?: HeaderList } {
  if (code === CONNECT_METHOD) {
    const error = new ServiceError("METHOD_NOT_ALLOWED", "CONNECT is not served here");
    return { status: 405, error, headers: ["allow", "GET, HEAD, POST, OPTIONS"] };
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    const line = rawPacket.subarray(0, limits.urlBytes);
    const isUrl = /^[A-Z]+ /.test(line.toString("latin1", 0, 10)) && !line.includes("\n");
    if (isUrl) return { status: 414, error: createUrlTooLongError(limits) };
    return { status: 431, error: createHeadersTooLargeError(limits) };
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return { status: 408, error: new ServiceError("INVALID_PARAMETER", "the request did not come in time") };
  }
  if (FLOOD_ERROR_CODES.has(code))
    return { status: 429, error: new ServiceError("RATE_LIMITED", "too much came at once") };
  return { status: 400, error: new ServiceError("INVALID_PARAMETER", "this is no HTTP request") };
}

/** The address to call: where every address is listened on, the machine's own. */
function formatUrl({ address, family, port }: AddressInfo): string {
  if (family !== "IPv6") return `http://${address === "0.0.0.0" ? "127.0.0.1" : address}:${port}`;
  return `http://[${address === "::" ? "::1" : address}]:${port}`;
}
