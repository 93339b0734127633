import { Code, ConnectError } from "@connectrpc/connect";
import type { HttpRequest } from "./call.js";

export interface BodyLimits {
  /** Most bytes in all; more is an error. Undefined: each message has its own limit, and there may be any number. */
  readonly maxBytes: number | undefined;
  /** Longest wait for the body's end; where `maxBytes` is undefined, for its next bytes. */
  readonly waitMs: number;
  /** Ends a body that may go on for ever. */
  readonly draining: AbortSignal;
}

/** What has been read of a body by someone who then left it to another. */
export interface GivenBody {
  readonly chunks: readonly Uint8Array[];
  /** The rest did not come in time. */
  readonly isLate: boolean;
}

const END = Symbol("end");

/** The bytes of a body that has been read, whole or as far as it is of use, with the errors of `readBody`. */
export async function* givenBody({ chunks, isLate }: GivenBody, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
  if (isLate) throw late();
}

/**
 * The bytes of a request's body. Unlike Node's own iteration it leaves the connection whole when reading stops early,
 * so that the answer can still be sent.
 */
export async function* readBody(
  req: HttpRequest,
  { maxBytes, waitMs, draining }: BodyLimits,
): AsyncGenerator<Uint8Array> {
  const isEndless = maxBytes === undefined;
  let stop = () => {};
  const stopped = new Promise<typeof END>((resolve) => {
    stop = () => resolve(END);
  });
  let timer = setTimeout(stop, waitMs);
  if (isEndless) draining.addEventListener("abort", stop);
  if (isEndless && draining.aborted) stop();
  const chunks = req.iterator({ destroyOnReturn: false })[Symbol.asyncIterator]();
  let size = 0;
  try {
    for (;;) {
      const next = await Promise.race([chunks.next(), stopped]);
      if (next === END) {
        if (isEndless) return;
        throw late();
      }
      if (next.done) return;
      size += next.value.length;
      if (!isEndless && size > maxBytes) throw tooLarge(maxBytes);
      if (isEndless) {
        clearTimeout(timer);
        timer = setTimeout(stop, waitMs);
      }
      yield next.value;
    }
  } finally {
    clearTimeout(timer);
    draining.removeEventListener("abort", stop);
    // What is left unread would keep an HTTP/1.1 connection from its next request, and a stream from its end.
    const resume = () => req.resume();
    void chunks.return?.().then(resume, resume);
  }
}

function late(): ConnectError {
  return new ConnectError("the request body did not come in time", Code.InvalidArgument);
}

function tooLarge(maxBytes: number): ConnectError {
  return new ConnectError(`the request is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
}
