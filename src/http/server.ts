import { setMaxListeners } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { ServiceError } from "../errors.js";
import { answerError, commonHeaders, type Exchange, type PathHandler, rawErrorAnswer } from "./answer.js";
import {
  type AccessLog,
  createCalls,
  type HttpRequest,
  type HttpResponse,
  type InternalErrorReport,
  newRequestId,
  type Protocol,
} from "./call.js";
import { createRpcHandlers } from "./connect.js";
import { codeNameOf } from "./errors.js";
import { DEFAULT_LIMITS, type HttpLimits } from "./limits.js";
import { CONNECT_METHOD, createListener, type Malformed } from "./listener.js";
import type { MountedService } from "./mount.js";
import { createRestHandlers } from "./rest/handler.js";

export interface HttpServerOptions {
  /** Address to listen on. */
  readonly host: string;
  /** Port to listen on; 0 takes a free one. */
  readonly port: number;
  readonly services: readonly MountedService[];
  /** Called once for each request of any protocol and outcome, when its answer is out or its caller gone. */
  readonly log: AccessLog;
  /** Gets what lies behind an answer INTERNAL. */
  readonly onInternalError: InternalErrorReport;
  /** Take callers' addresses from X-Forwarded-For: true behind a proxy that sets it. Default: false. */
  readonly trustProxy?: boolean;
  readonly limits?: Partial<HttpLimits>;
}

export interface HttpServer {
  /** Starts to serve. Rejects where the address cannot be had. */
  listen(): Promise<{ url: string; port: number }>;
  /**
   * Ends gracefully: says NOT_SERVING, takes no more connections, lets running requests finish for up to `graceMs`
   * milliseconds, then cuts them. Further calls wait for the first.
   */
  close(graceMs: number): Promise<void>;
}

/** gRPC's number for a method that is not there. */
const GRPC_UNIMPLEMENTED = "12";

/**
 * Serves operations over HTTP GET with JSON, gRPC, gRPC-Web and Connect, on one port, with gRPC health checking and
 * reflection.
 *
 * @example
 * const server = createHttpServer({ host: "127.0.0.1", port: 0, services: [mount(...)], log, onInternalError });
 * const { url } = await server.listen();
 */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const draining = new AbortController();
  // Every open stream listens.
  setMaxListeners(0, draining.signal);
  const calls = createCalls({ trustProxy: false, ...options });
  const handlers = new Map<string, PathHandler>([
    ...createRpcHandlers(options.services, limits, draining.signal),
    ...createRestHandlers(options.services),
  ]);

  function onRequest(req: HttpRequest, res: HttpResponse): void {
    const call = calls.open(req, res);
    call.protocol = protocolOf(req);
    const exchange: Exchange = { req, res, call };
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
  }

  function onMalformed(fault: Malformed, socket: Socket): string {
    const { status, error, headers } = refusalOf(fault, limits);
    const code = codeNameOf(error.reason);
    const call = calls.inProgress(socket);
    const requestId = call?.requestId ?? newRequestId();
    if (call === undefined) calls.refused(requestId, code);
    else Object.assign(call, { code, malformed: true });
    return rawErrorAnswer(requestId, status, error, headers);
  }

  const listener = createListener({ host: options.host, port: options.port, limits, onRequest, onMalformed });
  return {
    async listen() {
      const address = await listener.listen();
      return { url: urlOf(address), port: address.port };
    },
    close(graceMs) {
      draining.abort();
      return listener.close(graceMs);
    },
  };
}

function refusalOf({ code, packet }: Malformed, limits: HttpLimits) {
  if (code === CONNECT_METHOD) {
    const error = new ServiceError("METHOD_NOT_ALLOWED", "CONNECT is not served here");
    return { status: 405, error, headers: { allow: "GET, HEAD, POST, OPTIONS" } };
  }
  if (code === "HPE_HEADER_OVERFLOW") {
    const line = packet.subarray(0, limits.urlBytes);
    const isUrl = /^[A-Z]+ /.test(line.toString("latin1", 0, 10)) && !line.includes("\n");
    if (isUrl) return { status: 414, error: urlTooLong(limits) };
    return { status: 431, error: headersTooLong(limits) };
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return { status: 408, error: new ServiceError("INVALID_PARAMETER", "the request did not come in time") };
  }
  return { status: 400, error: new ServiceError("INVALID_PARAMETER", "this is no HTTP request") };
}

function urlTooLong(limits: HttpLimits): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `the URL is longer than ${limits.urlBytes} bytes`);
}

function headersTooLong(limits: HttpLimits): ServiceError {
  return new ServiceError("INVALID_PARAMETER", `the headers are longer than ${limits.headerBytes} bytes`);
}

function sizeOf(texts: readonly string[]): number {
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
  const headers = {
    ...commonHeaders(call.requestId),
    "content-type": call.protocol === "grpc" ? "application/grpc" : "application/grpc-web+proto",
    "grpc-status": GRPC_UNIMPLEMENTED,
    "grpc-message": "there is no such method",
  };
  // Not by writeHead: a status that is no trailer must come with the end of the stream in one frame.
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end();
}

/** The address to call: where every address is listened on, the machine's own. */
function urlOf({ address, family, port }: AddressInfo): string {
  if (family !== "IPv6") return `http://${address === "0.0.0.0" ? "127.0.0.1" : address}:${port}`;
  return `http://[${address === "::" ? "::1" : address}]:${port}`;
}
