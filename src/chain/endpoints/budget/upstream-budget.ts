import { ServiceError } from "../../../errors.js";
import { createFairQuota } from "../../../resilience/fair-quota.js";
import type { BodyMemory } from "../../../resilience/http-client/fetch-json.js";
import { UpstreamError } from "../../../resilience/upstream-error.js";
import type { Upstream } from "../endpoint-attempt.js";
import type { HedgedRequester } from "../hedged-requests.js";
import { createResponseMemory } from "./response-memory.js";

/**
 * What requests to the operator's endpoints may take of the process, over all chains and callers. An endpoint that hangs
 * holds its requests until their deadlines; it must leave as much as it holds to the other endpoints.
 */
export interface UpstreamBudget {
  /** Returns whether a request to an endpoint may begin. */
  hasCapacityFor(endpoint: string): boolean;
  /**
   * Begins a request, and returns the memory of its response, whose release ends it.
   * @throws ServiceError OVERLOADED when too many requests wait for a response
   */
  openRequest(endpoint: string): BodyMemory;
  /** Returns the number of requests that wait for a response. */
  inFlight(): number;
}

/** Requests in flight; one endpoint gets at most half. Each has a connection, and takes up to thirty kilobytes. */
export const MAX_REQUESTS_IN_FLIGHT = 2_048;
/** Bytes of responses that are being read; one endpoint gets at most half. */
export const MAX_RESPONSE_MEMORY_BYTES = 64 * 1024 * 1024;

export function createUpstreamBudget(): UpstreamBudget {
  const slots = createFairQuota(() => MAX_REQUESTS_IN_FLIGHT);
  const memory = createResponseMemory({
    maxBytes: MAX_RESPONSE_MEMORY_BYTES,
    // A failure of the endpoint: another one may give a shorter response, and a log search then asks for fewer blocks.
    createError: () => new UpstreamError("answered more bytes than there is memory for", { kind: "too_large" }),
  });
  return {
    hasCapacityFor: slots.hasCapacityFor,
    inFlight: slots.heldCount,
    openRequest(endpoint) {
      const releaseSlot = slots.tryAcquire(endpoint);
      if (releaseSlot === undefined) throw tooManyRequestsError();
      const response = memory.open(endpoint);
      return {
        grow: response.grow,
        release() {
          response.release();
          releaseSlot();
        },
      };
    },
  };
}

/**
 * Decorates a requester: refuses a request, at once, while each endpoint that could get it has too many.
 * @param listUsable returns the endpoints that may get requests apart from that
 * @throws ServiceError OVERLOADED from the returned requester
 */
export function refuseWithoutCapacity(
  request: HedgedRequester,
  listUsable: () => readonly Upstream[],
  hasCapacity: (upstream: Upstream) => boolean,
): HedgedRequester {
  return async (calls, signal, policy) => {
    const usable = listUsable().filter((upstream) => policy?.isEligible(upstream) !== false);
    if (usable.length > 0 && !usable.some(hasCapacity)) throw tooManyRequestsError();
    return request(calls, signal, policy);
  };
}

export function tooManyRequestsError(): ServiceError {
  const message = "too many requests to RPC endpoints wait for a response: try again later";
  return new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
}
