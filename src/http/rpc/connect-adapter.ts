import { constants } from "node:http2";
import { Code, ConnectError, type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createAsyncIterable, type UniversalHandler, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ServiceError } from "../../errors.js";
import type { BodyBudget } from "../admission/body-budget.js";
import type { HttpLimits } from "../connection/http-limits.js";
import {
  type BufferedBody,
  collectBody,
  createBodyOverloadError,
  ENVELOPE_BYTES,
  readBody,
  replayBody,
} from "../request/body.js";
import { toConnectError, toMalformedRequestError } from "../request/error-mapping.js";
import type { HttpResponse, RequestContext } from "../request/request-context.js";
import {
  buildCommonHeaders,
  buildSuccessHeaders,
  type HttpExchange,
  type PathHandler,
  sendError,
  sendMethodNotAllowed,
  sendOptions,
  writeChunk,
  writeHead,
} from "../request/response.js";
import { recordConnectError, setInternalErrorTrailers, toNodeTrailers } from "./rpc-errors.js";
import { parseConnectTimeoutMs, parseGrpcTimeoutMs, toFetchHeaders } from "./rpc-headers.js";
import { sendRpcError } from "./send-rpc-error.js";

/** Connect's handlers of one method. */
export interface ProtocolHandlers {
  /** For the Connect protocol. */
  readonly connect: UniversalHandler;
  /** For gRPC and gRPC-Web. */
  readonly grpc: UniversalHandler;
}

/** A call that Connect serves. */
interface AdapterCall {
  readonly context: RequestContext;
  /** Whether the request was valid so far that Connect called the interceptors. */
  hasStarted: boolean;
}

const adapterCallKey = createContextKey<AdapterCall | undefined>(undefined);

const NO_BODY: BufferedBody = { chunks: [], failure: undefined };

/** Statuses for malformed requests. Those of the Connect protocol would blame the server or a rate limit. */
const MALFORMED_REQUEST_STATUS: Readonly<Partial<Record<Code, number>>> = {
  [Code.ResourceExhausted]: 413,
  [Code.Unimplemented]: 415,
};

/** Returns the call that Connect serves. */
export function getAdapterCall(values: ContextValues): AdapterCall {
  const call = values.get(adapterCallKey);
  if (call === undefined) throw new Error("no context for this call");
  return call;
}

/** Serves the path of one method: passes Node's request to Connect, and Connect's response to Node. */
export function createConnectAdapter(
  handlers: ProtocolHandlers,
  limits: HttpLimits,
  draining: AbortSignal,
  budget: BodyBudget,
): PathHandler {
  const { method, service, requestPath } = handlers.connect;
  const errorDomain = service.file.proto.package;
  const isUnary = method.methodKind === "unary";
  const isStreaming = method.methodKind === "bidi_streaming";
  const bodyLimits = {
    maxBytes: limits.requestBytes + ENVELOPE_BYTES,
    timeoutMs: isStreaming ? limits.idleMs : limits.requestMs,
    draining,
    budget,
    errorDomain,
  };

  async function serve(exchange: HttpExchange, handler: UniversalHandler, query: string): Promise<void> {
    const { req, context } = exchange;
    const header = toFetchHeaders(req.headers);
    if (header === undefined) {
      sendError(exchange, new ServiceError("INVALID_PARAMETER", "invalid header value"));
      return;
    }
    const call: AdapterCall = { context, hasStarted: false };
    const { bufferedBody = NO_BODY } = exchange;
    const body = isStreaming
      ? readBody(exchange, { ...bodyLimits, remainingMs: readTimeoutMs(exchange) })
      : replayBody(bufferedBody, context, bodyLimits);
    try {
      const response = await handler({
        httpVersion: req.httpVersion,
        method: req.method ?? "",
        url: `http://localhost${requestPath}?${query}`,
        header,
        body,
        signal: context.signal,
        contextValues: createContextValues().set(adapterCallKey, call),
      });
      if (response.body === undefined) {
        const message = "unsupported Content-Type or encoding: use JSON or binary Protobuf";
        sendError(exchange, new ServiceError("INVALID_PARAMETER", message), { status: 415 });
        return;
      }
      const isFailure = handler === handlers.connect && isUnary && response.status !== 200;
      await sendUniversalResponse(
        exchange,
        isFailure ? await correctErrorResponse(response, call, errorDomain) : response,
      );
    } finally {
      // Connect does not always finish the iteration that it starts.
      void body.return(undefined);
    }
  }

  return (exchange, query) => {
    const { req, res, context } = exchange;
    const handler = context.protocol.startsWith("connect") ? handlers.connect : handlers.grpc;
    if (!checkRequest(handler, exchange, isStreaming)) return;
    function start(complete: HttpExchange): void {
      const isOverloaded = complete.bufferedBody?.failure === "overloaded";
      if (isOverloaded && (isUnary || handler === handlers.grpc)) {
        sendRpcError(exchange, createBodyOverloadError(), errorDomain);
        return;
      }
      serve(complete, handler, query).catch((error: unknown) => {
        const publicError = context.recordFailure(error);
        if (res.headersSent) abortResponse(res);
        else sendError(exchange, publicError);
      });
    }
    if (isStreaming || exchange.bufferedBody !== undefined || req.method !== "POST") {
      start(exchange);
      return;
    }
    // A call takes twenty times the memory once Connect has it.
    collectBody(exchange, { ...bodyLimits, remainingMs: readTimeoutMs(exchange) }, (_, bufferedBody) => {
      start({ ...exchange, bufferedBody });
    });
  };
}

/** Returns the time that the caller gives the call; undefined if it gives none, or one that Connect will reject. */
function readTimeoutMs({ req: { headers }, context }: HttpExchange): number | undefined {
  const isConnect = context.protocol.startsWith("connect");
  const text = headers[isConnect ? "connect-timeout-ms" : "grpc-timeout"];
  if (typeof text !== "string") return undefined;
  return isConnect ? parseConnectTimeoutMs(text) : parseGrpcTimeoutMs(text);
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
    if (context.signal.aborted) break;
    if (!writeChunk(res, chunk)) await waitForDrain(res, context.signal);
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

/** Corrects the status and code of a failed unary Connect call: malformed requests are the fault of the caller. */
async function correctErrorResponse(
  response: UniversalServerResponse,
  call: AdapterCall,
  domain: string,
): Promise<UniversalServerResponse> {
  const header = new Headers(response.header);
  header.set("cache-control", "no-store");
  if (call.hasStarted && call.context.code !== "ok") return { ...response, header };
  const fallback = new ConnectError("malformed request", Code.InvalidArgument);
  const original = header.has("content-encoding") ? fallback : await parseConnectError(response.body, fallback);
  // Once the operation has succeeded, the failure is a response that does not serialise.
  const corrected = call.hasStarted
    ? toConnectError(call.context.recordFailure(original), domain)
    : toMalformedRequestError(original, domain);
  recordConnectError(call.context, corrected);
  const body = errorToJsonBytes(corrected, undefined);
  header.delete("content-encoding");
  header.set("content-length", String(body.length));
  const status =
    (call.hasStarted ? undefined : MALFORMED_REQUEST_STATUS[corrected.code]) ?? codeToHttpStatus(corrected.code);
  return { status, header, body: createAsyncIterable([body]) };
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
