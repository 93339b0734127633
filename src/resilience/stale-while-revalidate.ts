/** A value read from elsewhere, with the time at which it was read (milliseconds on a steady clock). */
export interface CacheEntry<T> {
  readonly value: T;
  readonly readAt: number;
}

export interface StaleWhileRevalidateOptions<T> {
  /** Reads the document and checks it. */
  readonly load: (signal: AbortSignal) => Promise<T>;
  readonly now: () => number;
  /** For how long a reading is used without asking again, in milliseconds. */
  readonly freshMs: number;
  /**
   * For how long a reading that is no longer fresh is given out while it is read again, in milliseconds since it was
   * read; older than that, the new one is waited for.
   */
  readonly staleMs: number;
  /** After a failure, for how long the source is left alone, in milliseconds. */
  readonly errorTtlMs: number;
  readonly onError: (error: unknown) => void;
}

/** A remote document that is read when it is wanted and has grown old. */
export interface StaleWhileRevalidateCache<T> {
  /**
   * The last good reading, read anew when it is no longer fresh. Callers share one read; a failed read leaves the older
   * reading standing, whose age is the caller's to judge.
   * @throws the read's error when there has never been a good one.
   */
  get(): Promise<CacheEntry<T>>;
  /**
   * What get() would give without a wait, with the same effect; undefined where it would wait. The same object as long
   * as there is no newer reading.
   */
  peek(): CacheEntry<T> | undefined;
  /** The last good reading, however old; asks nobody. */
  peekStale(): CacheEntry<T> | undefined;
  health(): SourceHealth;
  /** Ends a read that is under way. */
  close(): void;
}

/** How a source is, by what was asked of it. failing: what is known of it last is a failure; unknown: nobody asked. */
export interface SourceHealth {
  readonly state: "ok" | "failing" | "unknown";
  /** Age of what it gave last, in milliseconds; undefined: nothing yet. */
  readonly ageMs: number | undefined;
}

export function createStaleWhileRevalidateCache<T>(
  options: StaleWhileRevalidateOptions<T>,
): StaleWhileRevalidateCache<T> {
  const closing = new AbortController();
  let last: CacheEntry<T> | undefined;
  let failure: { readonly error: unknown; readonly at: number } | undefined;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    try {
      const value = await options.load(closing.signal);
      last = { value, readAt: options.now() };
      failure = undefined;
    } catch (error) {
      failure = { error, at: options.now() };
      options.onError(error);
    } finally {
      reading = undefined;
    }
  }

  function peek(): CacheEntry<T> | undefined {
    const now = options.now();
    if (last !== undefined && now - last.readAt < options.freshMs) return last;
    const resting = failure !== undefined && now - failure.at < options.errorTtlMs;
    if (!resting) reading ??= refresh();
    // Once the source has failed nobody waits for it again as long as there is an older reading.
    return last !== undefined && (failure !== undefined || now - last.readAt < options.staleMs) ? last : undefined;
  }

  return {
    async get() {
      const atHand = peek();
      if (atHand !== undefined) return atHand;
      await reading;
      if (last !== undefined) return last;
      throw failure?.error;
    },
    peek,
    peekStale: () => last,
    health() {
      const state = failure !== undefined ? "failing" : last === undefined ? "unknown" : "ok";
      return { state, ageMs: last && options.now() - last.readAt };
    },
    close() {
      closing.abort();
    },
  };
}
