/**
 * A token bucket: limits a rate and allows short bursts. Takers may overdraw it: the debt delays those that come next, so
 * that a piece of work that is larger than the burst is possible too, and the average stays within the rate.
 */
export interface TokenBucket {
  /**
   * Returns how long a taker has to wait until there is a token, in milliseconds.
   * @param reserved tokens that it leaves to others; default: none
   */
  waitMs(reserved?: number): number;
  /** Takes tokens, whether there are as many or not. */
  take(tokens: number): void;
  /** Returns the number of tokens; negative: the debt. */
  level(): number;
}

export interface TokenBucketOptions {
  /** Tokens that are added per second. */
  readonly perSecond: number;
  /** Most tokens that it holds, at least 1. It is full at first. */
  readonly burst: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

export function createTokenBucket({ perSecond, burst, now }: TokenBucketOptions): TokenBucket {
  const msPerToken = 1000 / perSecond;
  let fullAt = now();
  const missingMs = (): number => Math.max(0, fullAt - now());
  return {
    waitMs: (reserved = 0) => Math.ceil(Math.max(0, missingMs() - (burst - 1 - reserved) * msPerToken)),
    take(tokens) {
      fullAt = now() + missingMs() + tokens * msPerToken;
    },
    level: () => burst - missingMs() / msPerToken,
  };
}
