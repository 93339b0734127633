import type { Message } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { codeToHttpStatus, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import type { HttpLimits } from "../connection/http-limits.js";
import { collect } from "../request/body.js";
import { NO_STORE } from "../request/cache-headers.js";
import { toConnectError } from "../request/error-mapping.js";
import type { HttpRequest } from "../request/request-context.js";
import { commonHeaders, type Exchange, type HeaderList, type PathHandler, writeHead } from "../request/response.js";
import { deadlineOf, leftOf, type PlainMethod, run } from "./fast-path-method.js";
import { COMPRESS_MIN_BYTES, gzip, tellFailure } from "./rpc-errors.js";
import { acceptsGzip, connectTimeoutMs } from "./rpc-headers.js";

/** One call on its way. */
interface Asked {
  readonly exchange: Exchange;
  readonly isBinary: boolean;
  readonly isGzip: boolean;
  /** When the caller will wait no more, in milliseconds since the epoch. */
  readonly deadline: number | undefined;
}

/** Where in the query of a GET its characters stand for themselves, or are percent-encoded, and none ends it. */
const PLAIN_QUERY = /^[\x21\x22\x24-\x7e]*$/;

/**
 * The short way for unary calls of one method over the Connect protocol, by POST or GET, that are not compressed. What
 * is not plain goes on to the adapter, with what has been read of its body.
 */
export function createPlainConnect(method: PlainMethod, limits: HttpLimits, adapter: PathHandler): PathHandler {
  function answer(
    { exchange: { res, call }, isGzip }: Asked,
    status: number,
    headers: HeaderList,
    bytes: Buffer,
  ): void {
    if (!isGzip || bytes.length < COMPRESS_MIN_BYTES) {
      send(bytes, headers);
      return;
    }
    gzip.compress(bytes).then(
      (packed) => send(packed, [...headers, "content-encoding", "gzip"]),
      () => res.destroy(),
    );
    function send(body: Uint8Array, own: HeaderList): void {
      const all = commonHeaders(call);
      all.push("content-length", String(body.length));
      for (const text of own) all.push(text);
      writeHead(res, status, all);
      res.end(body);
    }
  }

  function succeed(asked: Asked, message: Message): void {
    const { call } = asked.exchange;
    let bytes: Buffer;
    try {
      bytes = asked.isBinary ? method.writeBinary(message) : method.writeJson(message);
      if (bytes.length > limits.responseBytes) throw new Error("the response is too large");
    } catch (error) {
      answerFailure(asked, toConnectError(call.fail(error), method.domain));
      return;
    }
    call.code = "ok";
    const type = asked.isBinary ? "application/proto" : "application/json";
    answer(asked, 200, ["content-type", type, ...call.answerHeaders()], bytes);
  }

  function answerFailure(asked: Asked, told: ReturnType<typeof toConnectError>): void {
    const headers = [...told.metadata].flat();
    const body = Buffer.from(errorToJsonBytes(told, undefined));
    answer(asked, codeToHttpStatus(told.code), ["content-type", "application/json", ...NO_STORE, ...headers], body);
  }

  function serve(asked: Asked, request: Message): void {
    const { call } = asked.exchange;
    run(
      method.operation,
      request,
      call.context(leftOf(asked.deadline)),
      (message) => succeed(asked, message),
      (error) => answerFailure(asked, tellFailure(call, error, method.domain)),
    );
  }

  /** False where the request is not plain. */
  function post(exchange: Exchange, query: string): boolean {
    const { req, call } = exchange;
    const asked = readHeaders(exchange, binaryOf(req.headers["content-type"]));
    if (asked === undefined || !hasPlainBody(req, limits)) return false;
    call.operation = method.name;
    call.protocol = "connect";
    const chunks: Buffer[] = [];
    let size = 0;
    let isRead = false;
    const timer = setTimeout(() => giveUp(true), limits.requestMs);
    function read(): void {
      isRead = true;
      clearTimeout(timer);
    }
    function giveUp(isLate: boolean): void {
      read();
      adapter({ ...exchange, given: { chunks, isLate } }, query);
    }
    req.on("data", (chunk: Buffer) => {
      if (isRead) return;
      collect(chunks, chunk);
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
  function get(exchange: Exchange, query: string): boolean {
    if (!method.isSafe || !PLAIN_QUERY.test(query)) return false;
    const parameters = new URLSearchParams(query);
    const encoding = parameters.get("encoding");
    const isKnown = encoding === "json" || encoding === "proto";
    const asked = readHeaders(exchange, isKnown ? encoding === "proto" : undefined);
    if (asked === undefined || !isIdentity(parameters.get("compression"))) return false;
    const request = readParameter(asked.isBinary, parameters.get("base64") === "1", parameters.get("message") ?? "");
    if (request === undefined) return false;
    exchange.call.operation = method.name;
    exchange.call.protocol = "connect-get";
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
    const { req, call, given } = exchange;
    // The protocol is known by now where it is gRPC-Web.
    const isConnect = call.protocol === "rest" && given === undefined;
    if (isConnect && req.method === "POST" && post(exchange, query)) return;
    if (isConnect && req.method === "GET" && get(exchange, query)) return;
    adapter(exchange, query);
  };
}

/** What the headers say of how to answer; undefined where one of them is not plain. */
function readHeaders(exchange: Exchange, isBinary: boolean | undefined): Asked | undefined {
  const { headers } = exchange.req;
  const timeout = headers["connect-timeout-ms"];
  const timeoutMs = typeof timeout === "string" ? connectTimeoutMs(timeout) : undefined;
  if (isBinary === undefined || (timeout !== undefined && timeoutMs === undefined)) return undefined;
  const accepted = headers["accept-encoding"];
  const isGzip = acceptsGzip(typeof accepted === "string" ? accepted : undefined);
  return { exchange, isBinary, isGzip, deadline: deadlineOf(timeoutMs) };
}

/** Whether a Content-Type is binary Protobuf, or JSON; undefined where it is written in no usual way. */
function binaryOf(type: string | undefined): boolean | undefined {
  if (type === "application/json" || type === "application/json; charset=utf-8") return false;
  return type === "application/proto" ? true : undefined;
}

/** Whether a body is as it is, and not larger than it may be, as far as the headers say. */
function hasPlainBody({ headers, httpVersionMajor }: HttpRequest, limits: HttpLimits): boolean {
  const length = headers["content-length"];
  const isShort = length === undefined ? httpVersionMajor > 1 : Number(length) <= limits.requestBytes;
  return isShort && isIdentity(headers["content-encoding"] ?? null);
}

function isIdentity(encoding: string | null): boolean {
  return encoding === null || encoding === "identity";
}
