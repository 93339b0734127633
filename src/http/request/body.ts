import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import { ServiceError } from "../../errors.js";
import type { IncomingBody } from "../admission/incoming-body.js";
import type { OverloadManager } from "../admission/overload-manager.js";
import { toConnectError } from "./error-mapping.js";
import type { HttpRequest, HttpResponse, RequestContext } from "./request-context.js";

/** A request, its response and its context. */
export interface IncomingCall {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly context: RequestContext;
}

export interface BodyLimits {
  /** Largest size of a body, or of each message of a stream, envelope included. */
  readonly maxBytes: number;
  /** Longest wait for the end of the body; for a stream of messages, for its next bytes. */
  readonly timeoutMs: number;
  /** Time until the deadline of the caller, in milliseconds; undefined: none given. */
  readonly remainingMs?: number | undefined;
  /** Ends streams of messages. */
  readonly draining: AbortSignal;
  /** Counts the body while it is incomplete. */
  readonly overload: Pick<OverloadManager, "receiveBody">;
  /** Package that defines the reasons of errors. */
  readonly errorDomain: string;
}

/** Why a body that took too long is not read to its end: the limit of the server, or the deadline of the caller. */
export type BodyTimeout = "timeout" | "deadline";

/** Why a body is not read to its end; `overloaded`: incomplete bodies take too much memory. */
export type BodyFailure = BodyTimeout | "overloaded";

/** A body, or the part of it that was read. */
export interface BufferedBody {
  readonly chunks: readonly Uint8Array[];
  /** Set if the remainder did not arrive in time, or was not accepted. */
  readonly failure: BodyFailure | undefined;
}

/**
 * Waits for the end of a body until its time is over or the deadline of the caller has passed, whichever is first.
 * @param remainingMs time until the deadline; undefined: none given
 * @returns a function that stops waiting
 */
export function startBodyTimer(
  timeoutMs: number,
  remainingMs: number | undefined,
  onTimeout: (cause: BodyTimeout) => void,
): () => void {
  const isDeadline = remainingMs !== undefined && remainingMs < timeoutMs;
  let isStopped = false;
  const timer = setTimeout(
    // What has arrived by now is read first: a late event loop is not the caller's delay.
    () => setImmediate(() => isStopped || onTimeout(isDeadline ? "deadline" : "timeout")),
    // Node.js 24 warns of a negative delay.
    isDeadline ? Math.max(remainingMs, 0) : timeoutMs,
  );
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

/** Size of the prefix of each message in gRPC and in Connect streams: one byte of flags and the length. */
export const ENVELOPE_BYTES = 5;

/**
 * Reads a body to its end without a promise. Calls `onDone` once, unless the request is aborted.
 * @param onDone gets the whole body, or undefined if it is too large or too late; and what has been read
 */
export function collectBody(
  { req, res, context }: IncomingCall,
  {
    maxBytes,
    timeoutMs,
    remainingMs,
    overload,
  }: Pick<BodyLimits, "maxBytes" | "timeoutMs" | "remainingMs" | "overload">,
  onDone: (body: Buffer | undefined, buffered: BufferedBody) => void,
): void {
  const body = overload.receiveBody(context, () => {
    closeAfterResponse(res);
    fail("overloaded");
  });
  const { chunks } = body;
  const stopTimer = startBodyTimer(timeoutMs, remainingMs, fail);
  function stop(): void {
    stopTimer();
    body.end();
    req.off("data", onData).off("end", onEnd).off("close", stop);
  }
  function fail(failure?: BodyFailure): void {
    stop();
    // Unread bytes would keep an HTTP/1.1 connection from its next request, and a stream from its end.
    req.resume();
    onDone(undefined, { chunks, failure });
  }
  function onData(chunk: Buffer): void {
    body.append(chunk);
    if (body.size > maxBytes) fail();
  }
  function onEnd(): void {
    stopTimer();
    req.off("data", onData).off("end", onEnd).off("close", stop);
    context.continueInTurn(() => {
      // Refused meanwhile: it counts until its turn.
      if (body.weight === 0) return;
      body.end();
      const [first] = chunks;
      const whole = first === undefined || chunks.length > 1 ? Buffer.concat(chunks) : first;
      if (!context.isAborted) onDone(whole, { chunks, failure: undefined });
    }, body.size);
  }
  req.on("data", onData).on("end", onEnd).on("close", stop);
}

/** Yields the bytes of a buffered body. Throws a ConnectError if it is too large, or was not read to its end. */
export async function* replayBody(
  { chunks, failure }: BufferedBody,
  context: RequestContext,
  { maxBytes, errorDomain }: Pick<BodyLimits, "maxBytes" | "errorDomain">,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for (const chunk of chunks) size += chunk.length;
  if (size > maxBytes) throw new ConnectError(`the request is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
  if (failure !== undefined) throw createBodyError(failure, context, errorDomain);
  yield* chunks;
}

/**
 * Yields the bytes of a stream of messages, each in its envelope, message by message.
 *
 * Unlike Node's own iterator it keeps the connection usable when reading stops early, so that the response can still be
 * sent, and it joins small chunks.
 */
export async function* readBody(call: Omit<IncomingCall, "res">, limits: BodyLimits): AsyncGenerator<Uint8Array> {
  const reader = new MessageReader(call, limits);
  try {
    yield* reader.readMessages();
  } finally {
    reader.close();
  }
}

/** Why no more messages are read. */
type MessagesEnd = "end" | "stop" | "close" | "deadline" | "overloaded";

class MessageReader {
  readonly #call: Omit<IncomingCall, "res">;
  readonly #limits: BodyLimits;
  readonly #body: IncomingBody;
  readonly #timer: NodeJS.Timeout;
  readonly #stopDeadline: (() => void) | undefined;
  readonly #onData = (chunk: Buffer): void => this.#receive(chunk);
  readonly #onEnd = (): void => this.#endBy("end");
  readonly #onStop = (): void => this.#endBy("stop");
  readonly #onClose = (): void => this.#endBy("close");
  /** Number of bytes that wake the reader. */
  #wanted = ENVELOPE_BYTES;
  #end: MessagesEnd | undefined;
  #wakeReader = (): void => {};

  constructor(call: Omit<IncomingCall, "res">, limits: BodyLimits) {
    const { req, context } = call;
    const { timeoutMs, remainingMs = Number.POSITIVE_INFINITY, draining, overload } = limits;
    this.#call = call;
    this.#limits = limits;
    this.#body = overload.receiveBody(context, () => this.#endBy("overloaded"));
    this.#timer = setTimeout(this.#onStop, timeoutMs);
    if (remainingMs < Number.POSITIVE_INFINITY) {
      this.#stopDeadline = startBodyTimer(Number.POSITIVE_INFINITY, remainingMs, () => this.#endBy("deadline"));
    }
    req.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
    draining.addEventListener("abort", this.#onStop);
    // A stream that was reset with its headers has closed by now, which a request over HTTP/2 does not show.
    if (req.destroyed || context.isAborted) this.#onClose();
    if (draining.aborted) this.#onStop();
  }

  async *readMessages(): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#body.size >= this.#wanted) {
        const messages = this.#takeMessages();
        if (messages.length > 0) yield messages;
      } else if (this.#end === undefined) await this.#receiveMore();
      else if (this.#end === "end") {
        this.#body.end();
        if (this.#body.size > 0) yield Buffer.concat(this.#body.chunks);
        return;
      } else if (this.#end === "stop") return;
      else if (this.#end === "close") throw new ConnectError("the request was aborted", Code.Canceled);
      else throw createBodyError(this.#end, this.#call.context, this.#limits.errorDomain);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#stopDeadline?.();
    this.#body.end();
    this.#limits.draining.removeEventListener("abort", this.#onStop);
    const { req } = this.#call;
    req.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    // Unread bytes would keep an HTTP/1.1 connection from its next request, and a stream from its end.
    req.resume();
  }

  #receive(chunk: Buffer): void {
    this.#body.append(chunk);
    this.#timer.refresh();
    if (this.#body.size < this.#wanted) return;
    this.#call.req.pause();
    this.#wakeReader();
  }

  #receiveMore(): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wakeReader = resolve;
    });
    this.#call.req.resume();
    return woken;
  }

  #endBy(cause: MessagesEnd): void {
    this.#end ??= cause;
    this.#wakeReader();
  }

  /** Takes all complete messages out of the body. The decoder reports one that is too large. */
  #takeMessages(): Buffer {
    const bytes = Buffer.concat(this.#body.chunks);
    const { complete, next } = measureEnvelopes(bytes);
    const length = next > this.#limits.maxBytes ? bytes.length : complete;
    this.#wanted = next;
    if (length > 0) this.#body.consume(length);
    return bytes.subarray(0, length);
  }
}

/** Returns the length of all complete messages, and the length of the message after them as far as it is known. */
function measureEnvelopes(bytes: Buffer): { complete: number; next: number } {
  let complete = 0;
  for (;;) {
    if (bytes.length - complete < ENVELOPE_BYTES) return { complete, next: ENVELOPE_BYTES };
    const next = ENVELOPE_BYTES + bytes.readUInt32BE(complete + 1);
    if (bytes.length - complete < next) return { complete, next };
    complete += next;
  }
}

export function createBodyOverloadError(): ServiceError {
  return new ServiceError("OVERLOADED", "too many request bodies are being received here", { retryAfterSeconds: 1 });
}

/** Frees what the connection takes as well. Over HTTP/2 it has other requests, and the remainder is discarded. */
function closeAfterResponse(res: HttpResponse): void {
  if (!("stream" in res)) res.shouldKeepAlive = false;
}

function createBodyError(failure: BodyFailure, context: RequestContext, errorDomain: string): ConnectError {
  if (failure === "overloaded") {
    return toConnectError(context.recordFailure(createBodyOverloadError()), errorDomain, context);
  }
  if (failure === "deadline") {
    return new ConnectError("the deadline passed before the call arrived", Code.DeadlineExceeded);
  }
  return new ConnectError("the request body did not arrive in time", Code.InvalidArgument);
}

/** Returns all that a stream has buffered, or null if that is nothing. From Node.js 26 on, `read` returns one chunk. */
export function readBuffered(stream: Readable): Buffer | null {
  const first: Buffer | null = stream.read();
  if (first === null || stream.readableLength === 0) return first;
  const chunks = [first];
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) chunks.push(chunk);
  return Buffer.concat(chunks);
}
