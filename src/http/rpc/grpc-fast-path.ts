import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import type { ServiceError } from "../../errors.js";
import type { OverloadManager } from "../admission/overload-manager.js";
import type { RequestAdmission } from "../admission/request-admission.js";
import { acceptsGzip, COMPRESS_MIN_BYTES, gzipCompression } from "../codec/gzip.js";
import type { HttpLimits } from "../connection/http-limits.js";
import {
  type BodyFailure,
  type BufferedBody,
  createBodyOverloadError,
  ENVELOPE_BYTES,
  readBuffered,
  startBodyTimer,
} from "../request/body.js";
import type { InFlightRequests } from "../request/in-flight-requests.js";
import type { CallResponder, RequestContext } from "../request/request-context.js";
import { noteSharedBody } from "../request/response.js";
import { buildCommonHeaders } from "../request/response-headers.js";
import { mapConnectError, setInternalErrorTrailers, toNodeTrailers } from "./rpc-errors.js";
import { parseTimeoutMs, toDeadlineMs, toRemainingMs } from "./rpc-headers.js";
import { envelop, parseEnveloped } from "./rpc-messages.js";
import type { UnaryMethod } from "./unary-method.js";

/** Lets the general path serve a stream as if it were new, with the body read so far. */
type FallBack = (context: RequestContext, bufferedBody: BufferedBody) => void;

interface GrpcFastPathOptions {
  /** By path. */
  readonly methods: ReadonlyMap<string, UnaryMethod>;
  readonly limits: HttpLimits;
  readonly requests: InFlightRequests;
  readonly admission: RequestAdmission;
  readonly overload: OverloadManager;
}

/** The flag of a compressed length-prefixed message. */
const COMPRESSED_FLAG = 1;

/** How long a caller whose request is refused may continue to send it. */
const LINGER_MS = 1000;
const OK_TRAILERS = { "grpc-status": "0" };

/**
 * Serves unary gRPC calls with one uncompressed message, below Node's HTTP/2 requests and responses, which cost as much as
 * everything else together.
 */
export class GrpcFastPath {
  constructor(private readonly options: GrpcFastPathOptions) {}

  /**
   * Begins an HTTP/2 stream if it is a plain gRPC call, and returns the work of its turn; returns undefined if it is not.
   * Calls `fallBack` for a call that turns out not to be plain later.
   */
  begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, fallBack: FallBack): (() => void) | undefined {
    const { methods, requests, admission } = this.options;
    const method = methods.get(headers[":path"] ?? "");
    if (method === undefined || !isFastPathEligible(headers) || stream.endAfterHeaders) return undefined;
    const timeoutMs = parseTimeoutMs(headers, false);
    if (timeoutMs === undefined && headers["grpc-timeout"] !== undefined) return undefined;
    const call = new GrpcCall(stream, requests.registerStream(stream, headers), this.options, {
      method,
      shouldGzip: acceptsGzip(headers["grpc-accept-encoding"]),
      deadlineMs: toDeadlineMs(timeoutMs),
      fallBack,
    });
    const counting = admission.begin(call.context, "grpc", method.name, method.isRateLimited);
    const serve = (): void => {
      if (counting === undefined) call.serve();
      else {
        void counting.then((rejection) => {
          if (call.context.isAborted) return;
          if (rejection === undefined) call.serve();
          else call.fail(rejection);
        });
      }
    };
    // The stream has no data listener until the call is admitted: its body waits unread.
    const refuse = method.isRateLimited ? (error: ServiceError) => call.fail(error) : undefined;
    return () => this.options.overload.beginInTurn(call.context, serve, refuse);
  }
}

class GrpcCall implements CallResponder {
  constructor(
    private readonly stream: ServerHttp2Stream,
    readonly context: RequestContext,
    private readonly options: Pick<GrpcFastPathOptions, "limits" | "overload">,
    private readonly call: {
      readonly method: UnaryMethod;
      readonly shouldGzip: boolean;
      /** When the deadline of the caller expires, in milliseconds since the epoch. */
      readonly deadlineMs: number | undefined;
      readonly fallBack: FallBack;
    },
  ) {}

  /** Serves an admitted call, at once if its body is complete: a whole body takes neither a timer nor a budget. */
  serve(): void {
    const { stream } = this;
    if (stream.destroyed) return;
    const hasEnded = stream.readableEnded || stream.state.remoteClose === 1;
    if (hasEnded && stream.readableLength <= this.maxBodyBytes) {
      const body = readBuffered(stream);
      const chunks = body === null ? [] : [body];
      this.context.continueInTurn(() => {
        if (!this.context.isAborted) this.invoke(chunks);
      }, body?.length);
    } else this.receive();
  }

  succeed(message: Message): void {
    const { stream, context, call } = this;
    if (stream.destroyed || stream.closed) return;
    let bytes: Buffer;
    try {
      bytes = call.method.writeEnveloped(message);
      if (bytes.length > this.options.limits.responseBytes + ENVELOPE_BYTES)
        throw new Error("the response is too large");
    } catch (error) {
      const trailer = new Headers();
      setInternalErrorTrailers(trailer, context, error);
      this.sendFailure(trailer);
      return;
    }
    const extraHeaders = context.buildResponseHeaders();
    if (!call.shouldGzip || bytes.length - ENVELOPE_BYTES < COMPRESS_MIN_BYTES) {
      if (Object.isFrozen(message)) noteSharedBody(stream, bytes.length);
      this.sendMessage(bytes, extraHeaders);
      return;
    }
    gzipCompression.compress(bytes.subarray(ENVELOPE_BYTES)).then(
      (compressed) => {
        if (!stream.destroyed && !stream.closed) this.sendMessage(envelop(COMPRESSED_FLAG, compressed), extraHeaders);
      },
      () => stream.destroy(),
    );
  }

  fail(error: unknown): void {
    const trailer = new Headers();
    setTrailerStatus(trailer, mapConnectError(this.context, error, this.call.method.errorDomain));
    this.sendFailure(trailer);
  }

  private get maxBodyBytes(): number {
    return this.options.limits.requestBytes + ENVELOPE_BYTES;
  }

  /** Serves a call whose body is complete. */
  private invoke(chunks: readonly Buffer[]): void {
    const { context, call } = this;
    const [first] = chunks;
    const body = first === undefined || chunks.length > 1 ? Buffer.concat(chunks) : first;
    const request = parseEnveloped(body, call.method.readBinary);
    if (request === undefined) call.fallBack(context, { chunks, failure: undefined });
    else context.invoke(call.method.operation, request, toRemainingMs(call.deadlineMs), this);
  }

  /** Waits for the remainder of a body. */
  private receive(): void {
    const { stream, context, call } = this;
    const { limits, overload } = this.options;
    const body = overload.receiveBody(context, () => {
      stop();
      this.refuse();
    });
    const { chunks } = body;
    let isRead = false;
    const stopTimer = startBodyTimer(limits.requestMs, toRemainingMs(call.deadlineMs), stopReading);
    function stop(): void {
      isRead = true;
      stopTimer();
      body.end();
    }
    function stopReading(failure?: BodyFailure): void {
      if (isRead) return;
      stop();
      call.fallBack(context, { chunks, failure });
    }
    stream.on("data", (chunk: Buffer) => {
      if (isRead) return;
      body.append(chunk);
      if (body.size > this.maxBodyBytes) stopReading();
    });
    stream.on("close", stop);
    stream.on("end", () => {
      if (isRead || stream.destroyed) return;
      stopTimer();
      context.continueInTurn(() => {
        // Refused or closed meanwhile: it counts until its turn.
        if (isRead) return;
        stop();
        // The session may end before its stream.
        if (!context.isAborted) this.invoke(chunks);
      }, body.size);
    });
  }

  /** Answers a call whose body is not accepted. */
  private refuse(): void {
    const { stream } = this;
    this.fail(createBodyOverloadError());
    // The remainder of the request is discarded. Closing the stream at once would drop the trailers.
    const linger = setTimeout(() => stream.close(), LINGER_MS).unref();
    stream.once("close", () => clearTimeout(linger));
  }

  private sendMessage(bytes: Buffer, extraHeaders: readonly string[]): void {
    this.sendHeaders(extraHeaders, sendOkTrailers);
    this.context.code = "ok";
    this.stream.end(bytes);
  }

  /** Ends a call without a message. */
  private sendFailure(trailer: Headers): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return;
    const trailers = toNodeTrailers(trailer);
    this.sendHeaders([], () => stream.sendTrailers(trailers));
    stream.end();
  }

  private sendHeaders(extraHeaders: readonly string[], sendTrailers: (this: ServerHttp2Stream) => void): void {
    const { stream, context } = this;
    const headers: Record<string, string | number> = { ":status": 200, "content-type": "application/grpc+proto" };
    if (this.call.shouldGzip) headers["grpc-encoding"] = "gzip";
    assignHeaders(headers, buildCommonHeaders(context));
    assignHeaders(headers, extraHeaders);
    stream.respond(headers, { waitForTrailers: true });
    context.hasResponded = true;
    stream.on("wantTrailers", sendTrailers);
  }
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

function sendOkTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(OK_TRAILERS);
}

function assignHeaders(headers: Record<string, string | number>, list: readonly string[]): void {
  for (let i = 0; i + 1 < list.length; i += 2) headers[list[i] ?? ""] = list[i + 1] ?? "";
}
