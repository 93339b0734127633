import type { ChainClient } from "../../chain/chain-client.js";
import type { Chain } from "../../hop/networks.js";
import { withTimeout } from "../../resilience/abort-scope.js";
import type { Clocks } from "../../resilience/clock.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { BatchLoader, loadJointly } from "./batch-loader.js";
import {
  type ChainState,
  type ChainStateReadInterceptor,
  captureReadTimestamps,
  coversReadSet,
} from "./chain-state.js";
import {
  asStalledEntry,
  type ChainStateEntry,
  computeRefreshDelayMs,
  computeStaleWaitMs,
  createChainStateEntry,
  findFreshState,
  findStaleState,
  isEvictable,
  isRecentlyRequested,
  JointEntries,
  MIN_REFRESH_MS,
  type RefreshPolicy,
  storeIfNewer,
} from "./chain-state-entry.js";
import { readChainState } from "./read-chain-state.js";
import type { ReadSet } from "./read-set.js";
import { type ChainStateSharingOptions, SharedChainState } from "./shared-chain-state.js";

/** Chain state of one read set, refreshed as long as it is requested. */
export class ChainStateSubscription {
  /** The cache of its chain. */
  readonly cache: ChainStateCache;
  readonly entry: ChainStateEntry;

  constructor(cache: ChainStateCache, entry: ChainStateEntry) {
    this.cache = cache;
    this.entry = entry;
  }

  /**
   * Returns state that is fresh enough; synchronously if it is cached.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond and the last state is too old.
   */
  get(): MaybePromise<ChainState> {
    return this.cache.getState(this.entry);
  }

  /** Reads the state again, or joins the read that is in progress. @throws like get */
  reload(): Promise<ChainState> {
    return this.cache.readEntry(this.entry);
  }

  /** Returns whether it was requested recently, so that it is refreshed in the background. */
  isActive(): boolean {
    return this.cache.isActive(this.entry);
  }

  /** @throws ServiceError UPSTREAM_UNAVAILABLE for state of several subscriptions in which a value of this one is missing */
  assertCoveredBy(state: ChainState): void {
    state.assertCovers(this.entry.readSet);
  }
}

/** Stale-while-revalidate cache of what quotes read on one chain; refreshed while in use. */
export class ChainStateCache {
  readonly #now: () => number;
  readonly #isStalled: () => boolean;
  readonly #subscriptions = new Map<string, ChainStateSubscription>();
  /** Entries that the background refresh looks after. */
  readonly #refreshedEntries = new Set<ChainStateEntry>();
  readonly #jointEntries = new JointEntries();
  readonly #shutdown = new AbortController();
  readonly #loader: BatchLoader<ReadSet, ChainState>;
  readonly #shared: SharedChainState | undefined;
  #refreshTimer: NodeJS.Timeout | undefined;
  #refreshDueAt = Number.POSITIVE_INFINITY;

  constructor({
    chain,
    client,
    clocks,
    onRead,
    isStalled = () => false,
    sharing,
  }: {
    readonly chain: Chain;
    readonly client: ChainClient;
    readonly clocks: Clocks;
    readonly onRead?: ChainStateReadInterceptor | undefined;
    /** Returns whether the chain is stalled. Default: never. */
    readonly isStalled?: (() => boolean) | undefined;
    /** Other processes with which the state is shared; undefined: there are none. */
    readonly sharing?: ChainStateSharingOptions | undefined;
  }) {
    this.#now = clocks.monotonicNow;
    this.#isStalled = isStalled;
    const read = (readSets: readonly ReadSet[]): Promise<ChainState> =>
      readChainState(client, chain, readSets, { ...captureReadTimestamps(clocks), signal: this.#shutdown.signal });
    this.#loader = new BatchLoader(
      onRead ? (readSets) => onRead({ chain: chain.slug, readSetCount: readSets.length }, () => read(readSets)) : read,
      this.#now,
    );
    this.#shared =
      sharing &&
      new SharedChainState(sharing, {
        slug: client.slug,
        clocks,
        listRouteNames: () => this.#listRouteNames(),
        read: (readSets) => loadJointly(this.#loader, readSets),
        store: (state) => this.#storeInEntries(state),
      });
  }

  /**
   * Returns the same subscription for the same key, which must identify read set and policy.
   * @param routeNames names by which other processes find a route with this read set
   */
  subscribe(
    key: string,
    readSet: ReadSet,
    refreshPolicy: RefreshPolicy,
    routeNames: readonly string[] = [],
  ): ChainStateSubscription {
    const cached = this.#subscriptions.get(key);
    if (cached !== undefined) return cached;
    const subscription = new ChainStateSubscription(
      this,
      createChainStateEntry(key, readSet, refreshPolicy, { routeNames }),
    );
    this.#subscriptions.set(key, subscription);
    return subscription;
  }

  /**
   * Returns state of one block for several subscriptions of this cache. What could not be read of one of them is missing.
   * @throws like the `get` of a subscription
   */
  getTogether(subscriptions: readonly ChainStateSubscription[]): MaybePromise<ChainState> {
    return this.getState(this.#findJointEntry(subscriptions));
  }

  /** Reads the same again, or joins the read that is in progress. @throws like getTogether */
  reloadTogether(subscriptions: readonly ChainStateSubscription[]): Promise<ChainState> {
    return this.readEntry(this.#findJointEntry(subscriptions));
  }

  /** Returns whether a subscription's entry was requested recently. */
  isActive(entry: ChainStateEntry): boolean {
    return isRecentlyRequested(entry, this.#now());
  }

  /** Ends the background refresh, and reads in progress. */
  close(): void {
    this.#shutdown.abort();
    clearTimeout(this.#refreshTimer);
  }

  /** Returns the state of an entry. @throws like the `get` of a subscription */
  getState(entry: ChainStateEntry): MaybePromise<ChainState> {
    const now = this.#now();
    entry.requestedAt = now;
    const current = this.#isStalled() ? asStalledEntry(entry) : entry;
    const { refreshMs } = current.refreshPolicy;
    const freshState = findFreshState(current, now);
    if (freshState !== undefined) {
      if (this.#refreshTimer === undefined) this.#refreshWithin(refreshMs);
      return freshState;
    }
    this.#refreshedEntries.add(entry);
    this.#refreshWithin(refreshMs);
    const readStartedAt = entry.pendingRead?.startedAt ?? now;
    const refreshedState = this.readEntry(entry);
    const staleState = findStaleState(entry, now);
    if (staleState === undefined) return refreshedState;
    const waitMs = computeStaleWaitMs(entry, staleState, readStartedAt, now);
    if (waitMs > 0) return withTimeout(refreshedState, waitMs, staleState);
    refreshedState.catch(() => {});
    return staleState;
  }

  /** Reads an entry, or joins the read that is in progress. @param isAwaited whether a request waits */
  readEntry(entry: ChainStateEntry, isAwaited = true): Promise<ChainState> {
    entry.pendingRead ??= { result: this.#loadEntry(entry, isAwaited), startedAt: this.#now() };
    return entry.pendingRead.result;
  }

  async #loadEntry(entry: ChainStateEntry, isAwaited: boolean): Promise<ChainState> {
    try {
      const state = await (this.#shared?.obtain(entry, isAwaited) ?? loadJointly(this.#loader, entry.parts));
      // An incomplete state must not replace an older complete one. Who uses a joint entry asserts it for each part.
      if (entry.parts.length === 1) state.assertCovers(entry.readSet);
      storeIfNewer(entry, state, this.#now());
      return state;
    } catch (error) {
      entry.failedAt = this.#now();
      throw error;
    } finally {
      entry.pendingRead = undefined;
    }
  }

  /** Returns the entry whose state several subscriptions use together. */
  #findJointEntry(subscriptions: readonly ChainStateSubscription[]): ChainStateEntry {
    const entries = subscriptions.map(({ entry }) => entry);
    const [only] = entries;
    if (only !== undefined && entries.length === 1) return only;
    const entry = this.#jointEntries.include(entries, this.#now());
    this.#refreshedEntries.add(entry);
    return entry;
  }

  *#listRouteNames(): Iterable<string> {
    const now = this.#now();
    for (const entry of this.#refreshedEntries) if (isRecentlyRequested(entry, now)) yield* entry.routeNames;
  }

  #storeInEntries(state: ChainState): void {
    const now = this.#now();
    for (const entry of this.#refreshedEntries) {
      if (!coversReadSet(state.values, entry.readSet)) continue;
      storeIfNewer(entry, state, now);
      // So that the first read of this process is as complete as those of the other.
      for (const [key, pool] of state.values.swapPools)
        if (pool !== undefined) entry.readSet.tickWindows.get(key)?.follow(pool);
    }
  }

  /** Makes sure that entries are refreshed within this time; never postpones a refresh that is due earlier. */
  #refreshWithin(delayMs: number): void {
    const dueAt = this.#now() + delayMs;
    if (this.#refreshTimer !== undefined && this.#refreshDueAt <= dueAt) return;
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = setTimeout(() => this.#refreshEntries(), delayMs).unref();
    this.#refreshDueAt = dueAt;
  }

  /** Refreshes all active entries that are due, in one request, and schedules the next run. */
  #refreshEntries(): void {
    this.#refreshTimer = undefined;
    if (this.#shutdown.signal.aborted) return;
    const now = this.#now();
    let nextDelayMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#refreshedEntries) {
      if (!isRecentlyRequested(entry, now)) {
        // Read sets change with the settings, so unused entries would accumulate.
        if (isEvictable(entry, now)) this.#evict(entry);
        continue;
      }
      const current = this.#isStalled() ? asStalledEntry(entry) : entry;
      const delayMs = computeRefreshDelayMs(current, now);
      const isDue = delayMs <= 0;
      if (isDue) this.readEntry(entry, false).catch(() => {});
      nextDelayMs = Math.min(nextDelayMs, isDue ? current.refreshPolicy.refreshMs : delayMs);
    }
    if (nextDelayMs !== Number.POSITIVE_INFINITY) this.#refreshWithin(Math.max(nextDelayMs, MIN_REFRESH_MS));
  }

  #evict(entry: ChainStateEntry): void {
    entry.state = undefined;
    this.#refreshedEntries.delete(entry);
    if (this.#subscriptions.get(entry.key)?.entry === entry) this.#subscriptions.delete(entry.key);
  }
}
