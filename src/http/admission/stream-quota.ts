import { ServiceError } from "../../errors.js";
import { createFairQuota } from "../../resilience/fair-quota.js";

/** The number of streams that may be open at the same time. */
export interface StreamLimits {
  /** Of all callers together. */
  readonly total: number;
  /** Of one caller, who also has to leave as many free as it holds. Default: no limit beyond that. */
  readonly perCaller?: number;
}

/** Counts open streams, such as watches: each takes memory for as long as its caller wants. */
export interface StreamQuota {
  /**
   * Takes a place for a stream and returns the function that releases it, to be called once when the stream has ended.
   * @throws ServiceError OVERLOADED when all places are taken; RATE_LIMITED when this caller has its share
   */
  acquire(caller: string): () => void;
  /** Returns the number of open streams. */
  openCount(): number;
}

/** When a refused caller may try again. Streams are long: a short time would only repeat the refusal. */
const RETRY_AFTER_SECONDS = 5;

export function createStreamQuota({ total, perCaller = total }: StreamLimits): StreamQuota {
  const quota = createFairQuota(() => total, perCaller);
  return {
    acquire(caller) {
      const release = quota.tryAcquire(caller);
      if (release !== undefined) return release;
      const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
      if (quota.heldCount() >= total) throw new ServiceError("OVERLOADED", "too many streams are open here", options);
      throw new ServiceError("RATE_LIMITED", "too many streams are open from this address", options);
    },
    openCount: quota.heldCount,
  };
}
