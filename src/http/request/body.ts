import { Code, ConnectError } from "@connectrpc/connect";
import type { HttpRequest } from "./request-context.js";

export interface BodyLimits {
  /** Whether the body is an unbounded sequence of messages, each in its envelope. */
  readonly isStreaming: boolean;
  /** Largest size of a body, or of each message of a streaming body, envelope included. */
  readonly maxBytes: number;
  /** Longest wait for the end of the body; for a streaming body, for its next bytes. */
  readonly timeoutMs: number;
  /** Time until the deadline of the caller, in milliseconds; undefined: none given. */
  readonly remainingMs?: number | undefined;
  /** Ends streaming bodies. */
  readonly draining: AbortSignal;
}

/** Why the remainder of a body is missing: it took too long, or the deadline of the caller passed before it came. */
export type BodyTimeout = "timeout" | "deadline";

/** The part of a body that a fast path read before it fell back. */
export interface BufferedBody {
  readonly chunks: readonly Uint8Array[];
  /** Set if the remainder did not arrive in time. */
  readonly timeout: BodyTimeout | undefined;
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
    isDeadline ? remainingMs : timeoutMs,
  );
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}

/** Size of the prefix of each message in gRPC and in Connect streams: one byte of flags and the length. */
export const ENVELOPE_BYTES = 5;

/** Each chunk takes about 300 bytes of memory, however small it is. */
const MAX_PENDING_CHUNKS = 64;

/** Appends a chunk, and joins many chunks into one to bound their overhead. */
export function appendChunk(chunks: Buffer[], chunk: Buffer): void {
  chunks.push(chunk);
  if (chunks.length === MAX_PENDING_CHUNKS) chunks.splice(0, MAX_PENDING_CHUNKS, Buffer.concat(chunks));
}

/**
 * Reads a body to its end without a promise. Calls `onDone` once, unless the request is aborted.
 * @param onDone gets the whole body, or undefined if it is too large or too late; and what has been read
 */
export function collectBody(
  req: HttpRequest,
  { maxBytes, timeoutMs, remainingMs }: Pick<BodyLimits, "maxBytes" | "timeoutMs" | "remainingMs">,
  onDone: (body: Buffer | undefined, buffered: BufferedBody) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  const stopTimer = startBodyTimer(timeoutMs, remainingMs, fail);
  function stop(): void {
    stopTimer();
    req.off("data", onData).off("end", onEnd).off("close", stop);
  }
  function fail(timeout?: BodyTimeout): void {
    stop();
    // Unread bytes would keep an HTTP/1.1 connection from its next request, and a stream from its end.
    req.resume();
    onDone(undefined, { chunks, timeout });
  }
  function onData(chunk: Buffer): void {
    appendChunk(chunks, chunk);
    size += chunk.length;
    if (size > maxBytes) fail();
  }
  function onEnd(): void {
    stop();
    const [first] = chunks;
    onDone(first === undefined || chunks.length > 1 ? Buffer.concat(chunks) : first, { chunks, timeout: undefined });
  }
  req.on("data", onData).on("end", onEnd).on("close", stop);
}

/** Yields the bytes of a buffered body. Throws the same errors as `readBody`. */
export async function* replayBody({ chunks, timeout }: BufferedBody, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for (const chunk of chunks) size += chunk.length;
  if (size > maxBytes) throw createBodyTooLargeError(maxBytes);
  if (timeout !== undefined) throw createBodyTimeoutError(timeout);
  yield* chunks;
}

/**
 * Yields the bytes of a request body: at once, or message by message if it is streaming.
 *
 * Unlike Node's own iterator it keeps the connection usable when reading stops early, so that the response can still be
 * sent, and it joins small chunks.
 */
export async function* readBody(
  req: HttpRequest,
  { isStreaming, maxBytes, timeoutMs, remainingMs = Number.POSITIVE_INFINITY, draining }: BodyLimits,
): AsyncGenerator<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  /** Number of bytes that wake the reader. More than the limit for a whole body, which is read to its end. */
  let wanted = isStreaming ? ENVELOPE_BYTES : maxBytes + 1;
  let end: "end" | "stop" | "deadline" | "break" | undefined;
  let wakeReader = (): void => {};
  const endBy = (cause: typeof end) => (): void => {
    end ??= cause;
    wakeReader();
  };
  const [onEnd, onStop, onBreak] = [endBy("end"), endBy("stop"), endBy("break")];
  const timer = setTimeout(onStop, timeoutMs);
  const stopDeadline =
    remainingMs < Number.POSITIVE_INFINITY
      ? startBodyTimer(Number.POSITIVE_INFINITY, remainingMs, endBy("deadline"))
      : undefined;
  function onData(chunk: Buffer): void {
    size += chunk.length;
    appendChunk(chunks, chunk);
    if (isStreaming) timer.refresh();
    if (size < wanted) return;
    req.pause();
    wakeReader();
  }
  req.on("data", onData).on("end", onEnd).on("close", onBreak);
  if (isStreaming) draining.addEventListener("abort", onStop);
  if (req.destroyed) onBreak();
  if (isStreaming && draining.aborted) onStop();
  try {
    for (;;) {
      if (size >= wanted) {
        if (!isStreaming) throw createBodyTooLargeError(maxBytes);
        const bytes = Buffer.concat(chunks);
        const { complete, next } = measureEnvelopes(bytes);
        // The decoder reports a message that is too large.
        const ready = next > maxBytes ? size : complete;
        chunks.splice(0, chunks.length, bytes.subarray(ready));
        size -= ready;
        wanted = next;
        if (ready > 0) yield bytes.subarray(0, ready);
      } else if (end === undefined) {
        const wakeUp = new Promise<void>((resolve) => {
          wakeReader = resolve;
        });
        req.resume();
        await wakeUp;
      } else if (end === "end") {
        if (size > 0) yield Buffer.concat(chunks);
        return;
      } else if (end === "stop" && isStreaming) return;
      else if (end === "break") throw new ConnectError("the request was aborted", Code.Canceled);
      else throw createBodyTimeoutError(end === "stop" ? "timeout" : "deadline");
    }
  } finally {
    clearTimeout(timer);
    stopDeadline?.();
    draining.removeEventListener("abort", onStop);
    req.off("data", onData).off("end", onEnd).off("close", onBreak);
    // Unread bytes would keep an HTTP/1.1 connection from its next request, and a stream from its end.
    req.resume();
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

function createBodyTimeoutError(cause: BodyTimeout): ConnectError {
  if (cause === "deadline") {
    return new ConnectError("the deadline passed before the call arrived", Code.DeadlineExceeded);
  }
  return new ConnectError("the request body did not arrive in time", Code.InvalidArgument);
}

function createBodyTooLargeError(maxBytes: number): ConnectError {
  return new ConnectError(`the request is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
}
