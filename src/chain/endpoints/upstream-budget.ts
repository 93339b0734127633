import { ServiceError } from "../../errors.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { BodyMemory } from "../../resilience/http-client/fetch-json.js";
import { UpstreamError } from "../../resilience/http-client/upstream-error.js";

/** Requests in flight; one endpoint gets at most half. Each has a connection, and takes up to thirty kilobytes. */
export const MAX_REQUESTS_IN_FLIGHT = 2_048;
/** Bytes of responses that are being read; one endpoint gets at most half. */
export const MAX_RESPONSE_MEMORY_BYTES = 64 * 1024 * 1024;

/**
 * What requests to the operator's endpoints may take of the process, over all chains and callers. An endpoint that hangs
 * holds its requests until their deadlines; it must leave as much as it holds to the other endpoints.
 */
export class UpstreamBudget {
  readonly #slots = new FairQuota(() => MAX_REQUESTS_IN_FLIGHT);
  readonly #memory = new FairQuota(() => MAX_RESPONSE_MEMORY_BYTES);

  /** Returns whether a request to an endpoint may begin. */
  hasCapacityFor(endpoint: string): boolean {
    return this.#slots.hasCapacityFor(endpoint);
  }

  /**
   * Begins a request, and returns the memory of its response, whose release ends it.
   * @throws ServiceError OVERLOADED when too many requests wait for a response
   */
  openRequest(endpoint: string): BodyMemory {
    const releaseSlot = this.#slots.tryAcquire(endpoint);
    if (releaseSlot === undefined) throw tooManyRequestsError();
    // A failure of the endpoint: another one may give a shorter response, and a log search then asks for fewer blocks.
    const memory = openResponseMemory(
      this.#memory,
      endpoint,
      () => new UpstreamError("answered more bytes than there is memory for", { kind: "too_large" }),
    );
    return {
      grow: memory.grow,
      release() {
        memory.release();
        releaseSlot();
      },
    };
  }

  /** Returns the number of requests that wait for a response. */
  inFlight(): number {
    return this.#slots.heldCount();
  }
}

/**
 * Opens the memory of one response.
 * @param quota bytes of all responses that are being read
 * @param holder who shares the quota fairly: a caller, or an endpoint
 * @param createError creates the error of a response for which there is no memory
 */
export function openResponseMemory(quota: FairQuota, holder: string, createError: () => Error): BodyMemory {
  let reserved = 0;
  const releases: (() => void)[] = [];
  return {
    grow(bytes) {
      if (bytes <= reserved) return;
      const release = quota.tryAcquire(holder, bytes - reserved);
      if (release === undefined) throw createError();
      releases.push(release);
      reserved = bytes;
    },
    release() {
      for (const release of releases.splice(0)) release();
      reserved = 0;
    },
  };
}

export function tooManyRequestsError(): ServiceError {
  const message = "too many requests to RPC endpoints wait for a response: try again later";
  return new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
}
