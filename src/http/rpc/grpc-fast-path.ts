import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { HttpLimits } from "../connection/http-limits.js";
import { collect, ENVELOPE_BYTES, type GivenBody } from "../request/body.js";
import type { Calls } from "../request/in-flight-registry.js";
import type { RateLimit } from "../request/rate-limiter.js";
import type { StreamCall } from "../request/request-context.js";
import { commonHeaders } from "../request/response.js";
import { deadlineOf, leftOf, type PlainMethod, run } from "./fast-path-method.js";
import { COMPRESS_MIN_BYTES, failTrailer, gzip, tellFailure, trailerFields } from "./rpc-errors.js";
import { acceptsGzip, grpcTimeoutMs } from "./rpc-headers.js";

/**
 * Serves a stream of HTTP/2 if it is a plain gRPC call; false where it is not. What turns out not to be plain later is
 * handed over: the stream is then to be served as if it had just come, but for the body, which is given.
 */
export type PlainGrpc = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  handOver: (call: StreamCall, given: GivenBody) => void,
) => boolean;

/** The flag of a message that is compressed. */
const COMPRESSED = 1;
const OK_TRAILERS = { "grpc-status": "0" };

/**
 * The short way for unary gRPC calls of known methods with one message that is not compressed. It works below Node's
 * requests and responses for HTTP/2, which cost as much as all the rest.
 */
export function createPlainGrpc(
  methods: ReadonlyMap<string, PlainMethod>,
  limits: HttpLimits,
  calls: Calls,
  rateLimit: RateLimit | undefined,
): PlainGrpc {
  const longest = limits.requestBytes + ENVELOPE_BYTES;

  function answer(
    stream: ServerHttp2Stream,
    call: StreamCall,
    isGzip: boolean,
    bytes: Buffer,
    more: readonly string[],
  ) {
    sendHead(stream, call, isGzip, more, OK_TRAILERS);
    call.code = "ok";
    stream.end(bytes);
  }

  function succeed(
    stream: ServerHttp2Stream,
    call: StreamCall,
    method: PlainMethod,
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
      failTrailer(trailer, call, error);
      end(stream, call, isGzip, trailer);
      return;
    }
    const more = call.answerHeaders();
    if (!isGzip || bytes.length - ENVELOPE_BYTES < COMPRESS_MIN_BYTES) {
      answer(stream, call, isGzip, bytes, more);
      return;
    }
    gzip.compress(bytes.subarray(ENVELOPE_BYTES)).then(
      (packed) => {
        if (stream.destroyed || stream.closed) return;
        const head = Buffer.from([COMPRESSED, 0, 0, 0, 0]);
        head.writeUInt32BE(packed.length, 1);
        answer(stream, call, isGzip, Buffer.concat([head, packed]), more);
      },
      () => stream.destroy(),
    );
  }

  function fail(stream: ServerHttp2Stream, call: StreamCall, method: PlainMethod, isGzip: boolean, error: unknown) {
    const trailer = new Headers();
    setTrailerStatus(trailer, tellFailure(call, error, method.domain));
    end(stream, call, isGzip, trailer);
  }

  /** Ends a call without a message. */
  function end(stream: ServerHttp2Stream, call: StreamCall, isGzip: boolean, trailer: Headers): void {
    if (stream.destroyed || stream.closed) return;
    sendHead(stream, call, isGzip, [], trailerFields(trailer));
    stream.end();
  }

  return (stream, headers, handOver) => {
    const method = methods.get(headers[":path"] ?? "");
    if (method === undefined || !isPlain(headers) || stream.endAfterHeaders) return false;
    const timeout = headers["grpc-timeout"];
    const timeoutMs = typeof timeout === "string" ? grpcTimeoutMs(timeout) : undefined;
    if (timeout !== undefined && timeoutMs === undefined) return false;
    const deadline = deadlineOf(timeoutMs);
    const isGzip = acceptsGzip(headers["grpc-accept-encoding"] as string | undefined);
    const call = calls.openStream(stream, headers);
    call.protocol = "grpc";
    call.operation = method.name;

    // No listener before it is counted: what comes waits unread.
    const receive = (): void => {
      const chunks: Buffer[] = [];
      let size = 0;
      let isRead = false;
      const timer = setTimeout(() => giveUp(true), limits.requestMs);
      function giveUp(isLate: boolean): void {
        if (isRead) return;
        isRead = true;
        clearTimeout(timer);
        handOver(call, { chunks, isLate });
      }
      stream.on("data", (chunk: Buffer) => {
        if (isRead) return;
        collect(chunks, chunk);
        size += chunk.length;
        if (size > longest) giveUp(false);
      });
      stream.on("close", () => {
        isRead = true;
        clearTimeout(timer);
      });
      stream.on("end", () => {
        if (isRead || stream.destroyed) return;
        const request = readMessage(method, chunks);
        if (request === undefined) {
          giveUp(false);
          return;
        }
        isRead = true;
        clearTimeout(timer);
        run(
          method.operation,
          request,
          call.context(leftOf(deadline)),
          (message) => succeed(stream, call, method, isGzip, message),
          (error) => fail(stream, call, method, isGzip, error),
        );
      });
    };
    if (rateLimit === undefined || !method.isLimited) receive();
    else {
      void rateLimit(call).then((refusal) => {
        if (call.isGone) return;
        if (refusal === undefined) receive();
        else fail(stream, call, method, isGzip, refusal);
      });
    }
    return true;
  };
}

/** Whether the headers ask for nothing that only the adapter knows. */
function isPlain(headers: IncomingHttpHeaders): boolean {
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
function readMessage(method: PlainMethod, chunks: readonly Buffer[]): Message | undefined {
  const [first] = chunks;
  if (first === undefined) return undefined;
  const body = chunks.length === 1 ? first : Buffer.concat(chunks);
  if (body.length < ENVELOPE_BYTES || body[0] !== 0 || body.readUInt32BE(1) !== body.length - ENVELOPE_BYTES) {
    return undefined;
  }
  return method.readBinary(body.subarray(ENVELOPE_BYTES));
}

function sendHead(
  stream: ServerHttp2Stream,
  call: StreamCall,
  isGzip: boolean,
  more: readonly string[],
  trailers: Record<string, string>,
): void {
  const headers: Record<string, string | number> = { ":status": 200, "content-type": "application/grpc+proto" };
  if (isGzip) headers["grpc-encoding"] = "gzip";
  put(headers, commonHeaders(call));
  put(headers, more);
  stream.respond(headers, { waitForTrailers: true });
  call.answered = true;
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
}

function put(headers: Record<string, string | number>, list: readonly string[]): void {
  for (let i = 0; i + 1 < list.length; i += 2) headers[list[i] ?? ""] = list[i + 1] ?? "";
}
