import { type ServerResponse, STATUS_CODES } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { cors } from "@connectrpc/connect";
import { ServiceError } from "../../errors.js";
import { createTurnClock } from "../../resilience/clock.js";
import type { BufferedBody, IncomingCall } from "./body.js";
import {
  type DocsLocation,
  toCodeName,
  toErrorBody,
  toErrorHeaders,
  toHelpUrl,
  toHttpStatus,
} from "./error-mapping.js";
import type { HttpResponse, RequestContext } from "./request-context.js";
import {
  buildCommonHeaders,
  buildSharedHeaders,
  type HeaderList,
  NO_STORE_HEADERS,
  toHeaderList,
} from "./response-headers.js";

/** A request that is answered. */
export interface HttpExchange extends IncomingCall {
  /** The part of the request body that a fast path has read. */
  readonly bufferedBody?: BufferedBody | undefined;
}

/** Handles the requests to one path; `query` is the part of the URL after the `?`. */
export type PathHandler = (exchange: HttpExchange, query: string) => void;

/** Serves the requests to one path. */
export interface HttpRoute {
  /** Full name of service and method, or the path of a document. */
  readonly operation: string;
  /** Whether the path serves gRPC, gRPC-Web and Connect rather than plain HTTP. */
  readonly isRpc: boolean;
  /** Whether its requests count against the rate limit of their callers. */
  readonly isRateLimited: boolean;
  /** Whether its responses are streams. Default: they are not. */
  readonly isStream?: boolean;
  readonly handle: PathHandler;
  /** Answers a request that exceeds the rate limit. */
  readonly reject: (exchange: HttpExchange, error: ServiceError) => void;
}

/** The methods that some path allows: what OPTIONS for the server as a whole returns (RFC 9110 9.3.7). */
export const SUPPORTED_METHODS = "GET, HEAD, POST, OPTIONS";
const GET_METHODS = ["GET", "HEAD"];
const POST_METHODS = ["POST"];
export const JSON_CONTENT_TYPE = "application/json; charset=utf-8";
const ALLOWED_HEADERS = [...cors.allowedHeaders, "X-Request-Id"].join(", ");

/** How long browsers may cache the response to a preflight. It never changes; browsers cap this at two hours. */
const PREFLIGHT_MAX_AGE_SECONDS = "7200";

/**
 * Returns the common headers of a successful response. One that shared caches may keep, and send to others, carries
 * neither the request id nor the rate limit of its caller. Caches keep no responses to POST (RFC 9110 9.3.3).
 */
export function buildSuccessHeaders(context: RequestContext): string[] {
  const { isCacheable, protocol } = context;
  const isShared = isCacheable && (protocol === "rest" || protocol === "connect-get");
  return isShared ? buildSharedHeaders() : buildCommonHeaders(context);
}

// The responses of HTTP/1.1 and HTTP/2 have the same methods, but TypeScript cannot call them through their union.

export function writeHead(res: HttpResponse, status: number, headers: HeaderList): void {
  if ("stream" in res) {
    const byName: Record<string, string> = {};
    for (let i = 0; i + 1 < headers.length; i += 2) byName[headers[i] ?? ""] = headers[i + 1] ?? "";
    res.writeHead(status, byName);
  } else res.writeHead(status, headers as string[]);
}

/** Returns false if the caller has to read first; "drain" then signals when to continue. */
export function writeChunk(res: HttpResponse, chunk: Uint8Array): boolean {
  return "stream" in res ? res.write(chunk) : res.write(chunk);
}

/** Smaller bodies are not worth sharing. */
export const MIN_SHARED_BODY_BYTES = 8 * 1024;

const sharedBytes = new WeakMap<object, number>();

/** Notes that responses to all callers share one buffer as their body: it takes no memory of its own while it waits. */
export function noteSharedBody(response: HttpResponse | ServerHttp2Stream, byteLength: number): void {
  if (byteLength < MIN_SHARED_BODY_BYTES) return;
  sharedBytes.set("stream" in response ? response.stream : response, byteLength);
}

/** Returns the bytes of a response (HTTP/1.1) or stream (HTTP/2) that it shares with others. */
export function countSharedBytes(response: ServerResponse | ServerHttp2Stream): number {
  return sharedBytes.get(response) ?? 0;
}

/**
 * Frees the head of an HTTP/1.1 response that stays open, once it is sent: Node.js keeps it as a rope of thirty
 * strings, and reads no more than whether there is one.
 */
export function releaseSentHead(res: HttpResponse): void {
  const state = res as { _header?: unknown; _headerSent?: unknown };
  if (!("stream" in res) && state._headerSent === true && typeof state._header === "string") state._header = "sent";
}

function buildErrorBodyHeaders(body: string): HeaderList {
  return ["content-type", JSON_CONTENT_TYPE, "content-length", String(Buffer.byteLength(body)), ...NO_STORE_HEADERS];
}

/** Returns the link to what the documentation says about an error (RFC 8288). */
function buildHelpHeaders({ reason }: ServiceError, { docsUrl }: DocsLocation): HeaderList {
  return docsUrl === undefined ? [] : ["link", `<${toHelpUrl(reason, docsUrl)}>; rel="help"`];
}

/** Sends the JSON form of an error. `status` overrides the status of its reason. */
export function sendError(
  exchange: HttpExchange,
  error: ServiceError,
  { status = toHttpStatus(error.reason), headers = [] }: { status?: number; headers?: HeaderList } = {},
): void {
  const { req, res, context } = exchange;
  context.code = toCodeName(error.reason);
  context.reason = error.reason;
  const body = toErrorBody(error);
  writeHead(res, status, [
    ...buildCommonHeaders(context),
    ...buildErrorBodyHeaders(body),
    ...toHeaderList(toErrorHeaders(error)),
    ...buildHelpHeaders(error, context),
    ...headers,
  ]);
  if (req.method === "HEAD") res.end();
  else res.end(body);
}

/**
 * Answers OPTIONS, including the CORS preflights of browsers.
 * @param requestHeaders what scripts of other origins may send beyond the headers of every path
 */
export function sendOptions({ res, context }: HttpExchange, methods: string, requestHeaders: HeaderList = []): void {
  context.code = "ok";
  writeHead(res, 204, [
    ...buildCommonHeaders(context),
    ...toHeaderList({
      allow: methods,
      "access-control-allow-methods": methods,
      "access-control-allow-headers": [ALLOWED_HEADERS, ...requestHeaders].join(", "),
      "access-control-max-age": PREFLIGHT_MAX_AGE_SECONDS,
    }),
  ]);
  res.end();
}

/** Answers a request whose HTTP method a path does not allow. */
export function sendMethodNotAllowed(exchange: HttpExchange, methods: string): void {
  const error = new ServiceError("METHOD_NOT_ALLOWED", `the method must be one of ${methods}`);
  sendError(exchange, error, { headers: ["allow", methods] });
}

/**
 * Returns a handler that serves GET and HEAD, answers OPTIONS and refuses other methods.
 * @param requestHeaders as for `sendOptions`
 */
export function createGetHandler(get: PathHandler, requestHeaders?: HeaderList): PathHandler {
  return createMethodHandler(GET_METHODS, get, requestHeaders);
}

/** Returns a handler that serves POST, answers OPTIONS and refuses other methods. */
export function createPostHandler(post: PathHandler): PathHandler {
  return createMethodHandler(POST_METHODS, post);
}

function createMethodHandler(
  methods: readonly string[],
  handle: PathHandler,
  requestHeaders?: HeaderList,
): PathHandler {
  const allowed = [...methods, "OPTIONS"].join(", ");
  return (exchange, query) => {
    const { method = "" } = exchange.req;
    if (methods.includes(method)) handle(exchange, query);
    else if (method === "OPTIONS") sendOptions(exchange, allowed, requestHeaders);
    else sendMethodNotAllowed(exchange, allowed);
  };
}

/** Sends a Trailers-Only response for gRPC or gRPC-Web: a status without a message, in the headers. */
export function sendTrailersOnly({ res, context }: HttpExchange, status: HeaderList): void {
  const type = context.protocol === "grpc" ? "application/grpc" : "application/grpc-web+proto";
  const headers = [...buildCommonHeaders(context), "content-type", type, ...status];
  // Not by writeHead: in a Trailers-Only response the headers and the end of the stream share one frame.
  for (let i = 0; i + 1 < headers.length; i += 2) res.setHeader(headers[i] ?? "", headers[i + 1] ?? "");
  res.end();
}

/**
 * Formats a complete HTTP/1.1 response, for a connection whose input is not a valid request. It closes the connection.
 */
export function formatRawErrorResponse(
  values: Parameters<typeof buildCommonHeaders>[0],
  status: number,
  error: ServiceError,
  headers: HeaderList,
): string {
  const body = toErrorBody(error);
  const ownHeaders = [...buildErrorBodyHeaders(body), ...buildHelpHeaders(error, values), "connection", "close"];
  const headerList = [...buildCommonHeaders(values), ...ownHeaders, ...headers];
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${formatHeaderLines(headerList)}\r\n${body}`;
}

/**
 * Returns whether If-None-Match names a validator, by weak comparison (RFC 9110 13.1.2). Our validators hold neither
 * commas nor quotes, so that splitting at commas cannot match a part of a foreign one.
 */
export function matchesIfNoneMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return (
    ifNoneMatch.trim() === "*" ||
    ifNoneMatch.split(",").some((validator) => validator.trim().replace(/^W\//, "") === etag)
  );
}

/** What Node's responses keep their state in, beneath their public methods. */
export interface NodeResponseState {
  /** The head as it is sent; null before. */
  _header: string | null;
  _headerSent: boolean;
  /** Whether the response is complete. */
  finished: boolean;
  readonly _keepAliveTimeout: number;
  readonly chunkedEncoding: boolean;
}

const readTurnTime = createTurnClock(() => Date.now());

/** The Date header, and the second that it is for. */
const date = { seconds: Number.NaN, line: "" };

/**
 * Sends a complete response to GET or POST with status 200 over HTTP/1.1: in a single write, the bytes that `writeHead`
 * and `end` would send. Those check each header again and pass head, body and the end of the message on as separate
 * chunks, which takes three times as long.
 *
 * Returns false, and does nothing, for a response that is not an ordinary one: it waits for an earlier response, the
 * connection closes after it, or this version of Node.js keeps its state in another way.
 * @param headerLines valid headers as `formatHeaderLines` returns them, Content-Length among them, but none of the
 * connection
 * @param body bytes, or a text of which each character is one byte
 */
export function trySendInOneWrite(res: ServerResponse, headerLines: string, body: string | Uint8Array): boolean {
  const { req, socket } = res;
  // Not writable: the connection is destroyed, or ends with the response to input that is not valid.
  if (!socket?.writable || !res.shouldKeepAlive) return false;
  // A server that shuts down has set a header of its own.
  if (req.httpVersion !== "1.1" || res.hasHeader("connection")) return false;
  if (req.method !== "GET" && !(req.method === "POST" && req.complete)) return false;
  const state = res as unknown as NodeResponseState;
  const { _header, _headerSent, finished, _keepAliveTimeout } = state;
  if (_header !== null || _headerSent !== false || finished !== false || !(_keepAliveTimeout >= 1000)) return false;
  const keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(_keepAliveTimeout / 1000)}\r\n\r\n`;
  const head = `HTTP/1.1 200 OK\r\n${headerLines}${formatDateLine()}${keepAlive}`;
  state._header = head;
  state._headerSent = true;
  state.finished = true;
  const finish = (error?: Error | null): void => {
    // Otherwise the end of the connection ends the response, too.
    if (!error) res.emit("finish");
  };
  if (typeof body === "string") socket.write(head + body, "latin1", finish);
  else {
    socket.cork();
    socket.write(head, "latin1");
    socket.write(body, finish);
    socket.uncork();
  }
  return true;
}

/** Formats alternating names and values as lines of an HTTP/1.1 head. */
export function formatHeaderLines(headers: readonly string[]): string {
  let lines = "";
  for (let i = 0; i + 1 < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return lines;
}

function formatDateLine(): string {
  const now = readTurnTime();
  const seconds = Math.floor(now / 1000);
  if (seconds !== date.seconds) {
    date.seconds = seconds;
    date.line = `Date: ${new Date(now).toUTCString()}\r\n`;
  }
  return date.line;
}
