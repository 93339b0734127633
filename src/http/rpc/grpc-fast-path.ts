import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { BeginRequest } from "../admission/begin.js";
import type { BodyBudget } from "../admission/body-budget.js";
import { acceptsGzip, COMPRESS_MIN_BYTES } from "../codec/compression.js";
import type { HttpLimits } from "../connection/http-limits.js";
import { readBuffered } from "../connection/read-buffered.js";
import {
  type BodyFailure,
  type BufferedBody,
  createBodyOverloadError,
  ENVELOPE_BYTES,
  startBodyTimer,
} from "../request/body.js";
import type { InFlightRegistry } from "../request/in-flight-registry.js";
import type { HttpRequestContext } from "../request/request-context.js";
import { buildCommonHeaders } from "../request/response.js";
import { noteSharedBody } from "../request/shared-body.js";
import { type FastPathMethod, invokeOperation, toDeadlineMs, toRemainingMs } from "./fast-path-method.js";
import { gzipCompression, mapConnectError, setInternalErrorTrailers, toNodeTrailers } from "./rpc-errors.js";
import { parseGrpcTimeoutMs } from "./rpc-headers.js";

/**
 * Begins an HTTP/2 stream if it is a plain gRPC call, and returns the work of its turn; returns undefined if it is not.
 * Calls `fallBack` for a call that turns out not to be plain later: the general path then serves the stream as if it were
 * new, with the body read so far.
 */
export type GrpcFastPath = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  fallBack: FallBack,
) => (() => void) | undefined;

type FallBack = (context: HttpRequestContext, bufferedBody: BufferedBody) => void;

interface FastPathCall {
  readonly stream: ServerHttp2Stream;
  readonly context: HttpRequestContext;
  readonly method: FastPathMethod;
  readonly shouldGzip: boolean;
  /** When the deadline of the caller expires, in milliseconds since the epoch. */
  readonly deadlineMs: number | undefined;
  readonly fallBack: FallBack;
}

/** The flag of a compressed length-prefixed message. */
const COMPRESSED_FLAG = 1;

/** How long a caller whose request is refused may continue to send it. */
const LINGER_MS = 1000;
const OK_TRAILERS = { "grpc-status": "0" };

/**
 * Creates the fast path for unary gRPC calls with one uncompressed message. It works below Node's HTTP/2 requests and
 * responses, which cost as much as everything else together.
 */
export function createGrpcFastPath(
  methods: ReadonlyMap<string, FastPathMethod>,
  limits: HttpLimits,
  registry: InFlightRegistry,
  begin: BeginRequest,
  budget: BodyBudget,
): GrpcFastPath {
  const maxBodyBytes = limits.requestBytes + ENVELOPE_BYTES;

  function succeed(call: FastPathCall, message: Message): void {
    const { stream, context, method, shouldGzip } = call;
    if (stream.destroyed || stream.closed) return;
    let bytes: Buffer;
    try {
      bytes = method.writeEnveloped(message);
      if (bytes.length > limits.responseBytes + ENVELOPE_BYTES) throw new Error("the response is too large");
    } catch (error) {
      const trailer = new Headers();
      setInternalErrorTrailers(trailer, context, error);
      sendFailure(call, trailer);
      return;
    }
    const extraHeaders = context.buildResponseHeaders();
    if (!shouldGzip || bytes.length - ENVELOPE_BYTES < COMPRESS_MIN_BYTES) {
      if (Object.isFrozen(message)) noteSharedBody(stream, bytes.length);
      sendMessage(call, bytes, extraHeaders);
      return;
    }
    gzipCompression.compress(bytes.subarray(ENVELOPE_BYTES)).then(
      (compressed) => {
        if (stream.destroyed || stream.closed) return;
        const prefix = Buffer.from([COMPRESSED_FLAG, 0, 0, 0, 0]);
        prefix.writeUInt32BE(compressed.length, 1);
        sendMessage(call, Buffer.concat([prefix, compressed]), extraHeaders);
      },
      () => stream.destroy(),
    );
  }

  /** Serves an admitted call, at once if its body is complete: a whole body takes neither a timer nor a budget. */
  function serve(call: FastPathCall): void {
    const { stream } = call;
    if (stream.destroyed) return;
    const hasEnded = stream.readableEnded || stream.state.remoteClose === 1;
    if (hasEnded && stream.readableLength <= maxBodyBytes) {
      const body = readBuffered(stream);
      invoke(call, body === null ? [] : [body]);
    } else receive(call);
  }

  /** Serves a call whose body is complete. */
  function invoke(call: FastPathCall, chunks: readonly Buffer[]): void {
    const { context, method } = call;
    const request = parseSingleMessage(method, chunks);
    if (request === undefined) call.fallBack(context, { chunks, failure: undefined });
    else {
      const callContext = context.toCallContext(toRemainingMs(call.deadlineMs));
      invokeOperation(method.operation, request, callContext, call, succeed, fail);
    }
  }

  /** Waits for the remainder of a body. */
  function receive(call: FastPathCall): void {
    const { stream, context } = call;
    const body = budget.receive(context, refuse);
    const { chunks } = body;
    let isRead = false;
    const stopTimer = startBodyTimer(limits.requestMs, toRemainingMs(call.deadlineMs), stopReading);
    function stop(): void {
      isRead = true;
      stopTimer();
      body.end();
    }
    function refuse(): void {
      stop();
      fail(call, createBodyOverloadError());
      // The remainder of the request is discarded. Closing the stream at once would drop the trailers.
      const linger = setTimeout(() => stream.close(), LINGER_MS).unref();
      stream.once("close", () => clearTimeout(linger));
    }
    function stopReading(failure?: BodyFailure): void {
      if (isRead) return;
      stop();
      call.fallBack(context, { chunks, failure });
    }
    stream.on("data", (chunk: Buffer) => {
      if (isRead) return;
      body.append(chunk);
      if (body.size > maxBodyBytes) stopReading();
    });
    stream.on("close", stop);
    stream.on("end", () => {
      if (isRead || stream.destroyed) return;
      stop();
      invoke(call, chunks);
    });
  }

  return (stream, headers, fallBack) => {
    const method = methods.get(headers[":path"] ?? "");
    if (method === undefined || !isFastPathEligible(headers) || stream.endAfterHeaders) return undefined;
    const timeout = headers["grpc-timeout"];
    const timeoutMs = typeof timeout === "string" ? parseGrpcTimeoutMs(timeout) : undefined;
    if (timeout !== undefined && timeoutMs === undefined) return undefined;
    const call: FastPathCall = {
      stream,
      context: registry.registerStream(stream, headers),
      method,
      shouldGzip: acceptsGzip(headers["grpc-accept-encoding"]),
      deadlineMs: toDeadlineMs(timeoutMs),
      fallBack,
    };
    const admission = begin(call.context, "grpc", method.name, method.isRateLimited);
    // The stream has no data listener until the call is admitted: its body waits unread.
    return () => {
      if (admission === undefined) serve(call);
      else {
        void admission.then((rejection) => {
          if (call.context.isAborted) return;
          if (rejection === undefined) serve(call);
          else fail(call, rejection);
        });
      }
    };
  };
}

/** Returns whether the headers need none of the features that only the general path has. */
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

/** Parses a body of exactly one uncompressed length-prefixed message; returns undefined for any other. */
function parseSingleMessage(method: FastPathMethod, chunks: readonly Buffer[]): Message | undefined {
  const [first] = chunks;
  if (first === undefined) return undefined;
  const body = chunks.length === 1 ? first : Buffer.concat(chunks);
  if (body.length < ENVELOPE_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) {
    return undefined;
  }
  return method.readBinary(body.subarray(ENVELOPE_BYTES));
}

function sendMessage(call: FastPathCall, bytes: Buffer, extraHeaders: readonly string[]): void {
  sendResponseHeaders(call, extraHeaders, sendOkTrailers);
  call.context.code = "ok";
  call.stream.end(bytes);
}

function fail(call: FastPathCall, error: unknown): void {
  const trailer = new Headers();
  setTrailerStatus(trailer, mapConnectError(call.context, error, call.method.errorDomain));
  sendFailure(call, trailer);
}

/** Ends a call without a message. */
function sendFailure(call: FastPathCall, trailer: Headers): void {
  const { stream } = call;
  if (stream.destroyed || stream.closed) return;
  const trailers = toNodeTrailers(trailer);
  sendResponseHeaders(call, [], () => stream.sendTrailers(trailers));
  stream.end();
}

function sendOkTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(OK_TRAILERS);
}

function sendResponseHeaders(
  { stream, context, shouldGzip }: FastPathCall,
  extraHeaders: readonly string[],
  sendTrailers: (this: ServerHttp2Stream) => void,
): void {
  const headers: Record<string, string | number> = { ":status": 200, "content-type": "application/grpc+proto" };
  if (shouldGzip) headers["grpc-encoding"] = "gzip";
  assignHeaders(headers, buildCommonHeaders(context));
  assignHeaders(headers, extraHeaders);
  stream.respond(headers, { waitForTrailers: true });
  context.hasResponded = true;
  stream.on("wantTrailers", sendTrailers);
}

function assignHeaders(headers: Record<string, string | number>, list: readonly string[]): void {
  for (let i = 0; i + 1 < list.length; i += 2) headers[list[i] ?? ""] = list[i + 1] ?? "";
}
