import type { ServiceError } from "../../errors.js";
import type { Protocol, RequestContext } from "../request/request-context.js";
import type { RateLimiter } from "./rate-limiter.js";

/**
 * Begins a request on every serving path: names its protocol and operation for the log and counts it against the rate
 * limit of its caller.
 *
 * Returns undefined if the request may proceed at once, which costs no promise. Otherwise the promise resolves once the
 * request is counted: to RATE_LIMITED if it has to be rejected. The caller may be gone by then.
 * @param operation full name of service and method, or the path of a document
 */
export type BeginRequest = (
  context: RequestContext,
  protocol: Protocol,
  operation: string,
  isRateLimited: boolean,
) => Promise<ServiceError | undefined> | undefined;

export function createBeginRequest(rateLimiter: RateLimiter | undefined): BeginRequest {
  return (context, protocol, operation, isRateLimited) => {
    context.protocol = protocol;
    context.operation = operation;
    return isRateLimited ? rateLimiter?.count(context) : undefined;
  };
}
