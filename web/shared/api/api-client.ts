import { sleep } from "../format/time.js";

/** A request that failed. The message comes from the service where it answered. */
export class ApiError extends Error {
  /** HTTP status, or 0 if the service could not be reached. */
  readonly status: number;
  /** The service's error reason. Empty if the response has none. */
  readonly reason: string;
  /** The invalid parameter. */
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    details: { status: number; reason: string; field?: string | undefined; retryAfterSeconds?: number | undefined },
  ) {
    super(message);
    this.status = details.status;
    this.reason = details.reason;
    this.field = details.field;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

export interface ApiResponse<Body> {
  readonly body: Body;
  readonly headers: Headers;
  /** Time of arrival in milliseconds since the Unix epoch. */
  readonly receivedAtMs: number;
}

/**
 * Sends a request to the service that serves this page. Bypasses the browser's cache, so that `Age` is correct.
 * @param isExpectedBody accepts a response by its body; by default every response with a success status is accepted
 * @throws ApiError, or the abort reason of the signal
 */
export async function fetchApi<Body>(
  path: string,
  signal: AbortSignal,
  isExpectedBody?: (body: unknown) => boolean,
  method: "GET" | "POST" = "GET",
): Promise<ApiResponse<Body>> {
  const response = await fetch(path, { method, signal, cache: "no-store" }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new ApiError("The gateway cannot be reached.", { status: 0, reason: String((error as Error).message) });
  });
  const body: unknown = await response.json().catch(() => undefined);
  signal.throwIfAborted();
  const isAccepted = isExpectedBody === undefined ? response.ok && body !== undefined : isExpectedBody(body);
  if (!isAccepted) throw toApiError(response, body);
  return { body: body as Body, headers: response.headers, receivedAtMs: Date.now() };
}

function toApiError({ status, headers }: Response, body: unknown): ApiError {
  const fields = (typeof body === "object" && body !== null ? body : {}) as Readonly<Record<string, unknown>>;
  const toText = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return new ApiError(toText(fields.message) ?? "The response does not come from the gateway.", {
    status,
    reason: toText(fields.reason) ?? "",
    field: toText(fields.field),
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
  });
}

/** Enough to get through a rate limit that many concurrent requests share. */
const MAX_ATTEMPTS = 8;
const MAX_RETRY_DELAY_SECONDS = 10;

/**
 * Like {@link fetchApi}, but retries while the service answers with `Retry-After`, at most 8 attempts in total.
 * @param onRetry called with the error before each wait
 * @throws as {@link fetchApi} does
 */
export async function fetchApiWithRetry<Body>(
  path: string,
  signal: AbortSignal,
  onRetry: (error: ApiError) => void = () => {},
): Promise<ApiResponse<Body>> {
  for (let attemptsLeft = MAX_ATTEMPTS; ; attemptsLeft--) {
    try {
      return await fetchApi<Body>(path, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.retryAfterSeconds === undefined || attemptsLeft === 1) throw error;
      onRetry(error);
      await sleep(Math.min(error.retryAfterSeconds, MAX_RETRY_DELAY_SECONDS) * 1000, signal);
    }
  }
}
