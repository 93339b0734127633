import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import type { OverloadManager } from "../admission/overload-manager.js";
import { acceptsGzip } from "../codec/gzip.js";
import { createProtobufJsonPrinter } from "../codec/json-printer.js";
import { createFastPathBinaryReader } from "../codec/read-binary.js";
import { createBinaryWriter } from "../codec/write-binary.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { collectBody, ENVELOPE_BYTES } from "../request/body.js";
import type { AnyStreamOperation } from "../request/mounted-service.js";
import { type HttpExchange, type PathHandler, writeHead } from "../request/response.js";
import { buildCommonHeaders } from "../request/response-headers.js";
import { writeFlushedChunk } from "../stream/flushed-chunk.js";
import type { StreamPlaces } from "../stream/stream-places.js";
import type { StreamingCalls, StreamOutcome, StreamTransport } from "../stream/streaming-calls.js";
import { mapConnectError, sendRpcError, toNodeTrailers } from "./rpc-errors.js";
import { parseTimeoutMs, toDeadlineMs, toRemainingMs } from "./rpc-headers.js";
import { createJsonReader, envelop, fillEnvelope, parseEnveloped, writeEnvelope } from "./rpc-messages.js";

/** A server-streaming method and its operation. */
export interface StreamMethod {
  readonly method: DescMethod;
  readonly operation: AnyStreamOperation;
  /** Of the streams that the fast path serves. */
  readonly places: StreamPlaces;
}

/**
 * Creates the fast path of a server-streaming method for uncompressed requests over gRPC, gRPC-Web and Connect. Connect's
 * adapter takes four times the memory for each open stream. Other requests fall back to `general`.
 */
export function createStreamFastPath(
  { method, operation, places }: StreamMethod,
  {
    limits,
    calls,
    overload,
  }: { readonly limits: HttpLimits; readonly calls: StreamingCalls; readonly overload: OverloadManager },
  general: PathHandler,
): PathHandler {
  const readBinary = createFastPathBinaryReader(method.input);
  const readJson = createJsonReader(method.input);
  const encode = createEncoder(method);
  const domain = method.parent.file.proto.package;
  const bodyLimits = { maxBytes: limits.requestBytes + ENVELOPE_BYTES, timeoutMs: limits.requestMs, overload };

  return (exchange, query) => {
    const call = parseStreamCall(exchange);
    if (call === undefined) {
      general(exchange, query);
      return;
    }
    const transport = new RpcStreamTransport(call, encode, limits.responseBytes, domain);
    // Before the request is read: a stream takes its memory from the start, and a refusal should take little.
    let release: () => void;
    try {
      release = places.admit(exchange);
    } catch (error) {
      transport.refuse(error);
      return;
    }
    collectBody(exchange, { ...bodyLimits, remainingMs: toRemainingMs(call.deadlineMs) }, (body, bufferedBody) => {
      const request = body && parseEnveloped(body, call.format.isBinary ? readBinary : readJson);
      if (request === undefined) {
        release();
        general({ ...exchange, bufferedBody }, query);
        return;
      }
      const remainingMs = toRemainingMs(call.deadlineMs);
      calls.open({ context: exchange.context, operation, request, transport, remainingMs });
    });
  };
}

/** Returns a message in its envelope. Throws if it does not serialise. */
type Encode = (message: Message, format: StreamFormat) => Buffer;

function createEncoder({ output }: DescMethod): Encode {
  const writeBinary = createBinaryWriter(output);
  const printJson = createProtobufJsonPrinter(output);
  return (message, { isBinary }) => {
    if (isBinary) return writeEnvelope(writeBinary, message);
    const text = printJson(message);
    const bytes = Buffer.allocUnsafe(ENVELOPE_BYTES + Buffer.byteLength(text));
    bytes.write(text, ENVELOPE_BYTES);
    return fillEnvelope(bytes);
  };
}

/** Sends the messages of one stream. A class because there are thousands: its methods are shared. */
class RpcStreamTransport implements StreamTransport {
  constructor(
    private readonly call: StreamCall,
    private readonly encode: Encode,
    private readonly maxMessageBytes: number,
    private readonly domain: string,
  ) {}

  write(message: Message, onFlushed: () => void): number {
    const { call } = this;
    const { res } = call.exchange;
    const bytes = this.encode(message, call.format);
    if (bytes.length > this.maxMessageBytes + ENVELOPE_BYTES) throw new Error("the message is too large");
    if (!res.headersSent) writeStreamHead(call, false);
    writeFlushedChunk(res, bytes, onFlushed);
    return bytes.length;
  }

  finish(outcome: StreamOutcome): void {
    const { call } = this;
    const { res, context } = call.exchange;
    const error = outcome.kind === "failed" ? mapConnectError(context, outcome.error, this.domain) : undefined;
    if (error === undefined) context.code = "ok";
    if (!res.headersSent) writeStreamHead(call, error !== undefined);
    writeStreamEnd(call, error);
  }

  /** Answers a call that may not begin, without reading its request. */
  refuse(error: unknown): void {
    const { exchange, format } = this.call;
    exchange.req.resume();
    if (format.protocol === "connect") this.finish({ kind: "failed", error });
    else sendRpcError(exchange, exchange.context.recordFailure(error), this.domain);
  }
}

/** How a protocol frames the messages of a stream. */
interface StreamFormat {
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly contentType: string;
  readonly isBinary: boolean;
}

const GRPC: StreamFormat = { protocol: "grpc", contentType: "application/grpc+proto", isBinary: true };
const GRPC_WEB: StreamFormat = { protocol: "grpc-web", contentType: "application/grpc-web+proto", isBinary: true };
const CONNECT_JSON: StreamFormat = { protocol: "connect", contentType: "application/connect+json", isBinary: false };
const CONNECT_BINARY: StreamFormat = { protocol: "connect", contentType: "application/connect+proto", isBinary: true };

/** Formats by the content type of their requests. */
const FORMATS: ReadonlyMap<string | undefined, StreamFormat> = new Map([
  ["application/grpc", GRPC],
  [GRPC.contentType, GRPC],
  ["application/grpc-web", GRPC_WEB],
  [GRPC_WEB.contentType, GRPC_WEB],
  [CONNECT_JSON.contentType, CONNECT_JSON],
  [CONNECT_BINARY.contentType, CONNECT_BINARY],
]);

/** A streaming call as its headers describe it. */
interface StreamCall {
  readonly exchange: HttpExchange;
  readonly format: StreamFormat;
  /** Compression that the caller accepts. Messages are not compressed, but the head names it. */
  readonly encoding: string | undefined;
  /** When the caller's deadline expires, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
}

/** Returns undefined if the request needs the general path. */
function parseStreamCall(exchange: HttpExchange): StreamCall | undefined {
  const { req, context } = exchange;
  const { headers } = req;
  const format = FORMATS.get(headers["content-type"]);
  if (format === undefined || req.method !== "POST") return undefined;
  const isConnect = context.protocol === "connect";
  // gRPC needs the trailers of HTTP/2.
  if (format === GRPC && req.httpVersionMajor < 2) return undefined;
  const requestEncoding = headers[isConnect ? "connect-content-encoding" : "grpc-encoding"] ?? "identity";
  if (requestEncoding !== "identity") return undefined;
  const accepted = headers[isConnect ? "connect-accept-encoding" : "grpc-accept-encoding"];
  const encoding = (isConnect ? listsGzip : acceptsGzip)(accepted?.toString()) ? "gzip" : undefined;
  const timeoutMs = parseTimeoutMs(headers, isConnect);
  const isLimited = headers[isConnect ? "connect-timeout-ms" : "grpc-timeout"] !== undefined;
  if (isLimited && (timeoutMs === undefined || timeoutMs <= 0)) return undefined;
  return { exchange, format, encoding, deadlineMs: toDeadlineMs(timeoutMs) };
}

/** Connect's own header lists names without weights and wildcards. Its Node.js client sends `gzip,br`. */
function listsGzip(accepted: string | undefined): boolean {
  return accepted?.split(",").some((name) => name.trim() === "gzip") === true;
}

function writeStreamHead({ exchange: { res, context }, format, encoding }: StreamCall, hasFailed: boolean): void {
  const headers = ["content-type", format.contentType];
  if (encoding !== undefined) {
    headers.push(format.protocol === "connect" ? "connect-content-encoding" : "grpc-encoding", encoding);
  }
  headers.push(...buildCommonHeaders(context));
  if (!hasFailed) headers.push(...context.buildResponseHeaders());
  writeHead(res, 200, headers);
}

/** Writes the outcome of a stream in the form of its protocol, and ends the response. */
function writeStreamEnd({ exchange: { res }, format }: StreamCall, error: ConnectError | undefined): void {
  if (format.protocol === "connect") {
    const text = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
    res.end(envelop(endStreamFlag, Buffer.from(text)));
    return;
  }
  const trailer = setTrailerStatus(new Headers(), error);
  if (format.protocol === "grpc") {
    res.addTrailers(toNodeTrailers(trailer));
    res.end();
  } else res.end(envelop(trailerFlag, trailerSerialize(trailer)));
}
