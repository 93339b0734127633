import type { ChainClient } from "../../chain/chain-client.js";
import type { Chain } from "../../hop/networks.js";
import type { Clocks } from "../../resilience/clock.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { withTimeout } from "../../resilience/with-timeout.js";
import {
  assertStateCovers,
  type ChainState,
  type ChainStateReadInterceptor,
  captureReadTimestamps,
  coversReadSet,
  createChainState,
} from "./chain-state.js";
import {
  asStalledEntry,
  type ChainStateEntry,
  computeRefreshDelayMs,
  computeRequestDelayMs,
  computeStaleWaitMs,
  createChainStateEntry,
  findFreshState,
  findStaleState,
  isEvictable,
  isRecentlyRequested,
  MIN_REFRESH_MS,
  type RefreshPolicy,
  storeIfNewer,
} from "./chain-state-entry.js";
import type { ReadSet } from "./read-set.js";
import { createBatchLoader, loadJointly } from "./reading/batch-loader.js";
import { createJointEntries } from "./reading/joint-entry.js";
import { readChainStateValues } from "./reading/read-chain-state.js";
import { createRefreshScheduler } from "./refresh-scheduler.js";
import type { ChainStateDemand } from "./sharing/chain-state-demand.js";
import {
  type ChainStateSharingOptions,
  createChainStateSharing,
  type ReceivedState,
} from "./sharing/chain-state-sharing.js";

/** Chain state of one read set, refreshed as long as it is requested. */
export interface ChainStateSubscription {
  /**
   * Returns state that is fresh enough; synchronously if it is cached.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond and the last state is too old.
   */
  get(): MaybePromise<ChainState>;
  /** Reads the state again, or joins the read that is in progress. @throws like get */
  reload(): Promise<ChainState>;
  /** Returns whether it was requested recently, so that it is refreshed in the background. */
  isActive(): boolean;
  /** @throws ServiceError UPSTREAM_UNAVAILABLE for state of several subscriptions in which a value of this one is missing */
  assertCoveredBy(state: ChainState): void;
  /** The cache of its chain. */
  readonly cache: ChainStateCache;
}

/** Stale-while-revalidate cache of what quotes read on one chain; refreshed while in use. */
export interface ChainStateCache {
  /** Returns the same subscription for the same key, which must identify read set and policy. */
  subscribe(key: string, readSet: ReadSet, refreshPolicy: RefreshPolicy): ChainStateSubscription;
  /**
   * Returns state of one block for several subscriptions of this cache. What could not be read of one of them is missing.
   * @throws like the `get` of a subscription
   */
  getTogether(subscriptions: readonly ChainStateSubscription[]): MaybePromise<ChainState>;
  /** Reads the same again, or joins the read that is in progress. @throws like getTogether */
  reloadTogether(subscriptions: readonly ChainStateSubscription[]): Promise<ChainState>;
  close(): void;
}

export interface ChainStateCacheOptions {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly clocks: Clocks;
  readonly onRead?: ChainStateReadInterceptor | undefined;
  /** Returns whether the chain stands still. Default: never. */
  readonly isStalled?: (() => boolean) | undefined;
  /** Other processes with which the state is shared; undefined: there are none. */
  readonly sharing?: ChainStateSharingOptions | undefined;
}

interface CachedSubscription {
  readonly entry: ChainStateEntry;
  readonly subscription: ChainStateSubscription;
}

export function createChainStateCache(options: ChainStateCacheOptions): ChainStateCache {
  const { chain, client, clocks, onRead, isStalled = () => false } = options;
  const { monotonicNow } = clocks;
  const subscriptions = new Map<string, CachedSubscription>();
  /** Entries that the background refresh looks after. */
  const refreshedEntries = new Set<ChainStateEntry>();
  const entryOf = new WeakMap<ChainStateSubscription, ChainStateEntry>();
  const jointEntries = createJointEntries();
  const shutdown = new AbortController();
  const scheduler = createRefreshScheduler(refreshEntries, monotonicNow);
  const loader = createBatchLoader<ReadSet, ChainState>({
    loadBatch: onRead
      ? (readSets) => onRead({ chain: chain.slug, readSetCount: readSets.length }, () => readAll(readSets))
      : readAll,
    now: monotonicNow,
  });
  const sharing =
    options.sharing &&
    createChainStateSharing(options.sharing, {
      slug: client.slug,
      now: monotonicNow,
      store: storeReceived,
      read: readForPeer,
      refresh: refreshEntries,
    });

  async function readAll(readSets: readonly ReadSet[]): Promise<ChainState> {
    const timestamps = captureReadTimestamps(clocks);
    const values = await readChainStateValues(client, chain, readSets, timestamps, shutdown.signal);
    return sharing === undefined ? createChainState(values, client.slug) : sharing.publish(values);
  }

  function getState(entry: ChainStateEntry): MaybePromise<ChainState> {
    const now = monotonicNow();
    entry.requestedAt = now;
    const current = isStalled() ? asStalledEntry(entry) : entry;
    const { refreshMs } = current.refreshPolicy;
    const freshState = findFreshState(current, now);
    if (freshState !== undefined) {
      if (!scheduler.isScheduled()) scheduler.scheduleWithin(refreshMs);
      return freshState;
    }
    refreshedEntries.add(entry);
    scheduler.scheduleWithin(refreshMs);
    const readStartedAt = entry.pendingRead?.startedAt ?? now;
    const refreshedState = readEntry(entry);
    const staleState = findStaleState(entry, now);
    if (staleState === undefined) return refreshedState;
    const waitMs = computeStaleWaitMs(entry, staleState, readStartedAt, now);
    if (waitMs > 0) return withTimeout(refreshedState, waitMs, staleState);
    refreshedState.catch(() => {});
    return staleState;
  }

  /** Reads an entry, or joins the read that is in progress. */
  function readEntry(entry: ChainStateEntry): Promise<ChainState> {
    entry.pendingRead ??= { result: loadEntry(entry), startedAt: monotonicNow() };
    return entry.pendingRead.result;
  }

  async function loadEntry(entry: ChainStateEntry): Promise<ChainState> {
    try {
      const sharedState = sharing && (await sharing.request(entry));
      const state = sharedState ?? (await loadJointly(loader, entry.parts));
      // An incomplete state must not replace an older complete one. Who uses a joint entry asserts it for each part.
      if (entry.parts.length === 1) assertStateCovers(state, chain.slug, entry.readSet);
      storeIfNewer(entry, state, monotonicNow());
      return state;
    } catch (error) {
      entry.failedAt = monotonicNow();
      throw error;
    } finally {
      entry.pendingRead = undefined;
    }
  }

  /** Returns the entry whose state several subscriptions use together. */
  function findJointEntry(subscribed: readonly ChainStateSubscription[]): ChainStateEntry {
    const entries = subscribed.flatMap((subscription) => entryOf.get(subscription) ?? []);
    const [only] = entries;
    if (only !== undefined && entries.length === 1) return only;
    const entry = jointEntries.include(entries, monotonicNow());
    refreshedEntries.add(entry);
    return entry;
  }

  function storeReceived({ state, values }: ReceivedState): void {
    const now = monotonicNow();
    for (const entry of refreshedEntries) {
      if (!coversReadSet(values, entry.readSet)) continue;
      storeIfNewer(entry, state, now);
      // So that the first read of this process, if it has to, is as complete as those of the other.
      for (const [key, pool] of values.swapPools)
        if (pool !== undefined) entry.readSet.tickWindows.get(key)?.follow(pool);
    }
  }

  /** Reads on behalf of another process, whose entry stays active here as long as it is requested there. */
  async function readForPeer({ newerThan = Number.NEGATIVE_INFINITY, ...demand }: ChainStateDemand) {
    const { entry } = getCached(demand.key, demand.readSet, demand.refreshPolicy);
    entry.requestedAt = Math.max(entry.requestedAt, demand.requestedAt);
    refreshedEntries.add(entry);
    scheduler.scheduleWithin(entry.refreshPolicy.refreshMs);
    const freshState = findFreshState(entry, monotonicNow());
    if (freshState !== undefined && freshState.readAt > newerThan) return freshState;
    return readEntry(entry).catch(() => undefined);
  }

  /** Refreshes all active entries that are due, in one request, and schedules the next run. */
  function refreshEntries(): void {
    if (shutdown.signal.aborted) return;
    const computeDelayMs = sharing === undefined || sharing.isReader() ? computeRefreshDelayMs : computeRequestDelayMs;
    const now = monotonicNow();
    let nextDelayMs = Number.POSITIVE_INFINITY;
    for (const entry of refreshedEntries) {
      if (!isRecentlyRequested(entry, now)) {
        // Read sets change with the settings, so unused entries would accumulate.
        if (isEvictable(entry, now)) evict(entry);
        continue;
      }
      const current = isStalled() ? asStalledEntry(entry) : entry;
      const delayMs = computeDelayMs(current, now);
      const isDue = delayMs <= 0;
      if (isDue) readEntry(entry).catch(() => {});
      nextDelayMs = Math.min(nextDelayMs, isDue ? current.refreshPolicy.refreshMs : delayMs);
    }
    if (nextDelayMs !== Number.POSITIVE_INFINITY) scheduler.scheduleWithin(Math.max(nextDelayMs, MIN_REFRESH_MS));
  }

  function evict(entry: ChainStateEntry): void {
    entry.state = undefined;
    refreshedEntries.delete(entry);
    if (subscriptions.get(entry.key)?.entry === entry) subscriptions.delete(entry.key);
  }

  function getCached(key: string, readSet: ReadSet, refreshPolicy: RefreshPolicy): CachedSubscription {
    const cached = subscriptions.get(key);
    if (cached !== undefined) return cached;
    const entry = createChainStateEntry(key, readSet, refreshPolicy);
    const subscription: ChainStateSubscription = {
      get: () => getState(entry),
      reload: () => readEntry(entry),
      isActive: () => isRecentlyRequested(entry, monotonicNow()),
      assertCoveredBy: (state) => assertStateCovers(state, chain.slug, readSet),
      cache,
    };
    entryOf.set(subscription, entry);
    const created = { entry, subscription };
    subscriptions.set(key, created);
    return created;
  }

  const cache: ChainStateCache = {
    subscribe: (...identity) => getCached(...identity).subscription,
    getTogether: (subscribed) => getState(findJointEntry(subscribed)),
    reloadTogether: (subscribed) => readEntry(findJointEntry(subscribed)),
    close() {
      shutdown.abort();
      scheduler.cancel();
    },
  };
  return cache;
}
