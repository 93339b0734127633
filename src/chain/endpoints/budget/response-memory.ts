import { createFairQuota } from "../../../resilience/fair-quota.js";
import type { BodyMemory } from "../../../resilience/http-client/fetch-json.js";

/** One memory budget for the responses of several endpoints. */
export interface ResponseMemory {
  /**
   * Returns the memory of one response.
   * @param holder who shares the budget fairly: a caller, or an endpoint
   */
  open(holder: string): BodyMemory;
  /** Returns the number of bytes that are reserved. */
  reservedBytes(): number;
}

export interface ResponseMemoryOptions {
  /** Bytes of responses that are being read, of all holders together. */
  readonly maxBytes: number;
  /** Creates the error of a response for which there is no memory. */
  readonly createError: () => Error;
}

/** Creates the budget. A holder may reserve as much of it as it leaves free: at most half. */
export function createResponseMemory({ maxBytes, createError }: ResponseMemoryOptions): ResponseMemory {
  const quota = createFairQuota(() => maxBytes);
  return {
    reservedBytes: quota.heldCount,
    open(holder) {
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
    },
  };
}
