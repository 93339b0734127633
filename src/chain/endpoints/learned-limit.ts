/** How long a limit is used. It may have been temporary, or have been raised since. */
const LIMIT_TTL_MS = 10 * 60_000;
/** TTL of a limit after a rejection that probably had another reason. */
export const UNCERTAIN_LIMIT_TTL_MS = 30_000;

/** How much an endpoint accepts at once, learned from what it rejects: calls in a batch, or blocks in a log search. */
export class LearnedLimit {
  readonly #smallest: number;
  readonly #firstGuess: number;
  readonly #now: () => number;
  #limit = Number.POSITIVE_INFINITY;
  #expiresAt = Number.NEGATIVE_INFINITY;

  /**
   * @param smallest smallest limit: a rejection of so little has another reason
   * @param firstGuess largest limit after a rejection that names none
   * @param now monotonic clock, in milliseconds
   */
  constructor(smallest: number, firstGuess: number, now: () => number) {
    this.#smallest = smallest;
    this.#firstGuess = firstGuess;
    this.#now = now;
  }

  /** Returns the largest size to try; Infinity: no limit is known. */
  current(): number {
    return this.#isValid() ? this.#limit : Number.POSITIVE_INFINITY;
  }

  /**
   * Learns from a rejection.
   * @param named the limit that the rejection names
   */
  narrow(rejectedSize: number, named?: number, ttlMs: number = LIMIT_TTL_MS): void {
    const previous = this.#limit > this.#smallest && this.#limit < rejectedSize ? this.#limit : undefined;
    const isValid = this.#isValid() && previous !== undefined;
    const half = Math.max(Math.min(Math.floor(rejectedSize / 2), this.#firstGuess), this.#smallest);
    // The previous limit probably still holds. An expired one is doubled, so that one bad moment does not count forever.
    const guess = previous === undefined ? half : Math.min(previous * (isValid ? 1 : 2), Math.max(half, previous));
    this.#limit = Math.min(named ?? guess, isValid ? previous : Number.POSITIVE_INFINITY);
    this.#expiresAt = this.#now() + ttlMs;
  }

  #isValid(): boolean {
    return this.#now() < this.#expiresAt;
  }
}

/** Returns the smallest number that may be the limit of which a rejection speaks; undefined: it names none. */
export function findNamedLimit(
  numbers: readonly number[],
  { smallest, rejectedSize }: { readonly smallest: number; readonly rejectedSize: number },
): number | undefined {
  const plausible = numbers.filter((number) => number >= smallest && number < rejectedSize);
  return plausible.length === 0 ? undefined : Math.min(...plausible);
}
