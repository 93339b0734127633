import type { ChainClient } from "../../chain/chain-client.js";
import type { Chain } from "../../hop/networks.js";
import { withTimeoutOrFallback } from "../../resilience/abort-scope.js";
import type { Clocks } from "../../resilience/clock.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import { BatchLoader, loadJointly } from "./batch-loader.js";
import { type ChainState, type ChainStateReadInterceptor, captureReadTimestamps } from "./chain-state.js";
import {
  type ChainStateEntry,
  computeRefreshDelayMs,
  computeStaleWaitMs,
  findFreshState,
  findStaleState,
  IDLE_MS,
  isEvictable,
  isRecentlyRequested,
  MIN_REFRESH_MS,
  type RefreshPolicy,
  storeIfNewer,
  toStalledPolicy,
} from "./chain-state-entry.js";
import { readChainState } from "./read-chain-state.js";
import { mergeReadSets, type ReadSet } from "./read-set.js";
import { type ChainStateSharingOptions, SharedChainState } from "./shared-chain-state.js";

/** Chain state of one read set, refreshed as long as it is requested. */
export class ChainStateSubscription implements ChainStateEntry {
  state: ChainState | undefined;
  /** The read that is in progress or about to start. */
  pendingRead: { readonly result: Promise<ChainState>; readonly startedAt: number } | undefined;
  failedAt = Number.NEGATIVE_INFINITY;
  requestedAt = Number.NEGATIVE_INFINITY;

  readonly readSet: ReadSet;
  readonly parts: readonly ReadSet[];
  readonly refreshPolicy: RefreshPolicy;
  readonly routeNames: readonly string[];

  /**
   * @param cache that of its chain
   * @param inputs `routeNames`: by which other processes know what to read; `parts`: default is the read set as a whole
   */
  constructor(
    readonly cache: ChainStateCache,
    {
      readSet,
      parts = [readSet],
      refreshPolicy,
      routeNames,
    }: Pick<ChainStateSubscription, "readSet" | "refreshPolicy" | "routeNames"> & {
      readonly parts?: readonly ReadSet[];
    },
  ) {
    this.readSet = readSet;
    this.parts = parts;
    this.refreshPolicy = refreshPolicy;
    this.routeNames = routeNames;
  }

  /**
   * Returns state that is fresh enough; synchronously if it is cached.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond and the last state is too old.
   */
  get(): MaybePromise<ChainState> {
    return this.cache.getState(this);
  }

  /** Reads the state again, or joins the read that is in progress. @throws like get */
  reload(): Promise<ChainState> {
    return this.cache.read(this);
  }

  /** Returns whether it was requested recently, so that it is refreshed in the background. */
  isActive(): boolean {
    return isRecentlyRequested(this, this.cache.now());
  }

  /** @throws ServiceError UPSTREAM_UNAVAILABLE for state of several subscriptions in which a value of this one is missing */
  assertCoveredBy(state: ChainState): void {
    state.assertCovers(this.readSet);
  }
}

/** Reads what each of its members reads, under the strictest of their policies. */
class JointSubscription extends ChainStateSubscription {
  /** @param lastUsed its members, and when a batch used each of them last */
  constructor(
    cache: ChainStateCache,
    readonly lastUsed: Map<ChainStateSubscription, number>,
    readonly createdAt: number,
  ) {
    const members = [...lastUsed.keys()];
    const parts = members.map(({ readSet }) => readSet);
    const findLeast = (name: keyof RefreshPolicy) =>
      Math.min(...members.map(({ refreshPolicy }) => refreshPolicy[name]));
    super(cache, {
      readSet: mergeReadSets(parts),
      parts,
      refreshPolicy: {
        refreshMs: findLeast("refreshMs"),
        maxAgeMs: findLeast("maxAgeMs"),
        maxStaleMs: findLeast("maxStaleMs"),
      },
      routeNames: members.flatMap((member) => member.routeNames),
    });
  }

  includes(subscriptions: readonly ChainStateSubscription[]): boolean {
    return subscriptions.every((subscription) => this.lastUsed.has(subscription));
  }
}

/** Stale-while-revalidate cache of what quotes read on one chain; refreshed while in use. */
export class ChainStateCache {
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
  readonly #isStalled: () => boolean;
  readonly #subscriptions = new Map<string, ChainStateSubscription>();
  /** Those that the background refresh looks after. */
  readonly #refreshed = new Set<ChainStateSubscription>();
  #joint: JointSubscription | undefined;
  /** What it replaced, for use until it has been read. */
  #previousJoint: JointSubscription | undefined;
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
    this.now = clocks.monotonicNow;
    this.#isStalled = isStalled;
    const read = (readSets: readonly ReadSet[]): Promise<ChainState> =>
      readChainState(client, chain, readSets, { ...captureReadTimestamps(clocks), signal: this.#shutdown.signal });
    this.#loader = new BatchLoader(
      onRead ? (readSets) => onRead({ chain: chain.slug, readSetCount: readSets.length }, () => read(readSets)) : read,
      this.now,
    );
    this.#shared =
      sharing &&
      new SharedChainState(sharing, {
        slug: client.slug,
        clocks,
        listRouteNames: () => this.#listRouteNames(),
        read: (readSets) => loadJointly(this.#loader, readSets),
        store: (state) => this.#storeInSubscriptions(state),
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
    const subscription = new ChainStateSubscription(this, { readSet, refreshPolicy, routeNames });
    this.#subscriptions.set(key, subscription);
    return subscription;
  }

  /**
   * Returns state of one block for several subscriptions of this cache. What could not be read of one of them is missing.
   * @throws like the `get` of a subscription
   */
  getTogether(subscriptions: readonly ChainStateSubscription[]): MaybePromise<ChainState> {
    return this.#join(subscriptions).get();
  }

  /** Reads the same again, or joins the read that is in progress. @throws like getTogether */
  reloadTogether(subscriptions: readonly ChainStateSubscription[]): Promise<ChainState> {
    return this.#join(subscriptions).reload();
  }

  /** Ends the background refresh, and reads in progress. */
  close(): void {
    this.#shutdown.abort();
    clearTimeout(this.#refreshTimer);
  }

  /** Returns the state of a subscription. @throws like its `get` */
  getState(subscription: ChainStateSubscription): MaybePromise<ChainState> {
    const now = this.now();
    subscription.requestedAt = now;
    const policy = this.#getPolicy(subscription);
    const freshState = findFreshState(subscription, now, policy);
    if (freshState !== undefined) {
      if (this.#refreshTimer === undefined) this.#refreshWithin(policy.refreshMs);
      return freshState;
    }
    this.#refreshed.add(subscription);
    this.#refreshWithin(policy.refreshMs);
    const readStartedAt = subscription.pendingRead?.startedAt ?? now;
    const refreshedState = this.read(subscription);
    const staleState = findStaleState(subscription, now);
    if (staleState === undefined) return refreshedState;
    const waitMs = computeStaleWaitMs(subscription, staleState, readStartedAt, now);
    if (waitMs > 0) return withTimeoutOrFallback(refreshedState, waitMs, staleState);
    refreshedState.catch(() => {});
    return staleState;
  }

  /** Reads the state of a subscription, or joins the read that is in progress. @param isAwaited whether a request waits */
  read(subscription: ChainStateSubscription, isAwaited = true): Promise<ChainState> {
    subscription.pendingRead ??= { result: this.#load(subscription, isAwaited), startedAt: this.now() };
    return subscription.pendingRead.result;
  }

  async #load(subscription: ChainStateSubscription, isAwaited: boolean): Promise<ChainState> {
    const { parts, readSet } = subscription;
    try {
      const state = await (this.#shared?.obtain(subscription, isAwaited) ?? loadJointly(this.#loader, parts));
      // An incomplete state must not replace an older complete one. Who uses a joint one asserts it for each part.
      if (parts.length === 1) state.assertCovers(readSet);
      storeIfNewer(subscription, state, this.now());
      return state;
    } catch (error) {
      subscription.failedAt = this.now();
      throw error;
    } finally {
      subscription.pendingRead = undefined;
    }
  }

  #getPolicy({ refreshPolicy }: ChainStateSubscription): RefreshPolicy {
    return this.#isStalled() ? toStalledPolicy(refreshPolicy) : refreshPolicy;
  }

  /**
   * Returns the subscription from which a batch of quotes gets everything that it reads on the chain, in one block. All
   * batches have one, so that the number of its reads does not depend on the combinations that callers ask for. It grows
   * with what batches use, and loses what none uses any more.
   */
  #join(subscriptions: readonly ChainStateSubscription[]): ChainStateSubscription {
    const [only] = subscriptions;
    if (only !== undefined && subscriptions.length === 1) return only;
    const now = this.now();
    const [current, previous] = [this.#joint, this.#previousJoint];
    if (current?.includes(subscriptions) !== true || now - current.createdAt > IDLE_MS)
      return this.#replaceJoint(subscriptions, now);
    for (const subscription of subscriptions) current.lastUsed.set(subscription, now);
    // A batch of other routes does not make this one wait for its first read, or fail with it.
    const canUsePrevious =
      current.state === undefined &&
      previous?.includes(subscriptions) === true &&
      findStaleState(previous, now) !== undefined;
    return canUsePrevious ? previous : current;
  }

  #replaceJoint(subscriptions: readonly ChainStateSubscription[], now: number): JointSubscription {
    const replaced = this.#joint;
    const lastUsed = new Map([...(replaced?.lastUsed ?? [])].filter(([, usedAt]) => now - usedAt <= IDLE_MS));
    for (const subscription of subscriptions) lastUsed.set(subscription, now);
    const joint = new JointSubscription(this, lastUsed, now);
    const [first, ...others] = lastUsed.keys();
    if (replaced?.includes([...lastUsed.keys()])) joint.state = replaced.state;
    // One read may have got it for all.
    else if (others.every(({ state }) => state === first?.state)) joint.state = first?.state;
    [this.#joint, this.#previousJoint] = [joint, replaced];
    this.#refreshed.add(joint);
    return joint;
  }

  *#listRouteNames(): Iterable<string> {
    for (const subscription of this.#refreshed) if (subscription.isActive()) yield* subscription.routeNames;
  }

  #storeInSubscriptions(state: ChainState): void {
    const now = this.now();
    for (const subscription of this.#refreshed) {
      if (!state.covers(subscription.readSet)) continue;
      storeIfNewer(subscription, state, now);
      // So that the first read of this process is as complete as those of the other.
      for (const read of subscription.readSet.contractReads.values()) {
        const value = state.find(read);
        if (value !== undefined) read.follow?.(value);
      }
    }
  }

  /** Makes sure that subscriptions are refreshed within this time; never postpones a refresh that is due earlier. */
  #refreshWithin(delayMs: number): void {
    const dueAt = this.now() + delayMs;
    if (this.#refreshTimer !== undefined && this.#refreshDueAt <= dueAt) return;
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = setTimeout(() => this.#refreshActive(), delayMs).unref();
    this.#refreshDueAt = dueAt;
  }

  /** Refreshes all active subscriptions that are due, in one request, and schedules the next run. */
  #refreshActive(): void {
    this.#refreshTimer = undefined;
    if (this.#shutdown.signal.aborted) return;
    const now = this.now();
    let nextDelayMs = Number.POSITIVE_INFINITY;
    for (const subscription of this.#refreshed) {
      if (!isRecentlyRequested(subscription, now)) {
        // Read sets change with the settings, so unused ones would accumulate.
        if (isEvictable(subscription, now)) this.#evict(subscription);
        continue;
      }
      const policy = this.#getPolicy(subscription);
      const delayMs = computeRefreshDelayMs(subscription, policy, now);
      const isDue = delayMs <= 0;
      if (isDue) this.read(subscription, false).catch(() => {});
      nextDelayMs = Math.min(nextDelayMs, isDue ? policy.refreshMs : delayMs);
    }
    if (nextDelayMs !== Number.POSITIVE_INFINITY) this.#refreshWithin(Math.max(nextDelayMs, MIN_REFRESH_MS));
  }

  #evict(subscription: ChainStateSubscription): void {
    subscription.state = undefined;
    this.#refreshed.delete(subscription);
    for (const [key, kept] of this.#subscriptions) if (kept === subscription) this.#subscriptions.delete(key);
  }
}
