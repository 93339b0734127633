import { constants } from "node:http2";
import { Code, ConnectError, type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { createAsyncIterable, type UniversalHandler, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { ServiceError } from "../../errors.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { ENVELOPE_BYTES, givenBody, readBody } from "../request/body.js";
import { toConnectError, toRequestFault } from "../request/error-mapping.js";
import type { Call, HttpResponse } from "../request/request-context.js";
import {
  answerError,
  answerOptions,
  commonHeaders,
  type Exchange,
  type PathHandler,
  writeChunk,
  writeHead,
} from "../request/response.js";
import { failTrailer, noteTold, trailerFields } from "./rpc-errors.js";
import { toHeaders } from "./rpc-headers.js";

/** One method as Connect serves it. */
export interface RpcRoute {
  /** For the Connect protocol. */
  readonly connect: UniversalHandler;
  /** For gRPC and gRPC-Web. */
  readonly grpc: UniversalHandler;
}

/** One call in Connect's hands. */
interface Rpc {
  readonly call: Call;
  /** Whether its request could be read as far as handing it on. */
  started: boolean;
}

const rpcKey = createContextKey<Rpc | undefined>(undefined);

/** HTTP statuses of the Connect protocol that would blame us, or a rate, for a request that cannot be read. */
const REQUEST_FAULT_STATUS: Readonly<Partial<Record<Code, number>>> = {
  [Code.ResourceExhausted]: 413,
  [Code.Unimplemented]: 415,
};

/** The record of the call that Connect is serving. */
export function rpcOf(values: ContextValues): Rpc {
  const rpc = values.get(rpcKey);
  if (rpc === undefined) throw new Error("a call without its record");
  return rpc;
}

/** Serves one method's path: Node's request into Connect, and Connect's answer out. */
export function createRpcHandler(route: RpcRoute, limits: HttpLimits, draining: AbortSignal): PathHandler {
  const { method, service, requestPath } = route.connect;
  const isUnary = method.methodKind === "unary";
  const isEndless = method.methodKind === "bidi_streaming";
  const bodyLimits = {
    isEndless,
    maxBytes: limits.requestBytes + ENVELOPE_BYTES,
    waitMs: isEndless ? limits.idleMs : limits.requestMs,
    draining,
  };

  async function serve(exchange: Exchange, handler: UniversalHandler, query: string): Promise<void> {
    const { req, res, call } = exchange;
    const header = toHeaders(req.headers);
    if (header === undefined) {
      answerError(exchange, new ServiceError("INVALID_PARAMETER", "a header holds what no header can"));
      return;
    }
    // A stream may be silent for long; only an answer left unread ends its connection.
    if (!isUnary) res.on("timeout", () => res.writableLength > 0 && cut(res));
    const rpc: Rpc = { call, started: false };
    const { given } = exchange;
    const body =
      given === undefined ? readBody(req, bodyLimits) : givenBody(given, limits.requestBytes + ENVELOPE_BYTES);
    try {
      const answer = await handler({
        httpVersion: req.httpVersion,
        method: req.method ?? "",
        url: `http://localhost${requestPath}?${query}`,
        header,
        body,
        signal: call.signal,
        contextValues: createContextValues().set(rpcKey, rpc),
      });
      if (answer.body === undefined) {
        answerError(
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
      await send(exchange, isFailure ? await correctFailure(answer, rpc, service.file.proto.package) : answer);
    } finally {
      // Connect does not always end what it has begun to read.
      void body.return(undefined);
    }
  }

  return (exchange, query) => {
    const { req, res, call } = exchange;
    call.operation = `${service.typeName}/${method.name}`;
    if (call.protocol === "rest") call.protocol = req.method === "GET" ? "connect-get" : "connect";
    const handler = call.protocol.startsWith("connect") ? route.connect : route.grpc;
    if (!accepts(handler, exchange, isEndless)) return;
    serve(exchange, handler, query).catch((error: unknown) => {
      const told = call.fail(error);
      if (res.headersSent) cut(res);
      else answerError(exchange, told);
    });
  };
}

/** Whether a handler takes a request of this method and type; where not, it is answered here. */
function accepts(handler: UniversalHandler, exchange: Exchange, isEndless: boolean): boolean {
  const { req } = exchange;
  const methods = [...handler.allowedMethods, "OPTIONS"].join(", ");
  if (req.method === "OPTIONS") answerOptions(exchange, methods);
  else if (!handler.allowedMethods.includes(req.method ?? "")) {
    const error = new ServiceError("METHOD_NOT_ALLOWED", `the method must be one of ${methods}`);
    answerError(exchange, error, { headers: ["allow", methods] });
  } else if (req.method === "POST" && !handler.supportedContentType(req.headers["content-type"] ?? "")) {
    answerError(exchange, new ServiceError("INVALID_PARAMETER", "this Content-Type is not served"), { status: 415 });
  } else if (isEndless && req.httpVersionMajor < 2) {
    answerError(exchange, new ServiceError("INVALID_PARAMETER", "a stream in both directions needs HTTP/2"));
  } else return true;
  return false;
}

/** Sends what Connect answered; one message or many, with trailers where gRPC has them. */
async function send({ res, call }: Exchange, answer: UniversalServerResponse): Promise<void> {
  const isFailure =
    answer.status !== 200 || (answer.trailer !== undefined && answer.trailer.get("grpc-status") !== "0");
  const said = isFailure ? [] : call.answerHeaders();
  writeHead(res, answer.status, [...(answer.header ?? [])].flat().concat(commonHeaders(call), said));
  for await (const chunk of answer.body ?? []) {
    if (call.signal.aborted) break;
    if (!writeChunk(res, chunk)) await drained(res, call.signal);
  }
  const { trailer } = answer;
  if (trailer !== undefined) {
    if (call.code === "unknown" && trailer.get("grpc-status") !== "0") {
      failTrailer(trailer, call, new Error(trailer.get("grpc-message") ?? ""));
    }
    res.addTrailers(trailerFields(trailer));
  }
  res.end();
}

/** What a failed unary Connect call answers, with the blame put right. */
async function correctFailure(
  answer: UniversalServerResponse,
  rpc: Rpc,
  domain: string,
): Promise<UniversalServerResponse> {
  const header = new Headers(answer.header);
  header.set("cache-control", "no-store");
  if (rpc.started && rpc.call.code !== "ok") return { ...answer, header };
  const fallback = new ConnectError("the request does not parse", Code.InvalidArgument);
  const given = header.has("content-encoding") ? fallback : await parseError(answer.body, fallback);
  // Once the operation has answered, what fails is our own message, which does not serialise.
  const told = rpc.started ? toConnectError(rpc.call.fail(given), domain) : toRequestFault(given, domain);
  noteTold(rpc.call, told);
  const body = errorToJsonBytes(told, undefined);
  header.delete("content-encoding");
  header.set("content-length", String(body.length));
  const status = (rpc.started ? undefined : REQUEST_FAULT_STATUS[told.code]) ?? codeToHttpStatus(told.code);
  return { status, header, body: createAsyncIterable([body]) };
}

async function parseError(body: AsyncIterable<Uint8Array> | undefined, fallback: ConnectError): Promise<ConnectError> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  try {
    return errorFromJsonBytes(Buffer.concat(chunks), undefined, fallback);
  } catch {
    return fallback;
  }
}

function drained(res: HttpResponse, signal: AbortSignal): Promise<void> {
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
function cut(res: HttpResponse): void {
  if ("stream" in res) res.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else res.destroy();
}
