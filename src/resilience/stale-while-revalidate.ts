import { describeUpstreamFailure } from "./http-client/upstream-error.js";

/** A loaded value and when it was loaded, in milliseconds on the monotonic clock. */
export interface CacheEntry<T> {
  readonly value: T;
  readonly readAt: number;
}

export interface StaleWhileRevalidateOptions<T> {
  /** Loads and validates the value. */
  readonly load: (signal: AbortSignal) => Promise<T>;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Age up to which an entry is returned without loading again, in milliseconds. */
  readonly freshMs: number;
  /**
   * Age up to which an entry that is no longer fresh is returned while it is loaded again, in milliseconds. Above it,
   * callers wait for the new entry.
   */
  readonly staleMs: number;
  /** How long no load is attempted after a failure, in milliseconds. */
  readonly errorTtlMs: number;
  readonly onError: (error: unknown) => void;
  /** Loads the value once for several processes. Default: this process loads for itself. */
  readonly share?: ((load: () => Promise<T>) => Promise<CacheEntry<T>>) | undefined;
}

/** Health of a source by the last load. unknown: nothing has been loaded yet. */
export interface SourceHealth {
  readonly state: "ok" | "failing" | "unknown";
  /** Age of the last entry in milliseconds; undefined: no entry yet. */
  readonly ageMs: number | undefined;
  /** Why the last load failed, in words without a URL; undefined: it did not, or for another reason than the upstream. */
  readonly failure?: string | undefined;
}

/**
 * Caches one remote document and loads it on demand, when it is no longer fresh. `fetchMethod` of lru-cache knows neither
 * an age beyond which callers wait although a stale value is there, nor a pause after a failure, nor a look without waiting.
 */
export class StaleWhileRevalidateCache<T> {
  readonly #options: StaleWhileRevalidateOptions<T>;
  readonly #closing = new AbortController();
  #last: CacheEntry<T> | undefined;
  #failure: { readonly error: unknown; readonly failedAt: number } | undefined;
  #pending: Promise<void> | undefined;

  constructor(options: StaleWhileRevalidateOptions<T>) {
    this.#options = options;
  }

  /**
   * Returns the last entry, loaded again when it is no longer fresh. Concurrent callers share one load. A failed load
   * keeps the older entry; the caller decides by its age whether to use it.
   * @throws the load's error when no load has ever succeeded
   */
  async get(): Promise<CacheEntry<T>> {
    const cached = this.peek();
    if (cached !== undefined) return cached;
    await this.#pending;
    if (this.#last !== undefined) return this.#last;
    throw this.#failure?.error;
  }

  /**
   * Returns what get() would return without waiting, with the same effects; undefined where get() would wait. Returns
   * the same object until a newer entry is loaded.
   */
  peek(): CacheEntry<T> | undefined {
    const { freshMs, staleMs } = this.#options;
    const ageMs = this.#ageMs();
    if (ageMs !== undefined && ageMs < freshMs) return this.#last;
    this.#startRefresh();
    // After a failure no caller waits again as long as there is an older entry.
    return ageMs !== undefined && (this.#failure !== undefined || ageMs < staleMs) ? this.#last : undefined;
  }

  /** Returns the last entry whatever its age, and starts no load. */
  peekStale(): CacheEntry<T> | undefined {
    return this.#last;
  }

  health(): SourceHealth {
    const state = this.#failure !== undefined ? "failing" : this.#last === undefined ? "unknown" : "ok";
    return { state, ageMs: this.#ageMs(), failure: describeUpstreamFailure(this.#failure?.error) };
  }

  /** Aborts a pending load. */
  close(): void {
    this.#closing.abort();
  }

  #ageMs(): number | undefined {
    return this.#last && this.#options.now() - this.#last.readAt;
  }

  /** Starts a load unless one has failed just now, or joins the one in progress. */
  #startRefresh(): void {
    const { now, errorTtlMs } = this.#options;
    const isErrorCached = this.#failure !== undefined && now() - this.#failure.failedAt < errorTtlMs;
    if (!isErrorCached) this.#pending ??= this.#refresh();
  }

  async #refresh(): Promise<void> {
    const { load, share, now, onError } = this.#options;
    try {
      const loadHere = () => load(this.#closing.signal);
      this.#last = share ? await share(loadHere) : { value: await loadHere(), readAt: now() };
      this.#failure = undefined;
    } catch (error) {
      this.#failure = { error, failedAt: now() };
      onError(error);
    } finally {
      this.#pending = undefined;
    }
  }
}
