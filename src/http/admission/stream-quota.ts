import { ServiceError } from "../../errors.js";
import { createFairQuota } from "../../resilience/fair-quota.js";

/** The number of streams that may be open at the same time. */
export interface StreamLimits {
  /** Of all callers together. */
  readonly total: number;
  /** Of one caller, who also has to leave as many free as it holds. Default: no limit beyond that. */
  readonly perCaller?: number;
  /** Of all callers together, of those that take a connection each. Default: as many as in total. */
  readonly connections?: number;
}

/** Counts open streams, such as watches: each takes memory for as long as its caller wants. */
export interface StreamQuota {
  /**
   * Takes a place for a stream and returns the function that releases it, to be called once when the stream has ended.
   * @param takesConnection whether no other request can use its connection meanwhile. Default: false
   * @throws ServiceError OVERLOADED when all places are taken; RATE_LIMITED when this caller has its share
   */
  acquire(caller: string, takesConnection?: boolean): () => void;
  /** Returns the number of open streams. */
  openCount(): number;
}

/** When a refused caller may try again. Streams are long: a short time would only repeat the refusal. */
const RETRY_AFTER_SECONDS = 5;

export function createStreamQuota({ total, perCaller = total, connections = total }: StreamLimits): StreamQuota {
  const quota = createFairQuota(() => total, perCaller);
  const connectionQuota = createFairQuota(() => connections, perCaller);
  function refuse(isFull: boolean): never {
    const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    if (isFull) throw new ServiceError("OVERLOADED", "too many streams are open here", options);
    throw new ServiceError("RATE_LIMITED", "too many streams are open from this address", options);
  }
  return {
    acquire(caller, takesConnection = false) {
      const release = quota.tryAcquire(caller) ?? refuse(quota.heldCount() >= total);
      if (!takesConnection) return release;
      const releaseConnection = connectionQuota.tryAcquire(caller);
      if (releaseConnection === undefined) {
        release();
        return refuse(connectionQuota.heldCount() >= connections);
      }
      return () => {
        release();
        releaseConnection();
      };
    },
    openCount: quota.heldCount,
  };
}
