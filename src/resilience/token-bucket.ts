/**
 * A token bucket: limits a rate and allows short bursts. Takers may overdraw it: the debt delays those that come next, so
 * that a piece of work that is larger than the burst is possible too, and the average stays within the rate.
 */
export class TokenBucket {
  readonly #msPerToken: number;
  readonly #burst: number;
  readonly #now: () => number;
  #fullAt: number;

  constructor(options: {
    /** Tokens that are added per second. */
    readonly perSecond: number;
    /** Most tokens that it holds, at least 1. It is full at first. */
    readonly burst: number;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
  }) {
    this.#msPerToken = 1000 / options.perSecond;
    this.#burst = options.burst;
    this.#now = options.now;
    this.#fullAt = this.#now();
  }

  /**
   * Returns how long a taker has to wait until there is a token, in milliseconds.
   * @param reserved tokens that it leaves to others; default: none
   */
  waitMs(reserved = 0): number {
    return Math.ceil(Math.max(0, this.#missingMs() - (this.#burst - 1 - reserved) * this.#msPerToken));
  }

  /** Takes tokens, whether there are as many or not. */
  take(tokens: number): void {
    this.#fullAt = this.#now() + this.#missingMs() + tokens * this.#msPerToken;
  }

  /** Takes a token; returns false when there is none. */
  tryTake(): boolean {
    if (this.waitMs() > 0) return false;
    this.take(1);
    return true;
  }

  /** Returns the number of tokens; negative: the debt. */
  level(): number {
    return this.#burst - this.#missingMs() / this.#msPerToken;
  }

  #missingMs(): number {
    return Math.max(0, this.#fullAt - this.#now());
  }
}
