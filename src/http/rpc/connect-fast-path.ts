import type { Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { BodyBudget } from "../admission/body-budget.js";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "../codec/compression.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { collectBody } from "../request/body.js";
import { NO_STORE_HEADERS } from "../request/cache-headers.js";
import { toConnectError } from "../request/error-mapping.js";
import type { HttpRequest } from "../request/request-context.js";
import {
  buildCommonHeaders,
  buildSuccessHeaders,
  type HeaderList,
  type HttpExchange,
  type PathHandler,
  writeHead,
} from "../request/response.js";
import { noteSharedBody } from "../request/shared-body.js";
import { formatHeaderLines, trySendInOneWrite } from "../request/single-write.js";
import { type FastPathMethod, invokeOperation, toDeadlineMs, toRemainingMs } from "./fast-path-method.js";
import { gzipCompression, mapConnectError } from "./rpc-errors.js";
import { parseConnectTimeoutMs } from "./rpc-headers.js";

interface FastPathCall {
  readonly exchange: HttpExchange;
  readonly isBinary: boolean;
  readonly shouldGzip: boolean;
  /** When the deadline of the caller expires, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
}

/** Queries of visible ASCII that no fragment ends: each character is literal or percent-encoded. */
const VISIBLE_ASCII_QUERY = /^[\x21\x22\x24-\x7e]*$/;

/**
 * Creates the fast path for uncompressed unary calls of one method over the Connect protocol, by POST or GET. Other
 * requests fall back to `general`, with the part of the body that has been read.
 */
export function createConnectFastPath(
  method: FastPathMethod,
  limits: HttpLimits,
  budget: BodyBudget,
  general: PathHandler,
): PathHandler {
  function sendResponse(
    { exchange: { res, context }, shouldGzip }: FastPathCall,
    status: number,
    headers: HeaderList,
    body: Buffer | string,
  ): void {
    if (!shouldGzip || body.length < COMPRESS_MIN_BYTES) {
      send(body, headers);
      return;
    }
    gzipCompression.compress(Buffer.from(body)).then(
      (compressed) => send(compressed, [...headers, "content-encoding", "gzip"]),
      () => res.destroy(),
    );
    function send(sentBody: Uint8Array | string, extraHeaders: HeaderList): void {
      const list = status === 200 ? buildSuccessHeaders(context) : buildCommonHeaders(context);
      list.push("content-length", String(sentBody.length));
      for (const text of extraHeaders) list.push(text);
      const isPlain = status === 200 && !("stream" in res);
      if (isPlain && trySendInOneWrite(res, formatHeaderLines(list), sentBody)) return;
      writeHead(res, status, list);
      if (typeof sentBody === "string") res.end(sentBody, "latin1");
      else res.end(sentBody);
    }
  }

  function succeed(call: FastPathCall, message: Message): void {
    const { context } = call.exchange;
    let body: Buffer | string;
    try {
      body = call.isBinary ? method.writeBinary(message) : method.writeJson(message);
      if (body.length > limits.responseBytes) throw new Error("the response is too large");
    } catch (error) {
      sendFailure(call, toConnectError(context.recordFailure(error), method.errorDomain));
      return;
    }
    context.code = "ok";
    if (!call.shouldGzip && Object.isFrozen(message)) noteSharedBody(call.exchange.res, body.length);
    const type = call.isBinary ? "application/proto" : "application/json";
    sendResponse(call, 200, ["content-type", type, ...context.buildResponseHeaders()], body);
  }

  function fail(call: FastPathCall, error: unknown): void {
    sendFailure(call, mapConnectError(call.exchange.context, error, method.errorDomain));
  }

  function sendFailure(call: FastPathCall, error: ConnectError): void {
    const metadata = [...error.metadata].flat();
    const body = Buffer.from(errorToJsonBytes(error, undefined));
    sendResponse(
      call,
      codeToHttpStatus(error.code),
      ["content-type", "application/json", ...NO_STORE_HEADERS, ...metadata],
      body,
    );
  }

  function invoke(call: FastPathCall, request: Message): void {
    const callContext = call.exchange.context.toCallContext(toRemainingMs(call.deadlineMs));
    invokeOperation(method.operation, request, callContext, call, succeed, fail);
  }

  /** Returns false if the request is not eligible. */
  function post(exchange: HttpExchange, query: string): boolean {
    const { req } = exchange;
    const call = parseCallHeaders(exchange, isBinaryContentType(req.headers["content-type"]));
    if (call === undefined || !hasUncompressedBody(req, limits)) return false;
    const remainingMs = toRemainingMs(call.deadlineMs);
    const bodyLimits = { maxBytes: limits.requestBytes, timeoutMs: limits.requestMs, remainingMs, budget };
    collectBody(exchange, bodyLimits, (body, bufferedBody) => {
      const request = body && (call.isBinary ? method.readBinary(body) : method.readJson(body.toString("latin1")));
      if (request === undefined) general({ ...exchange, bufferedBody }, query);
      else invoke(call, request);
    });
    return true;
  }

  /** Returns false if the request is not eligible. */
  function get(exchange: HttpExchange, query: string): boolean {
    if (!method.isSafe || !VISIBLE_ASCII_QUERY.test(query)) return false;
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    const isSupported = encoding === "json" || encoding === "proto";
    const call = parseCallHeaders(exchange, isSupported ? encoding === "proto" : undefined);
    if (call === undefined || !isIdentity(parameters.get("compression"))) return false;
    const request = parseMessage(call.isBinary, parameters.get("base64") === "1", parameters.get("message") ?? "");
    if (request === undefined) return false;
    invoke(call, request);
    return true;
  }

  function parseMessage(isBinary: boolean, isBase64: boolean, text: string): Message | undefined {
    let bytes: Buffer;
    try {
      bytes = isBase64 ? Buffer.from(base64Decode(text)) : Buffer.from(text);
    } catch {
      return undefined;
    }
    if (bytes.length > limits.requestBytes) return undefined;
    return isBinary ? method.readBinary(bytes) : method.readJson(bytes.toString("latin1"));
  }

  return (exchange, query) => {
    const { protocol } = exchange.context;
    if (protocol === "connect" && exchange.req.method === "POST" && post(exchange, query)) return;
    if (protocol === "connect-get" && get(exchange, query)) return;
    general(exchange, query);
  };
}

/** Returns undefined if a header needs the general path. */
function parseCallHeaders(exchange: HttpExchange, isBinary: boolean | undefined): FastPathCall | undefined {
  const { headers } = exchange.req;
  const timeout = headers["connect-timeout-ms"];
  const timeoutMs = typeof timeout === "string" ? parseConnectTimeoutMs(timeout) : undefined;
  if (isBinary === undefined || (timeout !== undefined && timeoutMs === undefined)) return undefined;
  const shouldGzip = acceptsGzip(headers["accept-encoding"]);
  return { exchange, isBinary, shouldGzip, deadlineMs: toDeadlineMs(timeoutMs) };
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
