import { LRUCache } from "lru-cache";
import { createTokenBucket, type TokenBucket } from "../../chain/endpoints/budget/token-bucket.js";

/** Capacity and refill rate of a token bucket. */
export interface TokenBucketRate {
  readonly capacity: number;
  readonly refillPerSecond: number;
}

/** Token buckets by key. */
export interface TokenBuckets {
  /** Takes one token; returns false when the bucket is empty. */
  tryTake(key: string): boolean;
  /** Returns after how many whole seconds, at least one, a bucket will hold so many tokens. */
  secondsUntil(key: string, tokens: number): number;
  /** Takes so many tokens that at least this number is missing. */
  raiseMissing(key: string, tokens: number): void;
}

/** About a megabyte. A bucket that is evicted starts full again: only those that were not used for long are. */
const MAX_BUCKETS = 10_000;

/** @param now monotonic clock, in milliseconds */
export function createTokenBuckets({ capacity, refillPerSecond }: TokenBucketRate, now: () => number): TokenBuckets {
  const buckets = new LRUCache<string, TokenBucket>({ max: MAX_BUCKETS });

  function getBucket(key: string): TokenBucket {
    const bucket = buckets.get(key) ?? createTokenBucket({ perSecond: refillPerSecond, burst: capacity, now });
    buckets.set(key, bucket);
    return bucket;
  }

  return {
    tryTake(key) {
      const bucket = getBucket(key);
      if (bucket.waitMs() > 0) return false;
      bucket.take(1);
      return true;
    },
    raiseMissing(key, tokens) {
      const bucket = getBucket(key);
      bucket.take(Math.max(0, tokens - (capacity - bucket.level())));
    },
    secondsUntil: (key, tokens) => Math.max(1, Math.ceil((tokens - getBucket(key).level()) / refillPerSecond)),
  };
}
