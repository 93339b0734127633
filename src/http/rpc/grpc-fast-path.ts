import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "../codec/compression.js";
import type { HttpLimits } from "../connection/http-limits.js";
import type { Begin } from "../request/begin.js";
import { appendChunk, type BufferedBody, ENVELOPE_BYTES } from "../request/body.js";
import type { InFlightRegistry } from "../request/in-flight-registry.js";
import type { StreamRequestContext } from "../request/request-context.js";
import { buildCommonHeaders } from "../request/response.js";
import { type FastPathMethod, invokeOperation, toDeadlineMs, toRemainingMs } from "./fast-path-method.js";
import { gzipCompression, mapRpcError, setInternalErrorTrailers, toNodeTrailers } from "./rpc-errors.js";
import { parseGrpcTimeoutMs } from "./rpc-headers.js";

/**
 * Serves a stream of HTTP/2 if it is a plain gRPC call; false where it is not. What turns out not to be plain later is
 * handed over: the stream is then to be served as if it had just come, but for the body, which is given.
 */
export type GrpcFastPath = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  handOver: (call: StreamRequestContext, given: BufferedBody) => void,
) => boolean;

/** The flag of a message that is compressed. */
const COMPRESSED_FLAG = 1;
const OK_TRAILERS = { "grpc-status": "0" };

/**
 * The short way for unary gRPC calls of known methods with one message that is not compressed. It works below Node's
 * requests and responses for HTTP/2, which cost as much as all the rest.
 */
export function createGrpcFastPath(
  methods: ReadonlyMap<string, FastPathMethod>,
  limits: HttpLimits,
  calls: InFlightRegistry,
  begin: Begin,
): GrpcFastPath {
  const longest = limits.requestBytes + ENVELOPE_BYTES;

  function answer(
    stream: ServerHttp2Stream,
    call: StreamRequestContext,
    isGzip: boolean,
    bytes: Buffer,
    more: readonly string[],
  ) {
    sendResponseHeaders(stream, call, isGzip, more, OK_TRAILERS);
    call.code = "ok";
    stream.end(bytes);
  }

  function succeed(
    stream: ServerHttp2Stream,
    call: StreamRequestContext,
    method: FastPathMethod,
    isGzip: boolean,
    message: Message,
  ) {
    if (stream.destroyed || stream.closed) return;
    let bytes: Buffer;
    try {
      bytes = method.writeEnveloped(message);
      if (bytes.length > limits.responseBytes + ENVELOPE_BYTES) throw new Error("the response is too large");
    } catch (error) {
      const trailer = new Headers();
      setInternalErrorTrailers(trailer, call, error);
      end(stream, call, isGzip, trailer);
      return;
    }
    const more = call.buildResponseHeaders();
    if (!isGzip || bytes.length - ENVELOPE_BYTES < COMPRESS_MIN_BYTES) {
      answer(stream, call, isGzip, bytes, more);
      return;
    }
    gzipCompression.compress(bytes.subarray(ENVELOPE_BYTES)).then(
      (packed) => {
        if (stream.destroyed || stream.closed) return;
        const head = Buffer.from([COMPRESSED_FLAG, 0, 0, 0, 0]);
        head.writeUInt32BE(packed.length, 1);
        answer(stream, call, isGzip, Buffer.concat([head, packed]), more);
      },
      () => stream.destroy(),
    );
  }

  function fail(
    stream: ServerHttp2Stream,
    call: StreamRequestContext,
    method: FastPathMethod,
    isGzip: boolean,
    error: unknown,
  ) {
    const trailer = new Headers();
    setTrailerStatus(trailer, mapRpcError(call, error, method.errorDomain));
    end(stream, call, isGzip, trailer);
  }

  /** Ends a call without a message. */
  function end(stream: ServerHttp2Stream, call: StreamRequestContext, isGzip: boolean, trailer: Headers): void {
    if (stream.destroyed || stream.closed) return;
    sendResponseHeaders(stream, call, isGzip, [], toNodeTrailers(trailer));
    stream.end();
  }

  return (stream, headers, handOver) => {
    const method = methods.get(headers[":path"] ?? "");
    if (method === undefined || !isFastPathEligible(headers) || stream.endAfterHeaders) return false;
    const timeout = headers["grpc-timeout"];
    const timeoutMs = typeof timeout === "string" ? parseGrpcTimeoutMs(timeout) : undefined;
    if (timeout !== undefined && timeoutMs === undefined) return false;
    const deadline = toDeadlineMs(timeoutMs);
    const isGzip = acceptsGzip(headers["grpc-accept-encoding"]);
    const call = calls.registerStream(stream, headers);
    // No listener before it is counted: what comes waits unread.
    const receive = (): void => {
      const chunks: Buffer[] = [];
      let size = 0;
      let isRead = false;
      const timer = setTimeout(() => giveUp(true), limits.requestMs);
      function giveUp(isTimedOut: boolean): void {
        if (isRead) return;
        isRead = true;
        clearTimeout(timer);
        handOver(call, { chunks, isTimedOut });
      }
      stream.on("data", (chunk: Buffer) => {
        if (isRead) return;
        appendChunk(chunks, chunk);
        size += chunk.length;
        if (size > longest) giveUp(false);
      });
      stream.on("close", () => {
        isRead = true;
        clearTimeout(timer);
      });
      stream.on("end", () => {
        if (isRead || stream.destroyed) return;
        const request = parseSingleMessage(method, chunks);
        if (request === undefined) {
          giveUp(false);
          return;
        }
        isRead = true;
        clearTimeout(timer);
        invokeOperation(
          method.operation,
          request,
          call.toCallContext(toRemainingMs(deadline)),
          (message) => succeed(stream, call, method, isGzip, message),
          (error) => fail(stream, call, method, isGzip, error),
        );
      });
    };
    const admission = begin(call, "grpc", method.name, method.isRateLimited);
    if (admission === undefined) receive();
    else {
      void admission.then((refusal) => {
        if (call.isAborted) return;
        if (refusal === undefined) receive();
        else fail(stream, call, method, isGzip, refusal);
      });
    }
    return true;
  };
}

/** Whether the headers ask for nothing that only the adapter knows. */
function isFastPathEligible(headers: IncomingHttpHeaders): boolean {
  const type = headers["content-type"];
  const encoding = headers["grpc-encoding"];
  return (
    headers[":method"] === "POST" &&
    (type === "application/grpc" || type === "application/grpc+proto") &&
    (encoding === undefined || encoding === "identity") &&
    headers.expect === undefined
  );
}

/** The one message of a body; undefined where it is not one, or not a plain one. */
function parseSingleMessage(method: FastPathMethod, chunks: readonly Buffer[]): Message | undefined {
  const [first] = chunks;
  if (first === undefined) return undefined;
  const body = chunks.length === 1 ? first : Buffer.concat(chunks);
  if (body.length < ENVELOPE_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) {
    return undefined;
  }
  return method.readBinary(body.subarray(ENVELOPE_BYTES));
}

function sendResponseHeaders(
  stream: ServerHttp2Stream,
  call: StreamRequestContext,
  isGzip: boolean,
  more: readonly string[],
  trailers: Record<string, string>,
): void {
  const headers: Record<string, string | number> = { ":status": 200, "content-type": "application/grpc+proto" };
  if (isGzip) headers["grpc-encoding"] = "gzip";
  assignHeaders(headers, buildCommonHeaders(call));
  assignHeaders(headers, more);
  stream.respond(headers, { waitForTrailers: true });
  call.hasResponded = true;
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
}

function assignHeaders(headers: Record<string, string | number>, list: readonly string[]): void {
  for (let i = 0; i + 1 < list.length; i += 2) headers[list[i] ?? ""] = list[i + 1] ?? "";
}
