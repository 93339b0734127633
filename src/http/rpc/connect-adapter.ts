import { constants } from "node:http2";
import { Code, ConnectError, type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createAsyncIterable, type UniversalHandler, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ServiceError } from "../../errors.js";
import type { OverloadManager } from "../admission/overload-manager.js";
import type { HttpLimits } from "../connection/http-limits.js";
import {
  type BodyLimits,
  type BufferedBody,
  collectBody,
  createBodyOverloadError,
  ENVELOPE_BYTES,
  readBody,
  replayBody,
} from "../request/body.js";
import { toConnectError, toMalformedRequestError, toServiceError } from "../request/error-mapping.js";
import type { HttpResponse, RequestContext } from "../request/request-context.js";
import {
  buildSuccessHeaders,
  type HttpExchange,
  sendError,
  sendMethodNotAllowed,
  sendOptions,
  writeChunk,
  writeHead,
} from "../request/response.js";
import { buildCommonHeaders } from "../request/response-headers.js";
import { recordConnectError, sendRpcError, setInternalErrorTrailers, toNodeTrailers } from "./rpc-errors.js";
import { parseTimeoutMs, toConnectHeaders } from "./rpc-headers.js";
import { decodeQueryMessage, RequestMessages } from "./rpc-messages.js";

const requestContextKey = createContextKey<RequestContext | undefined>(undefined);
/** Whether the request of a call was valid so far that Connect called the interceptors. */
export const hasStartedKey = createContextKey(false);

const NO_BODY: BufferedBody = { chunks: [], failure: undefined };

/** Statuses for malformed requests. Those of the Connect protocol would blame the server or a rate limit. */
const MALFORMED_REQUEST_STATUS: Readonly<Partial<Record<Code, number>>> = {
  [Code.ResourceExhausted]: 413,
  [Code.Unimplemented]: 415,
};

/** Returns the context of a call that Connect serves. */
export function getRequestContext(values: ContextValues): RequestContext {
  const context = values.get(requestContextKey);
  if (context === undefined) throw new Error("no context for this call");
  return context;
}

/** Serves the path of one method: passes Node's request to Connect, and Connect's response to Node. */
export class ConnectAdapter {
  readonly #handlers;
  readonly #errorDomain: string;
  readonly #isUnary: boolean;
  readonly #isStreaming: boolean;
  readonly #bodyLimits: BodyLimits & { readonly overload: OverloadManager };
  readonly #messages: RequestMessages;

  /** @param handlers Connect's handlers of the method: for its own protocol, and for gRPC and gRPC-Web */
  constructor(
    handlers: { readonly connect: UniversalHandler; readonly grpc: UniversalHandler },
    {
      limits,
      draining,
      overload,
    }: { readonly limits: HttpLimits; readonly draining: AbortSignal; readonly overload: OverloadManager },
  ) {
    const { method, service } = handlers.connect;
    this.#handlers = handlers;
    this.#errorDomain = service.file.proto.package;
    this.#isUnary = method.methodKind === "unary";
    this.#isStreaming = method.methodKind === "bidi_streaming";
    this.#messages = new RequestMessages(method.input, limits.requestBytes);
    this.#bodyLimits = {
      maxBytes: limits.requestBytes + ENVELOPE_BYTES,
      timeoutMs: this.#isStreaming ? limits.idleMs : limits.requestMs,
      draining,
      overload,
      errorDomain: this.#errorDomain,
    };
  }

  handle(exchange: HttpExchange, query: string): void {
    const { req, context } = exchange;
    const handler = context.protocol.startsWith("connect") ? this.#handlers.connect : this.#handlers.grpc;
    if (!checkRequest(handler, exchange, this.#isStreaming)) return;
    if (this.#isStreaming || exchange.bufferedBody !== undefined || req.method !== "POST") {
      this.#start(exchange, handler, query);
      return;
    }
    // A call takes twenty times the memory once Connect has it.
    collectBody(exchange, { ...this.#bodyLimits, remainingMs: readTimeoutMs(exchange) }, (_, bufferedBody) => {
      this.#start({ ...exchange, bufferedBody }, handler, query);
    });
  }

  #start(exchange: HttpExchange, handler: UniversalHandler, query: string): void {
    const { res, context } = exchange;
    let request: ConnectRequest;
    try {
      request = this.#openRequest(exchange, handler, query);
    } catch (error) {
      if (this.#isUnary || handler === this.#handlers.grpc) {
        sendRpcError(exchange, toServiceError(error), this.#errorDomain);
        return;
      }
      // Streams of the Connect protocol tell it in their last message.
      request = { body: failBody(toConnectError(context.recordFailure(error), this.#errorDomain, context)) };
    }
    // Connect reads the message in promises.
    this.#bodyLimits.overload.eventLoop.endTurn();
    this.#serve(exchange, handler, { ...request, query }).catch((error: unknown) => {
      const publicError = context.recordFailure(error);
      if (res.headersSent) abortResponse(res);
      else sendError(exchange, publicError);
    });
  }

  async #serve(
    exchange: HttpExchange,
    handler: UniversalHandler,
    { body, uncompressedBytes, query }: ConnectRequest & { readonly query: string },
  ): Promise<void> {
    const { req, context } = exchange;
    const header = toConnectHeaders(req.headers);
    if (header === undefined) {
      sendError(exchange, new ServiceError("INVALID_PARAMETER", "invalid header value"));
      return;
    }
    if (uncompressedBytes !== undefined) {
      header.delete("content-encoding");
      header.set("content-length", String(uncompressedBytes));
      // Connect answers a compressed request by a compressed response, unless its caller says what it accepts.
      if (!header.get("accept-encoding")) header.set("accept-encoding", "gzip");
    }
    const contextValues = createContextValues().set(requestContextKey, context);
    try {
      const response = await handler({
        httpVersion: req.httpVersion,
        method: req.method ?? "",
        url: toUrl(handler, query),
        header,
        body,
        signal: context.callerSignal,
        contextValues,
      });
      if (response.body === undefined) {
        const message = "unsupported Content-Type or encoding: use JSON or binary Protobuf";
        sendError(exchange, new ServiceError("INVALID_PARAMETER", message), { status: 415 });
        return;
      }
      const isFailure = handler === this.#handlers.connect && this.#isUnary && response.status !== 200;
      await sendUniversalResponse(
        exchange,
        isFailure ? await this.#correctErrorResponse(response, contextValues) : response,
      );
    } finally {
      // Connect does not always finish the iteration that it starts.
      void body.return(undefined);
    }
  }

  /** @throws ServiceError for a request that is not to be read */
  #openRequest(exchange: HttpExchange, handler: UniversalHandler, query: string): ConnectRequest {
    const { context, bufferedBody = NO_BODY } = exchange;
    const { headers } = exchange.req;
    const isJson = /json/i.test(headers["content-type"] ?? "");
    if (this.#isStreaming) {
      const encoding = headers[handler === this.#handlers.grpc ? "grpc-encoding" : "connect-content-encoding"];
      return { body: this.#readMessages(exchange, isJson, encoding?.toString()) };
    }
    const { chunks, failure } = bufferedBody;
    if (failure === "overloaded") throw createBodyOverloadError();
    const original = { body: replayBody(bufferedBody, context, this.#bodyLimits) };
    if (exchange.req.method !== "POST") {
      const parameters = new URL(toUrl(handler, query)).searchParams;
      const bytes = decodeQueryMessage(parameters);
      const encoding = parameters.get("compression");
      if (bytes !== undefined) this.#messages.open(bytes, parameters.get("encoding") === "json", encoding);
      return original;
    }
    const bytes = Buffer.concat(chunks);
    if (failure !== undefined || bytes.length > this.#bodyLimits.maxBytes) return original;
    if (handler === this.#handlers.connect && this.#isUnary) {
      const message = this.#messages.open(bytes, isJson, headers["content-encoding"]);
      if (message === undefined || message === bytes) return original;
      return { body: toGenerator(message), uncompressedBytes: message.length };
    }
    const encoding = headers[handler === this.#handlers.grpc ? "grpc-encoding" : "connect-content-encoding"];
    return { body: toGenerator(this.#messages.openEnvelopes(bytes, isJson, encoding?.toString())) };
  }

  /** Yields the messages of a stream of requests. */
  async *#readMessages(
    exchange: HttpExchange,
    isJson: boolean,
    encoding: string | undefined,
  ): AsyncGenerator<Uint8Array> {
    const limits = { ...this.#bodyLimits, remainingMs: readTimeoutMs(exchange) };
    for await (const bytes of readBody(exchange, limits)) {
      try {
        yield this.#messages.openEnvelopes(Buffer.from(bytes), isJson, encoding, Number.POSITIVE_INFINITY);
      } catch (error) {
        throw toConnectError(exchange.context.recordFailure(error), this.#errorDomain, exchange.context);
      }
    }
  }

  /** Corrects the status and code of a failed unary Connect call: malformed requests are the fault of the caller. */
  async #correctErrorResponse(
    response: UniversalServerResponse,
    values: ContextValues,
  ): Promise<UniversalServerResponse> {
    const context = getRequestContext(values);
    const hasStarted = values.get(hasStartedKey);
    const header = new Headers(response.header);
    header.set("cache-control", "no-store");
    if (hasStarted && context.code !== "ok") return { ...response, header };
    const fallback = new ConnectError("malformed request", Code.InvalidArgument);
    const original = header.has("content-encoding") ? fallback : await parseConnectError(response.body, fallback);
    // Once the operation has succeeded, the failure is a response that does not serialise.
    const corrected = hasStarted
      ? toConnectError(context.recordFailure(original), this.#errorDomain, context)
      : toMalformedRequestError(original, this.#errorDomain, context);
    recordConnectError(context, corrected);
    const body = errorToJsonBytes(corrected, undefined);
    header.delete("content-encoding");
    header.set("content-length", String(body.length));
    const status =
      (hasStarted ? undefined : MALFORMED_REQUEST_STATUS[corrected.code]) ?? codeToHttpStatus(corrected.code);
    return { status, header, body: createAsyncIterable([body]) };
  }
}

/** The body of a request as Connect reads it. */
interface ConnectRequest {
  readonly body: AsyncGenerator<Uint8Array>;
  /** Size of a message that was compressed as its headers say. */
  readonly uncompressedBytes?: number;
}

function toUrl({ requestPath }: UniversalHandler, query: string): string {
  return `http://localhost${requestPath}?${query}`;
}

async function* toGenerator(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

// biome-ignore lint/correctness/useYield: a body that fails before its first bytes
async function* failBody(error: ConnectError): AsyncGenerator<Uint8Array> {
  throw error;
}

function readTimeoutMs({ req, context }: HttpExchange): number | undefined {
  return parseTimeoutMs(req.headers, context.protocol.startsWith("connect"));
}

/** Returns whether a handler accepts the HTTP method and the type of a request; otherwise answers it. */
function checkRequest(handler: UniversalHandler, exchange: HttpExchange, isStreaming: boolean): boolean {
  const { req } = exchange;
  const methods = [...handler.allowedMethods, "OPTIONS"].join(", ");
  if (req.method === "OPTIONS") sendOptions(exchange, methods);
  else if (!handler.allowedMethods.includes(req.method ?? "")) sendMethodNotAllowed(exchange, methods);
  else if (req.method === "POST" && !handler.supportedContentType(req.headers["content-type"] ?? "")) {
    sendError(exchange, new ServiceError("INVALID_PARAMETER", "this Content-Type is not supported"), { status: 415 });
  } else if (isStreaming && req.httpVersionMajor < 2) {
    sendError(exchange, new ServiceError("INVALID_PARAMETER", "bidirectional streams need HTTP/2"));
  } else return true;
  return false;
}

/** Sends the response of Connect: one message or many, with trailers for gRPC. */
async function sendUniversalResponse({ res, context }: HttpExchange, response: UniversalServerResponse): Promise<void> {
  const isFailure =
    response.status !== 200 ||
    // A stream can fail before its first message.
    context.reason !== "" ||
    (response.trailer !== undefined && response.trailer.get("grpc-status") !== "0");
  const ownHeaders = isFailure
    ? buildCommonHeaders(context)
    : [...buildSuccessHeaders(context), ...context.buildResponseHeaders()];
  writeHead(res, response.status, [...(response.header ?? [])].flat().concat(ownHeaders));
  for await (const chunk of response.body ?? []) {
    if (context.callerSignal.aborted) break;
    if (!writeChunk(res, chunk)) await waitForDrain(res, context.callerSignal);
  }
  const { trailer } = response;
  if (trailer !== undefined) {
    if (context.code === "unknown" && trailer.get("grpc-status") !== "0") {
      setInternalErrorTrailers(trailer, context, new Error(trailer.get("grpc-message") ?? ""));
    }
    res.addTrailers(toNodeTrailers(trailer));
  }
  res.end();
}

async function parseConnectError(
  body: AsyncIterable<Uint8Array> | undefined,
  fallback: ConnectError,
): Promise<ConnectError> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  try {
    return errorFromJsonBytes(Buffer.concat(chunks), undefined, fallback);
  } catch {
    return fallback;
  }
}

function waitForDrain(res: HttpResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    function done(): void {
      res.off("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    }
    res.on("drain", done);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

/** Aborts a response whose headers are sent. */
function abortResponse(res: HttpResponse): void {
  if ("stream" in res) res.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else res.destroy();
}
