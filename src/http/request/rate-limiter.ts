import cluster from "node:cluster";
import { RateLimiterCluster, RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { ServiceError } from "../../errors.js";
import type { RequestContext } from "./request-context.js";
import type { HttpExchange, PathHandler } from "./response.js";

/** How many calls one caller may make in each window. */
export interface RateLimitOptions {
  readonly requests: number;
  readonly windowMs: number;
  /** Told when a call could not be counted, and so was let pass. */
  onFailure(error: unknown): void;
}

/**
 * Counts a call against the limit of its caller, and notes for its answer what that caller has left.
 * @returns RATE_LIMITED, with the time after which the caller may come back, where it has had too many already. Never
 * rejects: a call that cannot be counted is let pass.
 */
export type RateLimiter = (call: RequestContext) => Promise<ServiceError | undefined>;

/** How long the process that counts for all may take; without its word a call is let pass. */
const COUNT_TIMEOUT_MS = 500;

/**
 * Callers that are counted at a time, some 500 bytes each. Beyond them the one whose window is the oldest starts anew:
 * that takes nothing from anybody, and whoever has so many addresses is not held by a limit for each of them.
 */
const MAX_TRACKED_CALLERS = 100_000;

/**
 * So many calls in each window, which begins with a caller's first one. At the edge of two windows twice as many can come
 * at once. A bucket of that size which fills in a window's time lets as many through in any time of that length, so that
 * this one is no laxer, and what it says of the next moment is exact.
 *
 * The headers are the three fields of the IETF's drafts up to the sixth, with seconds to go in the last: what clients
 * and gateways read. Later drafts put all into one structured field, whose form changed from draft to draft.
 */
export function createRateLimiter({ requests, windowMs, onFailure }: RateLimitOptions): RateLimiter {
  const options = { points: requests, duration: windowMs / 1000 };
  // Several processes on one port count together, in the one that started them.
  const limiter = cluster.isWorker
    ? new RateLimiterCluster({ ...options, timeoutMs: COUNT_TIMEOUT_MS })
    : new RateLimiterMemory(options);
  /** When the windows that began here end, the oldest first. */
  const ends = new Map<string, number>();

  function noteWindow(caller: string, msLeft: number): void {
    const now = performance.now();
    ends.delete(caller);
    ends.set(caller, now + msLeft);
    for (const [oldest, end] of ends) {
      if (end > now && ends.size <= MAX_TRACKED_CALLERS) break;
      ends.delete(oldest);
      if (end > now) limiter.delete(oldest).catch(onFailure);
    }
  }

  return async (call) => {
    const { caller } = call;
    let counted: RateLimiterRes;
    let isRefused = false;
    try {
      counted = await limiter.consume(caller);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) {
        onFailure(refusal);
        return undefined;
      }
      counted = refusal;
      isRefused = true;
    }
    if (counted.isFirstInDuration) noteWindow(caller, counted.msBeforeNext);
    const secondsLeft = Math.max(1, Math.ceil(counted.msBeforeNext / 1000));
    call.rateLimitHeaders = [
      ...["ratelimit-limit", String(requests)],
      ...["ratelimit-remaining", String(counted.remainingPoints)],
      ...["ratelimit-reset", String(secondsLeft)],
    ];
    if (!isRefused) return undefined;
    const options = { retryAfterSeconds: secondsLeft };
    return new ServiceError("RATE_LIMITED", "too many requests from this address", options);
  };
}

/** Answers a call that is refused. */
export type SendRejection = (exchange: HttpExchange, refusal: ServiceError) => void;

/** Puts the limit in front of the handler of an operation's path; `name` is the operation's, for the log. */
export type RateLimitMiddleware = (handler: PathHandler, name: string, refuse: SendRejection) => PathHandler;

/**
 * What cannot be read counts too, else a flood of it would be free. Questions of browsers before a request do not, nor
 * does anything outside of operations: unknown paths, health and reflection cost no more than a refusal.
 */
export function createRateLimitMiddleware(rateLimit: RateLimiter | undefined): RateLimitMiddleware {
  if (rateLimit === undefined) return (handler) => handler;
  return (handler, name, refuse) => (exchange, query) => {
    const { req, context, bufferedBody } = exchange;
    // A call of whose body something has been read was counted before that.
    if (bufferedBody !== undefined || req.method === "OPTIONS") {
      handler(exchange, query);
      return;
    }
    context.operation = name;
    void rateLimit(context).then((refusal) => {
      if (context.isAborted) return;
      if (refusal === undefined) handler(exchange, query);
      else refuse(exchange, refusal);
    });
  };
}
