import type { TokenBucketRate, TokenBuckets } from "./token-buckets.js";

/** The token buckets of all replicas. */
export interface SharedTokenBuckets {
  /**
   * Takes tokens from the buckets and returns how many are missing in each then; buckets of which nothing is known are
   * absent. Never rejects.
   * @param spent tokens by key
   */
  take(rate: SharedRate, spent: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>;
}

export interface SharedRate extends TokenBucketRate {
  /** Tells the buckets of different rates apart. */
  readonly kind: string;
}

/**
 * How often replicas tell each other what they have spent. A replica exceeds a budget by what it spends in this time: even
 * at a thousand requests per second, by 2.5 % of the smallest.
 */
export const EXCHANGE_INTERVAL_MS = 250;
/** Callers whose spending is told at a time; the others' follows. */
const MAX_EXCHANGED_KEYS = 200;

/**
 * Decorates token buckets: from time to time, what was taken is also taken from the buckets of all replicas, and a bucket
 * here never holds more than that of all. Nobody waits for the other replicas.
 */
export function shareTokenBuckets(buckets: TokenBuckets, rate: SharedRate, shared: SharedTokenBuckets): TokenBuckets {
  const unsent = new Map<string, number>();
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setTimeout(() => void exchange(), EXCHANGE_INTERVAL_MS).unref();
  }

  async function exchange(): Promise<void> {
    const spent = new Map([...unsent].slice(0, MAX_EXCHANGED_KEYS));
    for (const key of spent.keys()) unsent.delete(key);
    // What cannot be told is forgotten: by the time that it can be, the buckets have filled up.
    const missing = await shared.take(rate, spent);
    for (const [key, tokens] of missing) buckets.raiseMissing(key, tokens + (unsent.get(key) ?? 0));
    isScheduled = false;
    if (unsent.size > 0) schedule();
  }

  return {
    ...buckets,
    tryTake(key) {
      const isTaken = buckets.tryTake(key);
      if (isTaken) {
        unsent.set(key, (unsent.get(key) ?? 0) + 1);
        schedule();
      }
      return isTaken;
    },
  };
}
