import { setMaxListeners } from "node:events";
import { type Dispatcher, request } from "undici";
import { raceAbort } from "./race-abort.js";

/**
 * What kind of failure an exchange with an upstream was. rpc_error: it is there and gives no result; aborted: nobody waits
 * any more.
 */
export type UpstreamErrorKind =
  | "rpc_error"
  | "timeout"
  | "aborted"
  | "network_error"
  | "http_error"
  | "invalid_response"
  | "wrong_chain";

/** Why an exchange with an upstream gave no usable answer. Its message names no URL; the cause may. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly kind: UpstreamErrorKind;
  /** HTTP status, where there was an answer at all. */
  readonly status: number | undefined;
  /** For how long the upstream wants to be left alone, in milliseconds, where it says so. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: UpstreamErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.kind = options.kind ?? "invalid_response";
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }
}

interface UpstreamErrorOptions {
  /** Default: an answer that is none. */
  readonly kind?: UpstreamErrorKind;
  readonly status?: number;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** Why a signal fired whose time was over. */
const timeoutReason = new DOMException("the time is over", "TimeoutError");

/** A signal of its own for work that ends with another signal or when its time is over. */
export interface AbortScope {
  readonly signal: AbortSignal;
  /** Aborts the signal and lets go of timer and outer signal. To be called in every case. */
  cancel(): void;
}

/**
 * Neither AbortSignal.any nor AbortSignal.timeout: an outer signal that lives long keeps what `any` joins to it, and a
 * timeout that is joined is held weakly: once collected, it never fires.
 */
export function createAbortScope(outer: AbortSignal, timeoutMs?: number): AbortScope {
  const controller = new AbortController();
  const abort = (): void => controller.abort(outer.reason);
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => controller.abort(timeoutReason), timeoutMs);
  if (outer.aborted) abort();

  // Any number of exchanges may end with one signal: that is no leak, of which Node would warn.
  setMaxListeners(0, outer);
  outer.addEventListener("abort", abort);
  return {
    signal: controller.signal,
    cancel() {
      clearTimeout(timer);
      outer.removeEventListener("abort", abort);
      controller.abort();
    },
  };
}

export interface FetchJsonOptions {
  readonly dispatcher: Dispatcher;
  /** Longest time for the whole exchange, in milliseconds; undefined: as long as the signal lets it. */
  readonly timeoutMs?: number;
  /** Most bytes of body that are read. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** JSON text to POST; undefined: GET. */
  readonly body?: string;
  /** Value of the Authorization header. */
  readonly authorization?: string;
}

/**
 * Sends one HTTP request and reads one JSON answer, all within a time and a size. Follows no redirect and takes no
 * compressed answer, so that a few bytes can never become many.
 * @throws ExchangeError for everything but a 2xx with a JSON body, also when aborted.
 */
export async function fetchJson(url: string, options: FetchJsonOptions): Promise<unknown> {
  const limit = createAbortScope(options.signal, options.timeoutMs);
  const { signal } = limit;
  let status: number;
  let text: string;
  try {
    signal.throwIfAborted();
    const sent = request(url, {
      dispatcher: options.dispatcher,
      method: options.body === undefined ? "GET" : "POST",
      headers: {
        accept: "application/json",
        "accept-encoding": "identity",
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...(options.authorization === undefined ? {} : { authorization: options.authorization }),
      },
      body: options.body ?? null,
      signal,
    });
    // Before there is a connection, the client looks at no signal.
    const { statusCode, headers, body } = await raceAbort(sent, signal);
    status = statusCode;
    if (status < 200 || status > 299) {
      // Not waited for: a body that never ends must not hold the answer.
      body.destroy();
      body.on("error", () => {});
      const retryAfterMs = status === 429 ? parseRetryAfter(headers["retry-after"]) : undefined;
      throw new UpstreamError(`answered ${status}`, { kind: "http_error", status, retryAfterMs });
    }
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") {
      body.destroy();
      body.on("error", () => {});
      throw new UpstreamError("answered compressed, unasked", { status });
    }
    text = await readBodyText(body, options.maxBytes);
  } catch (error) {
    if (error instanceof UpstreamError) throw error;
    if (!signal.aborted) throw new UpstreamError("could not be reached", { kind: "network_error", cause: error });
    const kind = signal.reason === timeoutReason ? "timeout" : "aborted";
    throw new UpstreamError("did not answer in time", { kind, cause: error });
  } finally {
    limit.cancel();
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new UpstreamError("answered something that is not JSON", { status, cause: error });
  }
}

async function readBodyText(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the stream.
    if (size > maxBytes) throw new UpstreamError(`answered more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString("utf8");
}

/** Reads a Retry-After header, which holds seconds or a date. */
function parseRetryAfter(value: string | string[] | undefined): number | undefined {
  if (typeof value !== "string") return undefined;
  const ms = /^[0-9]+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}
