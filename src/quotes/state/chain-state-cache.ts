import type { ChainClient } from "../../chain/chain-client.js";
import type { Chain } from "../../hop/networks.js";
import { withTimeout } from "../../resilience/with-timeout.js";
import { createBatchLoader } from "./batch-loader.js";
import { assertStateCovers, type ChainState, type ReadTimestamps, readChainState } from "./chain-state.js";
import type { ReadSet } from "./read-set.js";

/** How often facts are read again while somebody asks for them, and how old they may be, in milliseconds. */
export interface RefreshPolicy {
  readonly refreshMs: number;
  /** As long as the chain answers. */
  readonly maxAgeMs: number;
  /** While it does not. */
  readonly maxStaleMs: number;
}

/** Facts that routes ask for, kept fresh as long as somebody does. */
export interface ChainStateSubscription {
  /**
   * Facts that are fresh enough; without a promise where they are at hand.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer and the last facts are too old.
   */
  get(): ChainState | Promise<ChainState>;
  /** Whether somebody asked lately, so that they are read again and again. */
  isActive(): boolean;
}

/** Runs the reads of chains' facts, so that whoever wants sees how they go. */
export type ChainStateReadObserver = (read: ChainStateRead, run: () => Promise<ChainState>) => Promise<ChainState>;

export interface ChainStateRead {
  readonly chain: string;
  /** How many routes' needs are read together. */
  readonly readSetCount: number;
}

/** Keeps what quotes need of one chain fresh. */
export interface ChainStateCache {
  /** Gives the same object for the same needs, which `name` stands for, and the same pace. */
  subscribe(name: string, needs: ReadSet, pace: RefreshPolicy): ChainStateSubscription;
  close(): void;
}

export interface ChainStateCacheOptions {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly clocks: Clocks;
  readonly onRead?: ChainStateReadObserver | undefined;
}

export interface Clocks {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that nobody sets: ages and pauses are counted in them. */
  readonly monotonicNow: () => number;
}

/** How long after the last question facts are no longer read again. */
const IDLE_MS = 15_000;
/** How long a read is waited for while older facts that can still be given are at hand. */
const MAX_STALE_WAIT_MS = 1_000;
/** Background reads come at most this often. */
const MIN_REFRESH_GAP_MS = 1_000;
interface ChainStateEntry extends ChainStateSubscription {
  readonly key: string;
  readonly readSet: ReadSet;
  readonly refreshPolicy: RefreshPolicy;
  state: ChainState | undefined;
  /** The read that is under way or about to start, and since when. */
  pendingRead: { readonly facts: Promise<ChainState>; readonly since: number } | undefined;
  failedAt: number;
  requestedAt: number;
}

export function createChainStateCache({ chain, client, clocks, onRead }: ChainStateCacheOptions): ChainStateCache {
  const { monotonicNow } = clocks;
  const byName = new Map<string, ChainStateEntry>();
  /** Those that somebody asked for lately. */
  const active = new Set<ChainStateEntry>();
  const closing = new AbortController();
  const reads = createBatchLoader<ReadSet, ChainState>({
    loadBatch: onRead
      ? (needs) => onRead({ chain: chain.slug, readSetCount: needs.length }, () => readAll(needs))
      : readAll,
    now: monotonicNow,
  });
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;

  function readAll(needs: readonly ReadSet[]): Promise<ChainState> {
    return readChainState(client, chain, needs, captureReadTimestamps(clocks), closing.signal);
  }

  function isKept({ requestedAt }: ChainStateEntry): boolean {
    return monotonicNow() - requestedAt <= IDLE_MS;
  }

  function ask(entry: ChainStateEntry): ChainState | Promise<ChainState> {
    const time = monotonicNow();
    entry.requestedAt = time;
    const { state, refreshPolicy, pendingRead } = entry;
    if (state !== undefined && time - state.readAt <= refreshPolicy.maxAgeMs) {
      if (timer === undefined) refreshIn(refreshPolicy.refreshMs);
      return state;
    }
    active.add(entry);
    refreshIn(refreshPolicy.refreshMs);
    const fresher = read(entry);
    const left = state === undefined ? -1 : state.readAt + refreshPolicy.maxStaleMs - time;
    if (state === undefined || left < 0) return fresher;
    const waited = pendingRead === undefined ? 0 : time - pendingRead.since;
    const patience = entry.failedAt > state.readAt ? 0 : Math.min(MAX_STALE_WAIT_MS - waited, left);
    if (patience > 0) return withTimeout(fresher, patience, state);
    fresher.catch(() => {});
    return state;
  }

  /** Has an entry read; one read at a time. */
  function read(entry: ChainStateEntry): Promise<ChainState> {
    entry.pendingRead ??= { facts: readNow(entry), since: monotonicNow() };
    return entry.pendingRead.facts;
  }

  async function readNow(entry: ChainStateEntry): Promise<ChainState> {
    try {
      const facts = await reads.load(entry.readSet);
      // What lacks something of it takes no older facts' place.
      assertStateCovers(facts, entry.readSet);
      keep(entry, facts);
      return facts;
    } catch (error) {
      entry.failedAt = monotonicNow();
      throw error;
    } finally {
      entry.pendingRead = undefined;
    }
  }

  /** Endpoints are not all equally far: an older block does not replace a newer one that is still good. */
  function keep(entry: ChainStateEntry, facts: ChainState): void {
    const known = entry.state;
    const isOlder = known !== undefined && facts.block.number < known.block.number;
    if (isOlder && monotonicNow() - known.readAt <= entry.refreshPolicy.maxAgeMs) return;
    entry.state = facts;
  }

  /** Sees to it that the next background read is planned within this time. */
  function refreshIn(milliseconds: number): void {
    const at = monotonicNow() + milliseconds;
    if (timer !== undefined && timerAt <= at) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, milliseconds).unref();
    timerAt = at;
  }

  /** Reads what is asked for and about to grow old, in one request, and plans the next time. */
  function refresh(): void {
    timer = undefined;
    const time = monotonicNow();
    let wait = Number.POSITIVE_INFINITY;
    for (const entry of active) {
      if (!isKept(entry)) {
        // Facts too old to be given are not worth the memory; needs change with the settings.
        if (time - entry.requestedAt > IDLE_MS + entry.refreshPolicy.maxStaleMs) forget(entry);
        continue;
      }
      const { refreshMs } = entry.refreshPolicy;
      const readAt = Math.max(entry.state?.readAt ?? Number.NEGATIVE_INFINITY, entry.failedAt);
      // Earlier than it must be, so that routes come to be read together.
      const isDue = time - readAt >= refreshMs / 2;
      if (isDue) read(entry).catch(() => {});
      wait = Math.min(wait, isDue ? refreshMs : readAt + refreshMs - time);
    }
    if (wait !== Number.POSITIVE_INFINITY) refreshIn(Math.max(wait, MIN_REFRESH_GAP_MS));
  }

  function forget(entry: ChainStateEntry): void {
    entry.state = undefined;
    active.delete(entry);
    if (byName.get(entry.key) === entry) byName.delete(entry.key);
  }

  return {
    subscribe(key, readSet, refreshPolicy) {
      const known = byName.get(key);
      if (known !== undefined) return known;
      const entry: ChainStateEntry = {
        key,
        readSet,
        refreshPolicy,
        state: undefined,
        pendingRead: undefined,
        failedAt: Number.NEGATIVE_INFINITY,
        requestedAt: Number.NEGATIVE_INFINITY,
        get: () => ask(entry),
        isActive: () => isKept(entry),
      };
      byName.set(key, entry);
      return entry;
    },
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}

/** What a read that begins now takes for its time. */
export function captureReadTimestamps({ now, monotonicNow }: Clocks): ReadTimestamps {
  return { readAt: monotonicNow(), readAtUnixSeconds: Math.floor(now() / 1000) };
}
