import { sleep } from "./time.js";

/** Why there is no answer, as the service says it. */
export class ApiError extends Error {
  /** 0 where the service was not reached. */
  readonly status: number;
  /** Empty where what answered gave none. */
  readonly reason: string;
  /** The parameter at fault. */
  readonly field: string | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    facts: { status: number; reason: string; field?: string | undefined; retryAfterSeconds?: number | undefined },
  ) {
    super(message);
    this.status = facts.status;
    this.reason = facts.reason;
    this.field = facts.field;
    this.retryAfterSeconds = facts.retryAfterSeconds;
  }
}

export interface ApiResponse<Body> {
  readonly body: Body;
  readonly headers: Headers;
  /** When it came, in milliseconds of the Unix epoch. */
  readonly receivedAtMs: number;
}

/** A path of the interface with its parameters; those that are empty are left out. */
export function buildPath(path: string, parameters: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
  return query.size === 0 ? path : `${path}?${query}`;
}

/**
 * Asks the service that this page comes from. What the browser keeps is passed over: the age of an answer must be true.
 * @param isAnswer knows an answer by its body; without it, an answer is what has a status of success
 * @throws Refusal, or what the signal was aborted with
 */
export async function fetchApi<Body>(
  path: string,
  signal: AbortSignal,
  isAnswer?: (body: unknown) => boolean,
): Promise<ApiResponse<Body>> {
  const response = await fetch(path, { signal, cache: "no-store" }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new ApiError("The gateway cannot be reached.", { status: 0, reason: String((error as Error).message) });
  });
  const body: unknown = await response.json().catch(() => undefined);
  signal.throwIfAborted();
  const isGood = isAnswer === undefined ? response.ok && body !== undefined : isAnswer(body);
  if (!isGood) throw toApiError(response, body);
  return { body: body as Body, headers: response.headers, receivedAtMs: Date.now() };
}

function toApiError({ status, headers }: Response, body: unknown): ApiError {
  const said = (typeof body === "object" && body !== null ? body : {}) as Readonly<Record<string, unknown>>;
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return new ApiError(text(said.message) ?? "What answers here is not the gateway.", {
    status,
    reason: text(said.reason) ?? "",
    field: text(said.field),
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
  });
}

/** Of many who ask at a time, each gets a turn. */
const MAX_ATTEMPTS = 8;

/**
 * Asks again, some times, when the service says how long to wait.
 * @param onWait told each time why there is no answer yet
 * @throws as {@link fetchApi} does
 */
export async function fetchApiWithRetry<Body>(
  path: string,
  signal: AbortSignal,
  onWait: (why: ApiError) => void = () => {},
): Promise<ApiResponse<Body>> {
  for (let triesLeft = MAX_ATTEMPTS; ; triesLeft--) {
    try {
      return await fetchApi<Body>(path, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.retryAfterSeconds === undefined || triesLeft === 1) throw error;
      onWait(error);
      await sleep(Math.min(error.retryAfterSeconds, 10) * 1000, signal);
    }
  }
}
