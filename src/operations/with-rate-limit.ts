import cluster from "node:cluster";
import { RateLimiterCluster, RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { ServiceError } from "../errors.js";
import type { Operation } from "./operation.js";

/** Puts one limit per caller over all operations that it is given. */
export type RateLimit = <Request, Response>(operation: Operation<Request, Response>) => Operation<Request, Response>;

/** How long the process that counts for all may take; without its word a call is let pass. */
const countMs = 500;

/**
 * @param limit requests that one caller may make in each window of so many milliseconds; undefined: any number
 * @param onFailure told when requests could not be counted
 * @throws ServiceError RATE_LIMITED from the operations, with the time after which the caller may come back.
 */
export function createRateLimit(
  limit: { readonly requests: number; readonly windowMs: number } | undefined,
  onFailure: (error: unknown) => void,
): RateLimit {
  if (limit === undefined) return (operation) => operation;
  const options = { points: limit.requests, duration: limit.windowMs / 1000 };
  // Several processes on one port count together, in the one that started them.
  const limiter = cluster.isWorker
    ? new RateLimiterCluster({ ...options, timeoutMs: countMs })
    : new RateLimiterMemory(options);
  return (operation) => async (request, context) => {
    await limiter.consume(context.caller).catch((refusal: unknown) => {
      if (!(refusal instanceof RateLimiterRes)) {
        onFailure(refusal);
        return;
      }
      const retryAfterSeconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000));
      throw new ServiceError("RATE_LIMITED", "too many requests from this address", { retryAfterSeconds });
    });
    return operation(request, context);
  };
}
