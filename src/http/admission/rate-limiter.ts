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
  /** Counts for all processes that share it. Where it fails, each process counts for itself. */
  readonly redis?: RateLimitStore | undefined;
}

/** The part of a client for Redis that RateLimiterRedis uses. */
interface RateLimitStore {
  /** Runs a script. @throws if Redis does not reply within a few milliseconds */
  eval(script: string, options: { readonly keys: string[]; readonly arguments: string[] }): Promise<unknown>;
}

/** Longest wait for the primary process, which counts for all workers. After it a call is admitted. */
const COUNT_TIMEOUT_MS = 500;

/**
 * Most callers that are tracked at a time, about 500 bytes each. Beyond them the oldest window is dropped, so that its
 * caller starts a new one. An attacker with that many addresses is not stopped by a limit per address anyway.
 */
const MAX_TRACKED_CALLERS = 100_000;

/**
 * Counts calls against the limit of their caller and sets the rate limit headers of their responses. A call that cannot be
 * counted is admitted.
 *
 * Windows are fixed: each begins with the first call of a caller. Across the edge of two windows twice the limit can arrive
 * at once; so can it with a token bucket of this size that refills in one window, and here the headers state exactly when
 * calls are admitted again.
 *
 * The headers are those of draft-ietf-httpapi-ratelimit-headers-06, with seconds in `RateLimit-Reset`: the form that
 * clients and gateways read. Later drafts use one structured field whose syntax changed from draft to draft.
 */
export class RateLimiter {
  readonly #options: RateLimitOptions;
  readonly #keyPrefix: string;
  readonly #package: typeof rateLimiterFlexible;
  /** Counts for this process; in worker processes that share a port, for all of them, in the primary. */
  readonly #localLimiter: rateLimiterFlexible.RateLimiterAbstract;
  readonly #limiter: rateLimiterFlexible.RateLimiterAbstract;
  /**
   * When the windows of callers end that are over the limit of all processes: until then their calls are not counted. The
   * package has this too, but searches all of them for each new one.
   */
  readonly #overLimitUntil = new Map<string, number>();
  /** Ends of the windows that began in this process, by caller, oldest first. */
  readonly #windowEnds = new Map<string, number>();

  constructor(options: RateLimitOptions) {
    const { requests, windowMs, redis } = options;
    this.#options = options;
    this.#keyPrefix = `hop-gateway:limit:${windowMs}`;
    // Loaded on demand: most operators limit requests in their proxy, and the package costs 20 ms and 7 MB.
    this.#package = createRequire(import.meta.url)("rate-limiter-flexible") as typeof rateLimiterFlexible;
    const { RateLimiterCluster, RateLimiterMemory } = this.#package;
    const local = { points: requests, duration: windowMs / 1000 };
    this.#localLimiter = cluster.isWorker
      ? new RateLimiterCluster({ ...local, timeoutMs: COUNT_TIMEOUT_MS })
      : new RateLimiterMemory(local);
    this.#limiter = redis === undefined ? this.#localLimiter : this.#createSharedLimiter(redis);
  }

  /**
   * Counts a call as one request. Resolves to RATE_LIMITED, with the time until the next window, if the caller is over the
   * limit. Never rejects.
   */
  count(context: RequestContext): Promise<ServiceError | undefined> {
    return this.#consume(context, 1);
  }

  /**
   * Counts a call, which has been counted once, as so many requests, at most as all of one window: a caller who makes no
   * other call is always admitted. Rejects with RATE_LIMITED; a rejected call stays counted as one.
   */
  async countMore(context: RequestContext, requests: number): Promise<void> {
    const points = Math.min(requests, this.#options.requests) - 1;
    if (points <= 0) return;
    // To consume more than is left would use up the rest of the window for a call that is refused.
    const rejection = findShortage(context, points) ?? (await this.#consume(context, points));
    if (rejection !== undefined) throw rejection;
  }

  #createSharedLimiter(redis: RateLimitStore): rateLimiterFlexible.RateLimiterAbstract {
    const { requests, windowMs } = this.#options;
    const storeClient = {
      eval: (...[script, options]: Parameters<RateLimitStore["eval"]>) => this.#countInRedis(redis, script, options),
    };
    return new this.#package.RateLimiterRedis({
      points: requests,
      // Whole seconds for the package's own script only.
      duration: Math.ceil(windowMs / 1000),
      customIncrTtlLuaScript: createCountScript(windowMs),
      keyPrefix: this.#keyPrefix,
      storeClient,
      useRedisPackage: true,
      insuranceLimiter: this.#localLimiter,
    });
  }

  async #countInRedis(redis: RateLimitStore, ...[script, options]: Parameters<RateLimitStore["eval"]>) {
    const reply = await redis.eval(script, options);
    const [count, msLeft] = reply as readonly [number, number];
    const caller = options.keys[0]?.slice(this.#keyPrefix.length + 1) ?? "";
    if (count > this.#options.requests) this.#overLimitUntil.set(caller, performance.now() + msLeft);
    return reply;
  }

  async #consume(context: RequestContext, points: number): Promise<ServiceError | undefined> {
    const { caller } = context;
    const overLimitMs = (this.#overLimitUntil.get(caller) ?? 0) - performance.now();
    if (overLimitMs > 0) {
      const secondsLeft = toSeconds(overLimitMs);
      this.#setHeaders(context, 0, secondsLeft);
      return createRejection(secondsLeft);
    }
    let result: rateLimiterFlexible.RateLimiterRes;
    let isRejected = false;
    try {
      result = await this.#limiter.consume(caller, points);
    } catch (rejection) {
      if (!(rejection instanceof this.#package.RateLimiterRes)) {
        this.#options.onFailure(rejection);
        return undefined;
      }
      result = rejection;
      isRejected = true;
    }
    // Of a window that began in another process, this one remembers no more than that the caller is over the limit.
    if (result.isFirstInDuration || (isRejected && this.#options.redis !== undefined))
      this.#trackWindow(caller, result.msBeforeNext);
    const secondsLeft = toSeconds(result.msBeforeNext);
    this.#setHeaders(context, result.remainingPoints, secondsLeft);
    return isRejected ? createRejection(secondsLeft) : undefined;
  }

  #trackWindow(caller: string, msLeft: number): void {
    const now = performance.now();
    this.#windowEnds.delete(caller);
    this.#windowEnds.set(caller, now + msLeft);
    for (const [oldest, end] of this.#windowEnds) {
      if (end > now && this.#windowEnds.size <= MAX_TRACKED_CALLERS) break;
      this.#windowEnds.delete(oldest);
      this.#overLimitUntil.delete(oldest);
      if (end > now) this.#localLimiter.delete(oldest).catch(this.#options.onFailure);
    }
  }

  #setHeaders(context: RequestContext, remaining: number, secondsLeft: number): void {
    context.rateLimitHeaders = [
      "ratelimit-limit",
      String(this.#options.requests),
      "ratelimit-remaining",
      String(remaining),
      "ratelimit-reset",
      String(secondsLeft),
    ];
  }
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

/** Counts in windows of any length; the package's own script knows whole seconds only. */
function createCountScript(windowMs: number): string {
  return `
redis.call('set', KEYS[1], 0, 'PX', ${windowMs}, 'NX')
return {redis.call('incrby', KEYS[1], ARGV[1]), redis.call('pttl', KEYS[1])}`;
}
