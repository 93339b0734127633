import type { DescMethodServerStreaming, Message, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import type { BodyBudget } from "../admission/body-budget.js";
import type { StreamQuota } from "../admission/stream-quota.js";
import { acceptsGzip } from "../codec/compression.js";
import { createFastPathBinaryReader } from "../codec/read-binary.js";
import { createFastPathJsonReader } from "../codec/read-json.js";
import { createBinaryWriter } from "../codec/write-binary.js";
import { createJsonWriter } from "../codec/write-json.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { collectBody, ENVELOPE_BYTES } from "../request/body.js";
import { buildCommonHeaders, type HttpExchange, type PathHandler, writeChunk, writeHead } from "../request/response.js";
import { toDeadlineMs, toRemainingMs } from "./fast-path-method.js";
import { mapConnectError, toNodeTrailers } from "./rpc-errors.js";
import { parseConnectTimeoutMs, parseGrpcTimeoutMs } from "./rpc-headers.js";
import { sendRpcError } from "./send-rpc-error.js";

/** The open response of a server-streaming call. */
export interface MessageStream<O> {
  send(message: O): void;
  /** Ends the stream, with an error if there is one. */
  end(error?: unknown): void;
}

/**
 * Serves one call, which stays open until its stream ends. Returns a function that is called once when it has ended in
 * any way: by `end`, at the deadline, or because the caller is gone.
 */
export type ServerStreamOperation<I, O> = (request: I, stream: MessageStream<O>) => () => void;

interface Format {
  readonly contentType: string;
  readonly isBinary: boolean;
}

const GRPC: Format = { contentType: "application/grpc+proto", isBinary: true };
const GRPC_WEB: Format = { contentType: "application/grpc-web+proto", isBinary: true };
const CONNECT_JSON: Format = { contentType: "application/connect+json", isBinary: false };
const CONNECT_BINARY: Format = { contentType: "application/connect+proto", isBinary: true };

/** Formats by the content type of their requests. */
const FORMATS: ReadonlyMap<string | undefined, Format> = new Map([
  ["application/grpc", GRPC],
  [GRPC.contentType, GRPC],
  ["application/grpc-web", GRPC_WEB],
  [GRPC_WEB.contentType, GRPC_WEB],
  [CONNECT_JSON.contentType, CONNECT_JSON],
  [CONNECT_BINARY.contentType, CONNECT_BINARY],
]);

interface StreamCall {
  readonly exchange: HttpExchange;
  readonly format: Format;
  readonly encoding: string | undefined;
  readonly deadlineMs: number | undefined;
}

/**
 * Creates the fast path of a server-streaming method for uncompressed requests over gRPC, gRPC-Web and Connect. Connect's
 * adapter takes four times the memory for each open stream. Other requests fall back to `general`.
 */
export function createServerStreamHandler<M extends DescMethodServerStreaming>(
  method: M,
  operation: ServerStreamOperation<MessageShape<M["input"]>, MessageShape<M["output"]>>,
  {
    limits,
    quota,
    budget,
    general,
  }: { limits: HttpLimits; quota: StreamQuota; budget: BodyBudget; general: PathHandler },
): PathHandler {
  const readBinary = createFastPathBinaryReader(method.input);
  const readJson = createFastPathJsonReader(method.input);
  const writeBinary = createBinaryWriter(method.output);
  const writeJson = createJsonWriter(method.output);
  const domain = method.parent.file.proto.package;
  const bodyLimits = { maxBytes: limits.requestBytes + ENVELOPE_BYTES, timeoutMs: limits.requestMs, budget };

  function parse({ isBinary }: Format, body: Buffer): Message | undefined {
    if (body.length < ENVELOPE_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) {
      return undefined;
    }
    const bytes = body.subarray(ENVELOPE_BYTES);
    return isBinary ? readBinary(bytes) : readJson(bytes.toString("latin1"));
  }

  /** Takes a place until the request ends, and returns the function that releases it earlier; or refuses the call. */
  function admit(call: StreamCall): (() => void) | undefined {
    const { exchange, format } = call;
    const { req, context } = exchange;
    let release: (() => void) | undefined;
    try {
      release = quota.acquire(context.caller);
    } catch (error) {
      req.resume();
      if (format === GRPC || format === GRPC_WEB) {
        sendRpcError(exchange, context.recordFailure(error), domain);
      } else {
        writeStreamHead(call);
        finish(call, mapConnectError(context, error, domain));
      }
      return undefined;
    }
    const releaseOnce = (): void => {
      release?.();
      release = undefined;
    };
    context.onEnd(releaseOnce);
    return releaseOnce;
  }

  function start(call: StreamCall, request: Message): void {
    const { context } = call.exchange;
    const write = call.format.isBinary
      ? (message: Message) => writeBinary(message, 0)
      : (message: Message) => Buffer.from(writeJson(message));
    writeStreamHead(call);
    let isOpen = true;
    const stream: MessageStream<Message> = {
      send(message) {
        if (isOpen) writeChunk(call.exchange.res, envelop(0, write(message)));
      },
      end(error) {
        if (!isOpen) return;
        isOpen = false;
        context.code = "ok";
        finish(call, error === undefined ? undefined : mapConnectError(context, error, domain));
      },
    };
    try {
      const onEnd = operation(request as never, stream as never);
      const timer = startDeadline(call, () =>
        stream.end(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
      );
      context.onEnd(() => {
        isOpen = false;
        clearTimeout(timer);
        onEnd();
      });
    } catch (error) {
      stream.end(error);
    }
  }

  return (exchange, query) => {
    const call = parseCall(exchange);
    if (call === undefined) {
      general(exchange, query);
      return;
    }
    // Before the request is read: a stream takes its memory from the start, and a refusal should take little.
    const release = admit(call);
    if (release === undefined) return;
    collectBody(exchange, { ...bodyLimits, remainingMs: toRemainingMs(call.deadlineMs) }, (body, bufferedBody) => {
      const request = body && parse(call.format, body);
      if (request === undefined) {
        release();
        general({ ...exchange, bufferedBody }, query);
      } else start(call, request);
    });
  };
}

/** Returns undefined if the request needs the general path. */
function parseCall(exchange: HttpExchange): StreamCall | undefined {
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
  const timeout = headers[isConnect ? "connect-timeout-ms" : "grpc-timeout"];
  if (timeout === undefined) return { exchange, format, encoding, deadlineMs: undefined };
  const timeoutMs = isConnect ? parseConnectTimeoutMs(timeout.toString()) : parseGrpcTimeoutMs(timeout.toString());
  if (timeoutMs === undefined || timeoutMs <= 0) return undefined;
  return { exchange, format, encoding, deadlineMs: toDeadlineMs(timeoutMs) };
}

/** Connect's own header lists names without weights and wildcards. Its Node.js client sends `gzip,br`. */
function listsGzip(accepted: string | undefined): boolean {
  return accepted?.split(",").some((name) => name.trim() === "gzip") === true;
}

function startDeadline({ deadlineMs }: StreamCall, onDeadline: () => void): NodeJS.Timeout | undefined {
  return deadlineMs === undefined ? undefined : setTimeout(onDeadline, toRemainingMs(deadlineMs));
}

function writeStreamHead({ exchange: { res, context }, format, encoding }: StreamCall): void {
  const headers = ["content-type", format.contentType];
  if (encoding !== undefined) {
    headers.push(context.protocol === "connect" ? "connect-content-encoding" : "grpc-encoding", encoding);
  }
  writeHead(res, 200, [...headers, ...buildCommonHeaders(context)]);
}

/** Writes the outcome of a stream in the form of its protocol, and ends the response. */
function finish({ exchange: { res }, format }: StreamCall, error: ConnectError | undefined): void {
  if (format === CONNECT_JSON || format === CONNECT_BINARY) {
    const text = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
    res.end(envelop(endStreamFlag, Buffer.from(text)));
    return;
  }
  const trailer = setTrailerStatus(new Headers(), error);
  if (format === GRPC) {
    res.addTrailers(toNodeTrailers(trailer));
    res.end();
  } else res.end(envelop(trailerFlag, trailerSerialize(trailer)));
}

function envelop(flags: number, bytes: Uint8Array): Buffer {
  const prefix = Buffer.alloc(ENVELOPE_BYTES);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}
