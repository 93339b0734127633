import { ServiceError } from "../../../errors.js";
import { createFairQuota } from "../../../resilience/fair-quota.js";
import type { BodyMemory } from "../../../resilience/fetch-json.js";

/** One memory budget for the responses of all custom endpoints. */
export interface ResponseMemory {
  /** Returns the memory of one response of a caller's endpoint. */
  open(caller: string): BodyMemory;
  /** Returns the number of bytes that are reserved. */
  reservedBytes(): number;
}

/** Bytes of responses that are being read, of all callers together. */
export const MAX_RESPONSE_MEMORY_BYTES = 16 * 1024 * 1024;
const BLOCK_BYTES = 64 * 1024;

/** Creates the budget. A caller may hold as much of it as it leaves free: at most half. */
export function createResponseMemory(): ResponseMemory {
  const quota = createFairQuota(() => MAX_RESPONSE_MEMORY_BYTES / BLOCK_BYTES);
  return {
    reservedBytes: () => quota.heldCount() * BLOCK_BYTES,
    open(caller) {
      const releases: (() => void)[] = [];
      return {
        grow(bytes) {
          while (releases.length * BLOCK_BYTES < bytes) {
            const release = quota.tryAcquire(caller);
            if (release === undefined) {
              const message = "too many long responses of custom endpoints are being read: try again later";
              throw new ServiceError("OVERLOADED", message, { retryAfterSeconds: 1 });
            }
            releases.push(release);
          }
        },
        release() {
          for (const release of releases.splice(0)) release();
        },
      };
    },
  };
}
