import { Code, ConnectError } from "@connectrpc/connect";
import type { HttpRequest } from "./request-context.js";

export interface BodyLimits {
  /** The body holds any number of messages, each in its envelope, and may go on for ever. */
  readonly isStreaming: boolean;
  /** Most bytes of a body, or of a message in one that is endless, envelope included; more is an error. */
  readonly maxBytes: number;
  /** Longest wait for the body's end; where that is endless, for its next bytes. */
  readonly timeoutMs: number;
  /** Ends a body that may go on for ever. */
  readonly draining: AbortSignal;
}

/** What has been read of a body by someone who then left it to another. */
export interface BufferedBody {
  readonly chunks: readonly Uint8Array[];
  /** The rest did not come in time. */
  readonly isTimedOut: boolean;
}

/** In front of each message in gRPC, and in a stream of Connect's: a byte of flags and the length. */
export const ENVELOPE_BYTES = 5;

/** A piece of a body takes some 300 bytes, however small it is. */
const MAX_PENDING_CHUNKS = 64;

/** Adds to what has come of a body, and makes one of many pieces, so that they take not much more than they hold. */
export function appendChunk(pieces: Buffer[], piece: Buffer): void {
  pieces.push(piece);
  if (pieces.length === MAX_PENDING_CHUNKS) pieces.splice(0, MAX_PENDING_CHUNKS, Buffer.concat(pieces));
}

/** The bytes of a body that has been read, whole or as far as it is of use, with the errors of `readBody`. */
export async function* replayBody({ chunks, isTimedOut }: BufferedBody, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw createBodyTooLargeError(maxBytes);
    yield chunk;
  }
  if (isTimedOut) throw createBodyTimeoutError();
}

/**
 * The bytes of a request's body, as a whole or, where that is endless, message by message. Unlike Node's own iteration it
 * leaves the connection whole when reading stops early, so that the answer can still be sent, and holds small pieces as
 * one.
 */
export async function* readBody(
  req: HttpRequest,
  { isStreaming, maxBytes, timeoutMs, draining }: BodyLimits,
): AsyncGenerator<Uint8Array> {
  const pieces: Buffer[] = [];
  let size = 0;
  /** So many bytes tell something: a whole body never, but for its end. */
  let wanted = isStreaming ? ENVELOPE_BYTES : maxBytes + 1;
  let end: "end" | "stop" | "break" | undefined;
  let wake = (): void => {};
  const endBy = (how: typeof end) => (): void => {
    end ??= how;
    wake();
  };
  const [onEnd, onStop, onBreak] = [endBy("end"), endBy("stop"), endBy("break")];
  const timer = setTimeout(onStop, timeoutMs);
  function onData(piece: Buffer): void {
    size += piece.length;
    appendChunk(pieces, piece);
    if (isStreaming) timer.refresh();
    if (size < wanted) return;
    req.pause();
    wake();
  }
  req.on("data", onData).on("end", onEnd).on("close", onBreak);
  if (isStreaming) draining.addEventListener("abort", onStop);
  if (req.destroyed) onBreak();
  if (isStreaming && draining.aborted) onStop();
  try {
    for (;;) {
      if (size >= wanted) {
        if (!isStreaming) throw createBodyTooLargeError(maxBytes);
        const bytes = Buffer.concat(pieces);
        const { whole, next } = measureEnvelopes(bytes);
        // Whoever decodes it says what is wrong with a message that is too large.
        const ready = next > maxBytes ? size : whole;
        pieces.splice(0, pieces.length, bytes.subarray(ready));
        size -= ready;
        wanted = next;
        if (ready > 0) yield bytes.subarray(0, ready);
      } else if (end === undefined) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        req.resume();
        await woken;
      } else if (end === "end") {
        if (size > 0) yield Buffer.concat(pieces);
        return;
      } else if (end === "stop" && isStreaming) return;
      else throw end === "stop" ? createBodyTimeoutError() : new ConnectError("the request broke off", Code.Canceled);
    }
  } finally {
    clearTimeout(timer);
    draining.removeEventListener("abort", onStop);
    req.off("data", onData).off("end", onEnd).off("close", onBreak);
    // What is left unread would keep an HTTP/1.1 connection from its next request, and a stream from its end.
    req.resume();
  }
}

/** Of bytes that begin with an envelope: how many are whole messages, and how many the one after those will have. */
function measureEnvelopes(bytes: Buffer): { whole: number; next: number } {
  let whole = 0;
  for (;;) {
    if (bytes.length - whole < ENVELOPE_BYTES) return { whole, next: ENVELOPE_BYTES };
    const next = ENVELOPE_BYTES + bytes.readUInt32BE(whole + 1);
    if (bytes.length - whole < next) return { whole, next };
    whole += next;
  }
}

function createBodyTimeoutError(): ConnectError {
  return new ConnectError("the request body did not come in time", Code.InvalidArgument);
}

function createBodyTooLargeError(maxBytes: number): ConnectError {
  return new ConnectError(`the request is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
}
