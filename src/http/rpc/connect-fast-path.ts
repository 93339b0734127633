import type { Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "../codec/compression.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { appendChunk } from "../request/body.js";
import { NO_STORE_HEADERS } from "../request/cache-headers.js";
import { toConnectError } from "../request/error-mapping.js";
import type { HttpRequest } from "../request/request-context.js";
import {
  buildCommonHeaders,
  type HeaderList,
  type HttpExchange,
  type PathHandler,
  writeHead,
} from "../request/response.js";
import { type FastPathMethod, invokeOperation, toDeadlineMs, toRemainingMs } from "./fast-path-method.js";
import { gzipCompression, mapRpcError } from "./rpc-errors.js";
import { parseConnectTimeoutMs } from "./rpc-headers.js";

/** One call on its way. */
interface FastPathCall {
  readonly exchange: HttpExchange;
  readonly isBinary: boolean;
  readonly shouldGzip: boolean;
  /** When the caller will wait no more, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
}

/** Where in the query of a GET its characters stand for themselves, or are percent-encoded, and none ends it. */
const VISIBLE_ASCII_QUERY = /^[\x21\x22\x24-\x7e]*$/;

/**
 * The short way for unary calls of one method over the Connect protocol, by POST or GET, that are not compressed. What
 * is not plain goes on to the adapter, with what has been read of its body.
 */
export function createConnectFastPath(method: FastPathMethod, limits: HttpLimits, adapter: PathHandler): PathHandler {
  function answer(
    { exchange: { res, context }, shouldGzip }: FastPathCall,
    status: number,
    headers: HeaderList,
    bytes: Buffer,
  ): void {
    if (!shouldGzip || bytes.length < COMPRESS_MIN_BYTES) {
      send(bytes, headers);
      return;
    }
    gzipCompression.compress(bytes).then(
      (packed) => send(packed, [...headers, "content-encoding", "gzip"]),
      () => res.destroy(),
    );
    function send(body: Uint8Array, own: HeaderList): void {
      const all = buildCommonHeaders(context);
      all.push("content-length", String(body.length));
      for (const text of own) all.push(text);
      writeHead(res, status, all);
      res.end(body);
    }
  }

  function succeed(asked: FastPathCall, message: Message): void {
    const { context } = asked.exchange;
    let bytes: Buffer;
    try {
      bytes = asked.isBinary ? method.writeBinary(message) : method.writeJson(message);
      if (bytes.length > limits.responseBytes) throw new Error("the response is too large");
    } catch (error) {
      answerFailure(asked, toConnectError(context.recordFailure(error), method.errorDomain));
      return;
    }
    context.code = "ok";
    const type = asked.isBinary ? "application/proto" : "application/json";
    answer(asked, 200, ["content-type", type, ...context.buildResponseHeaders()], bytes);
  }

  function answerFailure(asked: FastPathCall, told: ReturnType<typeof toConnectError>): void {
    const headers = [...told.metadata].flat();
    const body = Buffer.from(errorToJsonBytes(told, undefined));
    answer(
      asked,
      codeToHttpStatus(told.code),
      ["content-type", "application/json", ...NO_STORE_HEADERS, ...headers],
      body,
    );
  }

  function serve(asked: FastPathCall, request: Message): void {
    const { context } = asked.exchange;
    invokeOperation(
      method.operation,
      request,
      context.toCallContext(toRemainingMs(asked.deadlineMs)),
      (message) => succeed(asked, message),
      (error) => answerFailure(asked, mapRpcError(context, error, method.errorDomain)),
    );
  }

  /** False where the request is not plain. */
  function post(exchange: HttpExchange, query: string): boolean {
    const { req } = exchange;
    const asked = parseCallHeaders(exchange, isBinaryContentType(req.headers["content-type"]));
    if (asked === undefined || !hasUncompressedBody(req, limits)) return false;
    const chunks: Buffer[] = [];
    let size = 0;
    let isRead = false;
    const timer = setTimeout(() => giveUp(true), limits.requestMs);
    function read(): void {
      isRead = true;
      clearTimeout(timer);
    }
    function giveUp(isTimedOut: boolean): void {
      read();
      adapter({ ...exchange, bufferedBody: { chunks, isTimedOut } }, query);
    }
    req.on("data", (chunk: Buffer) => {
      if (isRead) return;
      appendChunk(chunks, chunk);
      size += chunk.length;
      if (size > limits.requestBytes) giveUp(false);
    });
    req.on("close", read);
    req.on("end", () => {
      if (isRead) return;
      const [first] = chunks;
      const body = first === undefined || chunks.length > 1 ? Buffer.concat(chunks) : first;
      const request = asked.isBinary ? method.readBinary(body) : method.readJson(body.toString("latin1"));
      if (request === undefined) {
        giveUp(false);
        return;
      }
      read();
      serve(asked, request);
    });
    return true;
  }

  /** False where the request is not plain. */
  function get(exchange: HttpExchange, query: string): boolean {
    if (!method.isSafe || !VISIBLE_ASCII_QUERY.test(query)) return false;
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    const isKnown = encoding === "json" || encoding === "proto";
    const asked = parseCallHeaders(exchange, isKnown ? encoding === "proto" : undefined);
    if (asked === undefined || !isIdentity(parameters.get("compression"))) return false;
    const request = readParameter(asked.isBinary, parameters.get("base64") === "1", parameters.get("message") ?? "");
    if (request === undefined) return false;
    serve(asked, request);
    return true;
  }

  function readParameter(isBinary: boolean, isBase64: boolean, text: string): Message | undefined {
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
    adapter(exchange, query);
  };
}

/** What the headers say of how to answer; undefined where one of them is not plain. */
function parseCallHeaders(exchange: HttpExchange, isBinary: boolean | undefined): FastPathCall | undefined {
  const { headers } = exchange.req;
  const timeout = headers["connect-timeout-ms"];
  const timeoutMs = typeof timeout === "string" ? parseConnectTimeoutMs(timeout) : undefined;
  if (isBinary === undefined || (timeout !== undefined && timeoutMs === undefined)) return undefined;
  const shouldGzip = acceptsGzip(headers["accept-encoding"]);
  return { exchange, isBinary, shouldGzip, deadlineMs: toDeadlineMs(timeoutMs) };
}

/** Whether a Content-Type is binary Protobuf, or JSON; undefined where it is written in no usual way. */
function isBinaryContentType(type: string | undefined): boolean | undefined {
  if (type === "application/json" || type === "application/json; charset=utf-8") return false;
  return type === "application/proto" ? true : undefined;
}

/** Whether a body is as it is, and not larger than it may be, as far as the headers say. */
function hasUncompressedBody({ headers, httpVersionMajor }: HttpRequest, limits: HttpLimits): boolean {
  const length = headers["content-length"];
  const isShort = length === undefined ? httpVersionMajor > 1 : Number(length) <= limits.requestBytes;
  return isShort && isIdentity(headers["content-encoding"] ?? null);
}

function isIdentity(encoding: string | null): boolean {
  return encoding === null || encoding === "identity";
}
