import cluster from "node:cluster";
import { createRequire } from "node:module";
import type * as rateLimiterFlexible from "rate-limiter-flexible";
import { ServiceError } from "../../errors.js";
import type { RequestContext } from "../request/request-context.js";

/** The number of calls that each caller may make per window. */
export interface RateLimitOptions {
  readonly requests: number;
  readonly windowMs: number;
  /** Called when a call could not be counted and was admitted therefore. */
  onFailure(error: unknown): void;
  /** Counts over all replicas. Default: there are no others. */
  readonly sharedCounts?: SharedCounts | undefined;
}

/** Counts that several replicas have in common. */
export interface SharedCounts {
  /**
   * Adds points to a caller's count of the present window.
   * @throws if they cannot be counted within a few milliseconds: this process counts by itself then
   */
  increment(
    caller: string,
    points: number,
    windowMs: number,
  ): Promise<{ readonly count: number; readonly msLeft: number }>;
}

/**
 * Counts calls against the limit of their caller and sets the rate limit headers of their responses. A call that cannot be
 * counted is admitted.
 */
export interface RateLimiter {
  /**
   * Counts a call as one request. Resolves to RATE_LIMITED, with the time until the next window, if the caller is over the
   * limit. Never rejects.
   */
  count(context: RequestContext): Promise<ServiceError | undefined>;
  /**
   * Counts a call, which has been counted once, as so many requests, at most as all of one window: a caller who makes no
   * other call is always admitted. Rejects with RATE_LIMITED; a rejected call stays counted as one.
   */
  countMore(context: RequestContext, requests: number): Promise<void>;
}

/** Longest wait for the primary process, which counts for all workers. After it a call is admitted. */
const COUNT_TIMEOUT_MS = 500;

/**
 * Most callers that are tracked at a time, about 500 bytes each. Beyond them the oldest window is dropped, so that its
 * caller starts a new one. An attacker with that many addresses is not stopped by a limit per address anyway.
 */
const MAX_TRACKED_CALLERS = 100_000;

/**
 * Creates a fixed-window rate limiter. A window begins with the first call of a caller. Across the edge of two windows
 * twice the limit can arrive at once; so can it with a token bucket of this size that refills in one window, and here
 * the headers state exactly when calls are admitted again.
 *
 * The headers are those of draft-ietf-httpapi-ratelimit-headers-06, with seconds in `RateLimit-Reset`: the form that
 * clients and gateways read. Later drafts use one structured field whose syntax changed from draft to draft.
 */
export function createRateLimiter({ requests, windowMs, onFailure, sharedCounts }: RateLimitOptions): RateLimiter {
  // Loaded on demand: most operators limit requests in their proxy, and the package costs 20 ms and 7 MB.
  const { RateLimiterCluster, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } = createRequire(import.meta.url)(
    "rate-limiter-flexible",
  ) as typeof rateLimiterFlexible;
  const options = { points: requests, duration: windowMs / 1000 };
  // Worker processes that share a port count together, in the primary.
  const localLimiter = cluster.isWorker
    ? new RateLimiterCluster({ ...options, timeoutMs: COUNT_TIMEOUT_MS })
    : new RateLimiterMemory(options);
  const limiter =
    sharedCounts === undefined
      ? localLimiter
      : new RateLimiterRedis({
          points: requests,
          // Whole seconds, which only the store's client would use; it counts per window instead.
          duration: Math.ceil(windowMs / 1000),
          keyPrefix: "",
          storeClient: createStoreClient(sharedCounts, windowMs, (caller, count, msLeft) => {
            if (count > requests) overLimitUntil.set(caller, performance.now() + msLeft);
          }),
          insuranceLimiter: localLimiter,
        });
  /**
   * When the windows of callers end that are over the limit of all replicas: until then their calls are not counted. The
   * package has this too, but searches all of them for each new one.
   */
  const overLimitUntil = new Map<string, number>();
  /** Ends of the windows that began in this process, by caller, oldest first. */
  const windowEnds = new Map<string, number>();

  function trackWindow(caller: string, msLeft: number): void {
    const now = performance.now();
    windowEnds.delete(caller);
    windowEnds.set(caller, now + msLeft);
    for (const [oldest, end] of windowEnds) {
      if (end > now && windowEnds.size <= MAX_TRACKED_CALLERS) break;
      windowEnds.delete(oldest);
      overLimitUntil.delete(oldest);
      if (end > now) localLimiter.delete(oldest).catch(onFailure);
    }
  }

  function setHeaders(context: RequestContext, remaining: number, secondsLeft: number): void {
    context.rateLimitHeaders = [
      ...["ratelimit-limit", String(requests)],
      ...["ratelimit-remaining", String(remaining)],
      ...["ratelimit-reset", String(secondsLeft)],
    ];
  }

  async function consume(context: RequestContext, points: number): Promise<ServiceError | undefined> {
    const { caller } = context;
    const overLimitMs = (overLimitUntil.get(caller) ?? 0) - performance.now();
    if (overLimitMs > 0) {
      const secondsLeft = toSeconds(overLimitMs);
      setHeaders(context, 0, secondsLeft);
      return createRejection(secondsLeft);
    }
    let result: rateLimiterFlexible.RateLimiterRes;
    let isRejected = false;
    try {
      result = await limiter.consume(caller, points);
    } catch (rejection) {
      if (!(rejection instanceof RateLimiterRes)) {
        onFailure(rejection);
        return undefined;
      }
      result = rejection;
      isRejected = true;
    }
    // Of a window that began in another replica, this process remembers no more than that the caller is over the limit.
    if (result.isFirstInDuration || (isRejected && sharedCounts !== undefined))
      trackWindow(caller, result.msBeforeNext);
    const secondsLeft = toSeconds(result.msBeforeNext);
    setHeaders(context, result.remainingPoints, secondsLeft);
    return isRejected ? createRejection(secondsLeft) : undefined;
  }

  return {
    count: (context) => consume(context, 1),
    async countMore(context, calls) {
      const points = Math.min(calls, requests) - 1;
      if (points <= 0) return;
      // To consume more than is left would use up the rest of the window for a call that is refused.
      const rejection = findShortage(context, points) ?? (await consume(context, points));
      if (rejection !== undefined) throw rejection;
    },
  };
}

/** Returns RATE_LIMITED if the headers of a call, which has been counted, say that fewer requests are left. */
function findShortage({ rateLimitHeaders }: RequestContext, points: number): ServiceError | undefined {
  const [, , , remaining, , secondsLeft] = rateLimitHeaders;
  return Number(remaining) < points ? createRejection(Number(secondsLeft)) : undefined;
}

function toSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

function createRejection(retryAfterSeconds: number): ServiceError {
  return new ServiceError("RATE_LIMITED", "too many requests from this address", { retryAfterSeconds });
}

/** Creates what RateLimiterRedis uses of a client for Redis. */
function createStoreClient(
  counts: SharedCounts,
  windowMs: number,
  onCount: (caller: string, count: number, msLeft: number) => void,
) {
  return {
    async rlflxIncr([caller = "", points]: readonly string[]): Promise<readonly number[]> {
      const { count, msLeft } = await counts.increment(caller, Number(points), windowMs);
      onCount(caller, count, msLeft);
      return [count, msLeft];
    },
  };
}
