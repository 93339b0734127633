/** A text that a process has set, with the time since it was read. */
export interface SharedText {
  readonly text: string;
  readonly ageMs: number;
}

export interface SetOptions {
  /** Age at which the text expires, in milliseconds. */
  readonly ttlMs: number;
  /** Present age of the text, in milliseconds. */
  readonly ageMs: number;
  /** A text does not replace one of a higher rank. */
  readonly rank: number;
}

/** Where processes keep what they share. No call rejects; each resolves to undefined without a reply in time. */
export interface SharedStore {
  /** Returns the text of a key; null: there is none. */
  get(key: string, timeoutMs: number): Promise<SharedText | null | undefined>;
  set(key: string, text: string, options: SetOptions): Promise<unknown>;
  /** Takes the lock of a key for a time. Returns false where another one holds it. */
  lock(
    key: string,
    owner: string,
    options: { readonly expiryMs: number; readonly timeoutMs: number },
  ): Promise<boolean | undefined>;
  /** Releases the lock of a key if this owner holds it. */
  unlock(key: string, owner: string): Promise<unknown>;
  /** Adds names to the set of a key, each for a time. */
  demand(key: string, names: readonly string[], expiryMs: number): Promise<unknown>;
  /** Returns the names in the set of a key. */
  listDemand(key: string, timeoutMs: number): Promise<readonly string[] | undefined>;
}

/** What a process has loaded for all. */
export interface Loaded<T> extends SetOptions {
  readonly value: T;
  readonly text: string;
}

/** Longest wait of a request for the store, in milliseconds. */
export const REQUEST_TIMEOUT_MS = 5;
/** Longest wait where no request waits. */
export const BACKGROUND_TIMEOUT_MS = 100;
/** How often, and for how long, a process asks for what another one is loading. */
const POLL_INTERVAL_MS = 50;
const MAX_WAIT_MS = 1_000;
/** A load that takes longer no longer keeps others from loading. */
export const LOCK_EXPIRY_MS = 5_000;
/** How long a demand holds. */
const DEMAND_EXPIRY_MS = 60_000;

/**
 * What processes of one service share: the holder of a key's lock loads for all. Without the store, or where it is slow,
 * each process loads for itself.
 */
export class SharedCache {
  readonly #store: SharedStore;
  /** Random. */
  readonly #owner: string;
  /** Monotonic clock, in milliseconds. */
  readonly #now: () => number;
  #loads = 0;

  constructor(store: SharedStore, owner: string, now: () => number) {
    this.#store = store;
    this.#owner = owner;
    this.#now = now;
  }

  /** Returns what a process has set; undefined: nothing, or the store does not reply within 5 ms. */
  async get(key: string): Promise<SharedText | undefined> {
    return (await this.#store.get(key, REQUEST_TIMEOUT_MS)) ?? undefined;
  }

  /** Sets a text. Nobody learns whether it is kept: a store that is full drops it. */
  set(key: string, text: string, options: SetOptions): void {
    void this.#store.set(key, text, options);
  }

  /** Asks whoever loads the key to include these names for the next minute. */
  demand(key: string, names: readonly string[]): void {
    void this.#store.demand(key, names, DEMAND_EXPIRY_MS);
  }

  /** Returns the names that any process has demanded in the last minute. */
  async listDemand(key: string, timeoutMs: number): Promise<readonly string[]> {
    return (await this.#store.listDemand(key, timeoutMs)) ?? [];
  }

  /**
   * Returns what another process has set, or loads it for all. While another process loads, waits for it for a second.
   * @param accept returns undefined for a text that is of no use; may throw for one that it cannot parse
   * @param load is told how much of the wait for the store is left, in milliseconds
   * @param timeoutMs longest wait for the store: at most REQUEST_TIMEOUT_MS where a request waits
   * @throws the error of the load
   */
  async obtain<T>(
    key: string,
    accept: (shared: SharedText) => T | undefined,
    load: (leftMs: number) => Promise<Loaded<T>>,
    timeoutMs = REQUEST_TIMEOUT_MS,
  ): Promise<T> {
    this.#loads += 1;
    const owner = `${this.#owner} ${this.#loads}`;
    const startedAt = this.#now();
    for (;;) {
      const askedAt = this.#now();
      const countLeftMs = (): number => Math.max(1, askedAt + timeoutMs - this.#now());
      const loadAndSet = (): Promise<T> => this.#loadAndSet(key, () => load(countLeftMs()));
      const found = await this.#store.get(key, timeoutMs);
      const accepted = found ? tryAccept(found, accept) : undefined;
      if (accepted !== undefined) return accepted;
      const isLocked =
        found !== undefined &&
        (await this.#store.lock(key, owner, { expiryMs: LOCK_EXPIRY_MS, timeoutMs: countLeftMs() }));
      if (isLocked) {
        try {
          // The holder before may have set it between the two commands.
          const newest = await this.#store.get(key, countLeftMs());
          return (newest && tryAccept(newest, accept)) ?? (await loadAndSet());
        } finally {
          void this.#store.unlock(key, owner);
        }
      }
      const isStoreReachable = found !== undefined && isLocked !== undefined;
      if (!isStoreReachable || this.#now() - startedAt >= MAX_WAIT_MS) return loadAndSet();
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
    }
  }

  async #loadAndSet<T>(key: string, load: () => Promise<Loaded<T>>): Promise<T> {
    const { value, text, ...options } = await load();
    this.set(key, text, options);
    return value;
  }
}

/** A text that cannot be parsed counts as not there. */
function tryAccept<T>(shared: SharedText, accept: (shared: SharedText) => T | undefined): T | undefined {
  try {
    return accept(shared);
  } catch {
    return undefined;
  }
}

/**
 * Prints a value for other processes as JSON, with integers of any size and maps. What is undefined is left out; in a map, it
 * stays.
 */
export function printShared(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return { $bigint: String(part) };
    return part instanceof Map ? { $map: [...part] } : part;
  });
}

/** Reads what `printShared` of this version has printed: the names of the keys contain the version. */
export function parseShared(text: string): unknown {
  return JSON.parse(text, (_, part: { readonly $bigint?: string; readonly $map?: [unknown, unknown][] } | null) => {
    if (part?.$bigint !== undefined) return BigInt(part.$bigint);
    return part?.$map === undefined ? part : new Map(part.$map.map(([key, value]) => [key, value ?? undefined]));
  });
}

/**
 * Creates a function that loads a document once for all processes, and says when it was read.
 * @param ttlMs age up to which the document of another process is taken
 * @param now monotonic clock, in milliseconds
 */
export function shareDocument<T>(
  cache: SharedCache,
  key: string,
  { ttlMs, now }: { readonly ttlMs: number; readonly now: () => number },
): (load: () => Promise<T>) => Promise<{ readonly value: T; readonly readAt: number }> {
  return (load) =>
    cache.obtain(
      key,
      ({ text, ageMs }) => ({ value: (parseShared(text) as { value: T }).value, readAt: now() - ageMs }),
      async () => {
        const value = await load();
        const readAt = now();
        return { value: { value, readAt }, text: printShared({ value }), ttlMs, ageMs: 0, rank: 0 };
      },
    );
}
