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
  /** The caches of other processes. Default: there are none. */
  readonly peers?: CachePeers<T> | undefined;
}

/** Caches of the same value in other processes. */
export interface CachePeers<T> {
  /**
   * Returns an entry that another process has loaded since this time, on the monotonic clock, or loads now. Resolves to
   * undefined if it has to be loaded here; never rejects.
   */
  request(newerThan: number | undefined): Promise<CacheEntry<T> | undefined>;
  /** Hands on an entry that was loaded here. */
  publish(entry: CacheEntry<T>): void;
}

/** Caches one remote document. Loads it on demand, when the entry is no longer fresh. */
export interface StaleWhileRevalidateCache<T> {
  /**
   * Returns the last entry, loaded again when it is no longer fresh. Concurrent callers share one load. A failed load
   * keeps the older entry; the caller decides by its age whether to use it.
   * @throws the load's error when no load has ever succeeded
   */
  get(): Promise<CacheEntry<T>>;
  /**
   * Returns what get() would return without waiting, with the same effects; undefined where get() would wait. Returns
   * the same object until a newer entry is loaded.
   */
  peek(): CacheEntry<T> | undefined;
  /** Returns the last entry whatever its age, and starts no load. */
  peekStale(): CacheEntry<T> | undefined;
  /** Stores an entry that another process has loaded, if it is newer. */
  offer(entry: CacheEntry<T>): void;
  /**
   * Returns an entry for another process that has one of this time: a fresh and newer one, loaded if necessary. undefined
   * where loading fails.
   */
  findNewer(newerThan: number | undefined): Promise<CacheEntry<T> | undefined>;
  health(): SourceHealth;
  /** Aborts a pending load. */
  close(): void;
}

/** Health of a source by the last load. unknown: nothing has been loaded yet. */
export interface SourceHealth {
  readonly state: "ok" | "failing" | "unknown";
  /** Age of the last entry in milliseconds; undefined: no entry yet. */
  readonly ageMs: number | undefined;
}

export function createStaleWhileRevalidateCache<T>(
  options: StaleWhileRevalidateOptions<T>,
): StaleWhileRevalidateCache<T> {
  const closing = new AbortController();
  let last: CacheEntry<T> | undefined;
  let failure: { readonly error: unknown; readonly failedAt: number } | undefined;
  let pending: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    try {
      const before = last;
      const peerEntry = options.peers && (await options.peers.request(before?.readAt));
      // An entry that is old already would keep this process from loading a newer one.
      if (peerEntry !== undefined && options.now() - peerEntry.readAt < options.freshMs) offer(peerEntry);
      // Without a reply, an entry may have been offered meanwhile.
      else if (last === before) storeLoaded(await options.load(closing.signal));
    } catch (error) {
      failure = { error, failedAt: options.now() };
      options.onError(error);
    } finally {
      pending = undefined;
    }
  }

  function storeLoaded(value: T): void {
    last = { value, readAt: options.now() };
    failure = undefined;
    options.peers?.publish(last);
  }

  function offer(entry: CacheEntry<T>): void {
    // A time in the future, from a clock that differs, would keep newer values out.
    const readAt = Math.min(entry.readAt, options.now());
    if (last !== undefined && readAt <= last.readAt) return;
    last = { value: entry.value, readAt };
    failure = undefined;
  }

  async function findNewer(newerThan = Number.NEGATIVE_INFINITY): Promise<CacheEntry<T> | undefined> {
    const isUsable = (): boolean =>
      last !== undefined && last.readAt > newerThan && options.now() - last.readAt < options.freshMs;
    if (!isUsable()) await startRefresh();
    return isUsable() ? last : undefined;
  }

  /** Starts a load unless one has failed just now, or joins the one in progress. */
  function startRefresh(): Promise<void> | undefined {
    const isErrorCached = failure !== undefined && options.now() - failure.failedAt < options.errorTtlMs;
    if (!isErrorCached) pending ??= refresh();
    return pending;
  }

  function peek(): CacheEntry<T> | undefined {
    const now = options.now();
    if (last !== undefined && now - last.readAt < options.freshMs) return last;
    startRefresh();
    // After a failure no caller waits again as long as there is an older entry.
    return last !== undefined && (failure !== undefined || now - last.readAt < options.staleMs) ? last : undefined;
  }

  return {
    async get() {
      const cached = peek();
      if (cached !== undefined) return cached;
      await pending;
      if (last !== undefined) return last;
      throw failure?.error;
    },
    peek,
    peekStale: () => last,
    offer,
    findNewer,
    health() {
      const state = failure !== undefined ? "failing" : last === undefined ? "unknown" : "ok";
      return { state, ageMs: last && options.now() - last.readAt };
    },
    close() {
      closing.abort();
    },
  };
}
