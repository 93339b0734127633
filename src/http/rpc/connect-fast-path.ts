import type { Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { OverloadManager } from "../admission/overload-manager.js";
import { acceptsGzip, COMPRESS_MIN_BYTES, gzipCompression } from "../codec/gzip.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { collectBody } from "../request/body.js";
import { toConnectError } from "../request/error-mapping.js";
import type { CallResponder, HttpRequest } from "../request/request-context.js";
import {
  buildSuccessHeaders,
  formatHeaderLines,
  type HttpExchange,
  noteSharedBody,
  type PathHandler,
  trySendInOneWrite,
  writeHead,
} from "../request/response.js";
import { buildCommonHeaders, type HeaderList, NO_STORE_HEADERS } from "../request/response-headers.js";
import { mapConnectError } from "./rpc-errors.js";
import { parseTimeoutMs, toDeadlineMs, toRemainingMs } from "./rpc-headers.js";
import { decodeQueryMessage } from "./rpc-messages.js";
import type { UnaryMethod } from "./unary-method.js";

/** Queries of visible ASCII that no fragment ends: each character is literal or percent-encoded. */
const VISIBLE_ASCII_QUERY = /^[\x21\x22\x24-\x7e]*$/;

/**
 * Creates the fast path for uncompressed unary calls of one method over the Connect protocol, by POST or GET. Other
 * requests fall back to `general`, with the part of the body that has been read.
 */
export function createConnectFastPath(
  method: UnaryMethod,
  { limits, overload }: { readonly limits: HttpLimits; readonly overload: OverloadManager },
  general: PathHandler,
): PathHandler {
  const read = (bytes: Buffer, isBinary: boolean) => (isBinary ? method.readBinary(bytes) : method.readJson(bytes));

  /** Returns false if the request is not eligible. */
  function post(exchange: HttpExchange, query: string): boolean {
    const { req } = exchange;
    const headers = parseCallHeaders(req, isBinaryContentType(req.headers["content-type"]));
    if (headers === undefined || !hasUncompressedBody(req, limits)) return false;
    const remainingMs = toRemainingMs(headers.deadlineMs);
    const bodyLimits = { maxBytes: limits.requestBytes, timeoutMs: limits.requestMs, remainingMs, overload };
    collectBody(exchange, bodyLimits, (body, bufferedBody) => {
      const request = body && read(body, headers.isBinary);
      if (request === undefined) general({ ...exchange, bufferedBody }, query);
      else new ConnectCall(exchange, method, headers, limits.responseBytes).invoke(request);
    });
    return true;
  }

  /** Returns false if the request is not eligible. */
  function get(exchange: HttpExchange, query: string): boolean {
    if (!method.isSafe || !VISIBLE_ASCII_QUERY.test(query)) return false;
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    const isSupported = encoding === "json" || encoding === "proto";
    const headers = parseCallHeaders(exchange.req, isSupported ? encoding === "proto" : undefined);
    if (headers === undefined || !isIdentity(parameters.get("compression"))) return false;
    const bytes = decodeQueryMessage(parameters);
    if (bytes === undefined || bytes.length > limits.requestBytes) return false;
    const request = read(bytes, headers.isBinary);
    if (request === undefined) return false;
    new ConnectCall(exchange, method, headers, limits.responseBytes).invoke(request);
    return true;
  }

  return (exchange, query) => {
    const { protocol } = exchange.context;
    if (protocol === "connect" && exchange.req.method === "POST" && post(exchange, query)) return;
    if (protocol === "connect-get" && get(exchange, query)) return;
    general(exchange, query);
  };
}

/** What the headers of a call say. */
interface CallHeaders {
  readonly isBinary: boolean;
  readonly shouldGzip: boolean;
  /** When the deadline of the caller expires, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
}

class ConnectCall implements CallResponder {
  constructor(
    private readonly exchange: HttpExchange,
    private readonly method: UnaryMethod,
    private readonly headers: CallHeaders,
    private readonly maxResponseBytes: number,
  ) {}

  invoke(request: Message): void {
    this.exchange.context.invoke(this.method.operation, request, toRemainingMs(this.headers.deadlineMs), this);
  }

  succeed(message: Message): void {
    const { exchange, method, headers } = this;
    const { res, context } = exchange;
    let body: Buffer | string;
    try {
      body = headers.isBinary ? method.writeBinary(message) : method.writeJson(message);
      if (body.length > this.maxResponseBytes) throw new Error("the response is too large");
    } catch (error) {
      this.sendFailure(toConnectError(context.recordFailure(error), method.errorDomain, context));
      return;
    }
    context.code = "ok";
    if (!headers.shouldGzip && Object.isFrozen(message)) noteSharedBody(res, body.length);
    const type = headers.isBinary ? "application/proto" : "application/json";
    this.sendResponse(200, ["content-type", type, ...context.buildResponseHeaders()], body);
  }

  fail(error: unknown): void {
    this.sendFailure(mapConnectError(this.exchange.context, error, this.method.errorDomain));
  }

  private sendFailure(error: ConnectError): void {
    const headers = ["content-type", "application/json", ...NO_STORE_HEADERS, ...[...error.metadata].flat()];
    this.sendResponse(codeToHttpStatus(error.code), headers, Buffer.from(errorToJsonBytes(error, undefined)));
  }

  private sendResponse(status: number, headers: HeaderList, body: Buffer | string): void {
    if (!this.headers.shouldGzip || body.length < COMPRESS_MIN_BYTES) {
      this.send(status, headers, body);
      return;
    }
    gzipCompression.compress(Buffer.from(body)).then(
      (compressed) => this.send(status, [...headers, "content-encoding", "gzip"], compressed),
      () => this.exchange.res.destroy(),
    );
  }

  private send(status: number, headers: HeaderList, body: Uint8Array | string): void {
    const { res, context } = this.exchange;
    const list = status === 200 ? buildSuccessHeaders(context) : buildCommonHeaders(context);
    list.push("content-length", String(body.length));
    for (const text of headers) list.push(text);
    const isPlain = status === 200 && !("stream" in res);
    if (isPlain && trySendInOneWrite(res, formatHeaderLines(list), body)) return;
    writeHead(res, status, list);
    if (typeof body === "string") res.end(body, "latin1");
    else res.end(body);
  }
}

/** Returns undefined if a header needs the general path. */
function parseCallHeaders({ headers }: HttpRequest, isBinary: boolean | undefined): CallHeaders | undefined {
  const timeoutMs = parseTimeoutMs(headers, true);
  const hasInvalidTimeout = timeoutMs === undefined && headers["connect-timeout-ms"] !== undefined;
  if (isBinary === undefined || hasInvalidTimeout) return undefined;
  return { isBinary, shouldGzip: acceptsGzip(headers["accept-encoding"]), deadlineMs: toDeadlineMs(timeoutMs) };
}

/** Returns true for binary Protobuf, false for JSON, and undefined for unusual spellings and other types. */
function isBinaryContentType(type: string | undefined): boolean | undefined {
  if (type === "application/json" || type === "application/json; charset=utf-8") return false;
  return type === "application/proto" ? true : undefined;
}

/** Returns whether a body is uncompressed and, by its headers, within the size limit. */
function hasUncompressedBody({ headers, httpVersionMajor }: HttpRequest, limits: HttpLimits): boolean {
  const length = headers["content-length"];
  const isWithinLimit = length === undefined ? httpVersionMajor > 1 : Number(length) <= limits.requestBytes;
  return isWithinLimit && isIdentity(headers["content-encoding"] ?? null);
}

function isIdentity(encoding: string | null): boolean {
  return encoding === null || encoding === "identity";
}
