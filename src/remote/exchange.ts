import { type Dispatcher, request } from "undici";

/** Why an exchange with an upstream gave no usable answer. Its message names no URL; the cause may. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  /** HTTP status, where there was an answer at all. */
  readonly status: number | undefined;

  constructor(message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.status = options.status;
  }
}

export interface ExchangeOptions {
  readonly dispatcher: Dispatcher;
  /** Longest time for the whole exchange, in milliseconds. */
  readonly timeoutMs: number;
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
export async function exchangeJson(url: string, options: ExchangeOptions): Promise<unknown> {
  // Not AbortSignal.timeout: joined by AbortSignal.any it is held weakly, and once collected it never fires.
  const ending = new AbortController();
  const timer = setTimeout(() => ending.abort(), options.timeoutMs);
  const signal = AbortSignal.any([options.signal, ending.signal]);
  let text: string;
  try {
    const response = await request(url, {
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
    const { statusCode: status, headers, body } = response;
    if (status < 200 || status > 299) {
      // Not waited for: a body that never ends must not hold the answer.
      body.destroy();
      body.on("error", () => {});
      throw new ExchangeError(`answered ${status}`, { status });
    }
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") {
      body.destroy();
      body.on("error", () => {});
      throw new ExchangeError("answered compressed, unasked", { status });
    }
    text = await readText(body, options.maxBytes);
  } catch (error) {
    if (error instanceof ExchangeError) throw error;
    throw new ExchangeError(signal.aborted ? "did not answer in time" : "could not be reached", { cause: error });
  } finally {
    clearTimeout(timer);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new ExchangeError("answered something that is not JSON", { cause: error });
  }
}

async function readText(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    // Leaving the loop destroys the stream.
    if (size > maxBytes) throw new ExchangeError(`answered more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size).toString("utf8");
}
