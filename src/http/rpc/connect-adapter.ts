import { constants } from "node:http2";
import { Code, ConnectError, type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createAsyncIterable, type UniversalHandler, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ServiceError } from "../../errors.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { ENVELOPE_BYTES, readBody, replayBody } from "../request/body.js";
import { toConnectError, toMalformedRequestError } from "../request/error-mapping.js";
import type { HttpResponse, RequestContext } from "../request/request-context.js";
import {
  buildCommonHeaders,
  type HttpExchange,
  type PathHandler,
  sendError,
  sendMethodNotAllowed,
  sendOptions,
  writeChunk,
  writeHead,
} from "../request/response.js";
import { recordRpcError, setInternalErrorTrailers, toNodeTrailers } from "./rpc-errors.js";
import { toFetchHeaders } from "./rpc-headers.js";

/** One method as Connect serves it. */
export interface MethodHandlers {
  /** For the Connect protocol. */
  readonly connect: UniversalHandler;
  /** For gRPC and gRPC-Web. */
  readonly grpc: UniversalHandler;
}

/** One call in Connect's hands. */
interface AdapterCall {
  readonly context: RequestContext;
  /** Whether its request could be read as far as handing it on. */
  hasStarted: boolean;
}

const adapterCallKey = createContextKey<AdapterCall | undefined>(undefined);

/** HTTP statuses of the Connect protocol that would blame us, or a rate, for a request that cannot be read. */
const MALFORMED_REQUEST_STATUS: Readonly<Partial<Record<Code, number>>> = {
  [Code.ResourceExhausted]: 413,
  [Code.Unimplemented]: 415,
};

/** The record of the call that Connect is serving. */
export function getAdapterCall(values: ContextValues): AdapterCall {
  const rpc = values.get(adapterCallKey);
  if (rpc === undefined) throw new Error("a call without its record");
  return rpc;
}

/** Serves one method's path: Node's request into Connect, and Connect's answer out. */
export function createConnectAdapter(route: MethodHandlers, limits: HttpLimits, draining: AbortSignal): PathHandler {
  const { method, service, requestPath } = route.connect;
  const isUnary = method.methodKind === "unary";
  const isStreaming = method.methodKind === "bidi_streaming";
  const bodyLimits = {
    isStreaming,
    maxBytes: limits.requestBytes + ENVELOPE_BYTES,
    timeoutMs: isStreaming ? limits.idleMs : limits.requestMs,
    draining,
  };

  async function serve(exchange: HttpExchange, handler: UniversalHandler, query: string): Promise<void> {
    const { req, res, context } = exchange;
    const header = toFetchHeaders(req.headers);
    if (header === undefined) {
      sendError(exchange, new ServiceError("INVALID_PARAMETER", "a header holds what no header can"));
      return;
    }
    // A stream may be silent for long; only an answer left unread ends its connection.
    if (!isUnary) res.on("timeout", () => res.writableLength > 0 && abortResponse(res));
    const rpc: AdapterCall = { context, hasStarted: false };
    const { bufferedBody } = exchange;
    const body =
      bufferedBody === undefined
        ? readBody(req, bodyLimits)
        : replayBody(bufferedBody, limits.requestBytes + ENVELOPE_BYTES);
    try {
      const answer = await handler({
        httpVersion: req.httpVersion,
        method: req.method ?? "",
        url: `http://localhost${requestPath}?${query}`,
        header,
        body,
        signal: context.signal,
        contextValues: createContextValues().set(adapterCallKey, rpc),
      });
      if (answer.body === undefined) {
        sendError(
          exchange,
          new ServiceError(
            "INVALID_PARAMETER",
            "the Content-Type or the encoding is none of those served: JSON and binary Protobuf",
          ),
          { status: 415 },
        );
        return;
      }
      const isFailure = handler === route.connect && isUnary && answer.status !== 200;
      await sendUniversalResponse(
        exchange,
        isFailure ? await correctErrorResponse(answer, rpc, service.file.proto.package) : answer,
      );
    } finally {
      // Connect does not always end what it has begun to read.
      void body.return(undefined);
    }
  }

  return (exchange, query) => {
    const { res, context } = exchange;
    const handler = context.protocol.startsWith("connect") ? route.connect : route.grpc;
    if (!checkRequest(handler, exchange, isStreaming)) return;
    serve(exchange, handler, query).catch((error: unknown) => {
      const told = context.recordFailure(error);
      if (res.headersSent) abortResponse(res);
      else sendError(exchange, told);
    });
  };
}

/** Whether a handler takes a request of this method and type; where not, it is answered here. */
function checkRequest(handler: UniversalHandler, exchange: HttpExchange, isStreaming: boolean): boolean {
  const { req } = exchange;
  const methods = [...handler.allowedMethods, "OPTIONS"].join(", ");
  if (req.method === "OPTIONS") sendOptions(exchange, methods);
  else if (!handler.allowedMethods.includes(req.method ?? "")) sendMethodNotAllowed(exchange, methods);
  else if (req.method === "POST" && !handler.supportedContentType(req.headers["content-type"] ?? "")) {
    sendError(exchange, new ServiceError("INVALID_PARAMETER", "this Content-Type is not served"), { status: 415 });
  } else if (isStreaming && req.httpVersionMajor < 2) {
    sendError(exchange, new ServiceError("INVALID_PARAMETER", "a stream in both directions needs HTTP/2"));
  } else return true;
  return false;
}

/** Sends what Connect answered; one message or many, with trailers where gRPC has them. */
async function sendUniversalResponse({ res, context }: HttpExchange, answer: UniversalServerResponse): Promise<void> {
  const isFailure =
    answer.status !== 200 || (answer.trailer !== undefined && answer.trailer.get("grpc-status") !== "0");
  const said = isFailure ? [] : context.buildResponseHeaders();
  writeHead(res, answer.status, [...(answer.header ?? [])].flat().concat(buildCommonHeaders(context), said));
  for await (const chunk of answer.body ?? []) {
    if (context.signal.aborted) break;
    if (!writeChunk(res, chunk)) await waitForDrain(res, context.signal);
  }
  const { trailer } = answer;
  if (trailer !== undefined) {
    if (context.code === "unknown" && trailer.get("grpc-status") !== "0") {
      setInternalErrorTrailers(trailer, context, new Error(trailer.get("grpc-message") ?? ""));
    }
    res.addTrailers(toNodeTrailers(trailer));
  }
  res.end();
}

/** What a failed unary Connect call answers, with the blame put right. */
async function correctErrorResponse(
  answer: UniversalServerResponse,
  rpc: AdapterCall,
  domain: string,
): Promise<UniversalServerResponse> {
  const header = new Headers(answer.header);
  header.set("cache-control", "no-store");
  if (rpc.hasStarted && rpc.context.code !== "ok") return { ...answer, header };
  const fallback = new ConnectError("the request does not parse", Code.InvalidArgument);
  const given = header.has("content-encoding") ? fallback : await parseConnectError(answer.body, fallback);
  // Once the operation has answered, what fails is our own message, which does not serialise.
  const told = rpc.hasStarted
    ? toConnectError(rpc.context.recordFailure(given), domain)
    : toMalformedRequestError(given, domain);
  recordRpcError(rpc.context, told);
  const body = errorToJsonBytes(told, undefined);
  header.delete("content-encoding");
  header.set("content-length", String(body.length));
  const status = (rpc.hasStarted ? undefined : MALFORMED_REQUEST_STATUS[told.code]) ?? codeToHttpStatus(told.code);
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

/** Breaks off an answer that has begun. */
function abortResponse(res: HttpResponse): void {
  if ("stream" in res) res.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else res.destroy();
}
