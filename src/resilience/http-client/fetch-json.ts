import type { Dispatcher } from "undici";
import { ServiceError } from "../../errors.js";
import { createAbortScope, isTimedOut, raceAbort } from "../abort-scope.js";
import { type JsonLimits, JsonScanner } from "./json-size.js";
import { request } from "./undici.js";
import { UpstreamError } from "./upstream-error.js";

export interface FetchJsonOptions {
  readonly dispatcher: Dispatcher;
  /** Timeout for the whole request in milliseconds; undefined: only the signal ends it. */
  readonly timeoutMs?: number;
  /** Maximum size of the response body. */
  readonly maxBytes: number;
  /** Most members of the JSON. Default: 200,000, ten times those of the largest document that is read. */
  readonly memberLimits?: Pick<JsonLimits, "members" | "bytesPerMember">;
  readonly signal: AbortSignal;
  /** JSON text to POST; undefined: GET. */
  readonly body?: string;
  /** Value of the Authorization header. */
  readonly authorization?: string;
  /** Begins to account for the request and the memory of its response body; may throw. Default: nobody does. */
  readonly openMemory?: () => BodyMemory;
}

/** The share of a response body in a memory budget. */
export interface BodyMemory {
  /**
   * Reserves this number of bytes in all.
   * @throws ServiceError, UpstreamError when the budget does not have them
   */
  grow(bytes: number): void;
  /** Releases everything. */
  release(): void;
}

/** Most lists and objects inside each other. */
export const MAX_DEPTH = 16;
const DOCUMENT_MEMBERS = { members: 200_000 };

/** Code of undici's error for a response beyond the dispatcher's `maxResponseSize`. */
const UNDICI_MAX_SIZE_CODE = "UND_ERR_RES_EXCEEDED_MAX_SIZE";

/** What the codes of Node.js, OpenSSL and undici mean to an operator. */
const FAILURES_BY_CODE: readonly (readonly [RegExp, string])[] = [
  [/^(?:ENOTFOUND|EAI_)/, "DNS lookup failed"],
  [/^ECONNREFUSED$/, "connection refused"],
  [/^E(?:HOST|NET)(?:UNREACH|DOWN)$/, "no route to the host"],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, "connection timed out"],
  [/CERT|SIGNATURE|^ERR_TLS_|^UNABLE_TO_/, "TLS certificate rejected"],
  [/^(?:EPROTO|ERR_SSL_)/, "TLS handshake failed"],
  [/^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, "connection lost"],
  [new RegExp(`^${UNDICI_MAX_SIZE_CODE}$`), "answered too many bytes"],
];
/** Statuses with which providers refuse a key or a plan. */
const STATUS_MEANINGS: Readonly<Record<number, string>> = {
  401: ": the key is not accepted",
  403: ": access refused",
  429: ": too many requests",
};

/**
 * Sends one HTTP request and returns the JSON of the response, within a time and a size limit. Follows no redirect and
 * accepts no compression, so that a few bytes cannot expand into many. Nor does it parse what would become many objects:
 * it stops reading where their number or nesting exceeds its limit.
 * @throws UpstreamError for everything but a 2xx response with a JSON body, also when aborted; ServiceError OVERLOADED when
 * there is no memory for the response
 */
export async function fetchJson(url: string, options: FetchJsonOptions): Promise<unknown> {
  const scope = createAbortScope(options.signal, options.timeoutMs);
  const { signal } = scope;
  let memory: BodyMemory | undefined;
  try {
    memory = options.openMemory?.();
    return await fetchWithin(url, options, signal, memory);
  } finally {
    memory?.release();
    scope.cancel();
  }
}

async function fetchWithin(
  url: string,
  options: FetchJsonOptions,
  signal: AbortSignal,
  memory: BodyMemory | undefined,
): Promise<unknown> {
  let status: number;
  let text: string;
  try {
    signal.throwIfAborted();
    const response = request(options.dispatcher, url, {
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
    // undici ignores the signal until a connection exists.
    const { statusCode, headers, body } = await raceAbort(response, signal);
    status = statusCode;
    if (status < 200 || status > 299) {
      // The body is not read: one that never ends must not delay the error.
      body.destroy();
      body.on("error", () => {});
      const retryAfterMs = status === 429 ? parseRetryAfter(headers["retry-after"]) : undefined;
      throw new UpstreamError(`answered ${status}${STATUS_MEANINGS[status] ?? ""}`, {
        kind: "http_error",
        status,
        retryAfterMs,
      });
    }
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity") {
      body.destroy();
      body.on("error", () => {});
      throw new UpstreamError("answered with a content encoding that was not requested", { status });
    }
    text = await readBodyText(body, options, memory);
  } catch (error) {
    throw error instanceof ServiceError ? error : toUpstreamError(error, signal);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const form = text.trimStart().startsWith("<") ? "an HTML page" : "something that is not JSON";
    throw new UpstreamError(`answered ${form}`, { status, cause: error });
  }
}

function toUpstreamError(error: unknown, signal: AbortSignal): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (signal.aborted) {
    const kind = isTimedOut(signal) ? "timeout" : "aborted";
    return new UpstreamError("did not answer in time", { kind, cause: error });
  }
  const { code } = (error ?? {}) as { code?: unknown };
  const kind = code === UNDICI_MAX_SIZE_CODE ? "too_large" : "network_error";
  return new UpstreamError(describeConnectionFailure(code), { kind, cause: error });
}

/** Returns in words what the code of an error of Node.js, OpenSSL or undici means, as the predicate of a server. */
export function describeConnectionFailure(code: unknown): string {
  return FAILURES_BY_CODE.find(([codes]) => codes.test(String(code)))?.[1] ?? "could not be reached";
}

/** Collects the body in one buffer that grows: kept as chunks of a byte each it would take a hundred times the memory. */
async function readBodyText(
  body: AsyncIterable<Buffer>,
  { maxBytes, memberLimits = DOCUMENT_MEMBERS }: FetchJsonOptions,
  memory: BodyMemory | undefined,
): Promise<string> {
  const scanner = new JsonScanner({ depth: MAX_DEPTH, ...memberLimits });
  let buffer = Buffer.alloc(0);
  let size = 0;
  for await (const chunk of body) {
    const newSize = size + chunk.length;
    // Leaving the loop destroys the stream.
    if (newSize > maxBytes) throw new UpstreamError(`answered more than ${maxBytes} bytes`, { kind: "too_large" });
    const excess = scanner.scan(chunk)?.kind;
    if (excess !== undefined)
      throw new UpstreamError(`answered JSON beyond the limit of its ${excess}`, { kind: "too_complex" });
    if (newSize > buffer.length) {
      const capacity = Math.min(maxBytes, Math.max(newSize, 2 * buffer.length));
      memory?.grow(capacity);
      const larger = Buffer.allocUnsafe(capacity);
      buffer.copy(larger, 0, 0, size);
      buffer = larger;
    }
    chunk.copy(buffer, size);
    size = newSize;
  }
  return buffer.toString("utf8", 0, size);
}

/** Parses a Retry-After header, which holds seconds or an HTTP date, into milliseconds from now. */
function parseRetryAfter(value: string | string[] | undefined): number | undefined {
  if (typeof value !== "string") return undefined;
  const ms = /^[0-9]+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0);
}
