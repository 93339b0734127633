import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import { ServiceError } from "../errors.js";
import type { Operation } from "./operation.js";

/** Puts one limit per caller over all operations that it is given. */
export type RateLimit = <Request, Response>(operation: Operation<Request, Response>) => Operation<Request, Response>;

/**
 * @param limit requests that one caller may make in each window of so many milliseconds; undefined: any number
 * @throws ServiceError RATE_LIMITED from the operations, with the time after which the caller may come back.
 */
export function createRateLimit(
  limit: { readonly requests: number; readonly windowMs: number } | undefined,
): RateLimit {
  if (limit === undefined) return (operation) => operation;
  const limiter = new RateLimiterMemory({ points: limit.requests, duration: limit.windowMs / 1000 });
  return (operation) => async (request, context) => {
    await limiter.consume(context.caller).catch(({ msBeforeNext }: RateLimiterRes) => {
      const retryAfterSeconds = Math.max(1, Math.ceil(msBeforeNext / 1000));
      throw new ServiceError("RATE_LIMITED", "too many requests from this address", { retryAfterSeconds });
    });
    return operation(request, context);
  };
}
