import { STALLED_POLL_MS } from "../../chain/heads/chain-heads.js";
import type { Chain } from "../../hop/networks.js";
import type { ChainState } from "./chain-state.js";
import { getReadSetKey, mergeReadSets, type ReadSet } from "./read-set.js";

/** How often state is refreshed while in use, and how old it may get, in milliseconds. */
export interface RefreshPolicy {
  readonly refreshMs: number;
  /** Maximum age while the chain responds. */
  readonly maxAgeMs: number;
  /** Maximum age while it does not. */
  readonly maxStaleMs: number;
}

/** Cached chain state of one read set. Times are milliseconds on a monotonic clock. */
export interface ChainStateEntry {
  readonly key: string;
  readonly readSet: ReadSet;
  /** The same in parts, of which one that a node rejects does not fail the others. */
  readonly parts: readonly ReadSet[];
  /** By these names, other processes know what to read. */
  readonly routeNames: readonly string[];
  readonly refreshPolicy: RefreshPolicy;
  state: ChainState | undefined;
  /** The read that is in progress or about to start. */
  pendingRead: { readonly result: Promise<ChainState>; readonly startedAt: number } | undefined;
  failedAt: number;
  requestedAt: number;
}

/** Minimum interval between background refreshes, and so the lower limit of `refreshMs`. */
export const MIN_REFRESH_MS = 1_000;
/** Maximum age of the state of a stalled chain: a request after a pause waits for a new read. */
const STALLED_MAX_AGE_MS = 2 * STALLED_POLL_MS;
/** How long after its last request an entry is refreshed. */
export const IDLE_MS = 15_000;
/** How long a request waits for a read while older state is still usable. */
const MAX_STALE_WAIT_MS = 1_000;
const MIN_MAX_AGE_MS = 4_000;

/** Maximum ages of the inputs of quotes, in milliseconds. */
export interface QuoteAgeLimits {
  /** While chains respond; undefined: two blocks of the slower chain, at least 4 s. */
  readonly maxAgeMs: number | undefined;
  /** While they do not. */
  readonly maxStaleMs: number;
}

/** About once per block of the slower chain, at most once a second, and often enough for the configured maximum age. */
export function computeRefreshPolicy(
  source: Chain,
  destination: Chain,
  { maxAgeMs: configuredMaxAgeMs, maxStaleMs }: QuoteAgeLimits,
): RefreshPolicy {
  const blockTimeMs = Math.max(source.blockTimeMs, destination.blockTimeMs);
  const maxAgeMs = configuredMaxAgeMs ?? Math.max(MIN_MAX_AGE_MS, 2 * blockTimeMs);
  return {
    refreshMs: Math.max(MIN_REFRESH_MS, Math.min(blockTimeMs, maxAgeMs / 2)),
    maxAgeMs,
    maxStaleMs: Math.max(maxAgeMs, maxStaleMs),
  };
}

/** @param parts default: the read set as a whole */
export function createChainStateEntry(
  key: string,
  readSet: ReadSet,
  refreshPolicy: RefreshPolicy,
  { routeNames = [], parts = [readSet] }: Partial<Pick<ChainStateEntry, "routeNames" | "parts">> = {},
): ChainStateEntry {
  return {
    key,
    readSet,
    parts,
    routeNames,
    refreshPolicy,
    state: undefined,
    pendingRead: undefined,
    failedAt: Number.NEGATIVE_INFINITY,
    requestedAt: Number.NEGATIVE_INFINITY,
  };
}

/**
 * Creates an entry that reads what each of its members reads, under the strictest of their policies.
 * @param state known state of all of them; undefined: there is none
 */
export function createJointChainStateEntry(
  members: readonly ChainStateEntry[],
  state: ChainState | undefined,
): ChainStateEntry {
  const parts = members.map(({ readSet }) => readSet);
  const readSet = mergeReadSets(parts);
  const findLeast = (name: keyof RefreshPolicy) => Math.min(...members.map(({ refreshPolicy }) => refreshPolicy[name]));
  const refreshPolicy = {
    refreshMs: findLeast("refreshMs"),
    maxAgeMs: findLeast("maxAgeMs"),
    maxStaleMs: findLeast("maxStaleMs"),
  };
  const key = `${JSON.stringify(refreshPolicy)} ${getReadSetKey(readSet)}`;
  const routeNames = members.flatMap((member) => member.routeNames);
  return { ...createChainStateEntry(key, readSet, refreshPolicy, { routeNames, parts }), state };
}

/** Returns the entry as it is while its chain is stalled: read more often, to see the chain move on. */
export function asStalledEntry(entry: ChainStateEntry): ChainStateEntry {
  const { refreshMs, maxAgeMs, maxStaleMs } = entry.refreshPolicy;
  const refreshPolicy = {
    refreshMs: Math.min(refreshMs, STALLED_POLL_MS),
    maxAgeMs: Math.min(maxAgeMs, STALLED_MAX_AGE_MS),
    maxStaleMs,
  };
  return { ...entry, refreshPolicy };
}

/** Returns whether the entry was requested recently, so that it is refreshed. */
export function isRecentlyRequested({ requestedAt }: ChainStateEntry, now: number): boolean {
  return now - requestedAt <= IDLE_MS;
}

/** Returns whether the entry has been idle for so long that its state cannot be served any more. */
export function isEvictable({ requestedAt, refreshPolicy }: ChainStateEntry, now: number): boolean {
  return now - requestedAt > IDLE_MS + refreshPolicy.maxStaleMs;
}

/** Returns the cached state if it is younger than its maximum age. */
export function findFreshState({ state, refreshPolicy }: ChainStateEntry, now: number): ChainState | undefined {
  return state !== undefined && now - state.readAt <= refreshPolicy.maxAgeMs ? state : undefined;
}

/** Returns the cached state if it can be served while the chain does not respond. */
export function findStaleState({ state, refreshPolicy }: ChainStateEntry, now: number): ChainState | undefined {
  return state !== undefined && now - state.readAt <= refreshPolicy.maxStaleMs ? state : undefined;
}

/**
 * Returns how many milliseconds a request waits for a read that started at a time before it gets the stale state.
 * After a failed read it does not wait at all.
 */
export function computeStaleWaitMs(
  { failedAt, refreshPolicy }: ChainStateEntry,
  staleState: ChainState,
  readStartedAt: number,
  now: number,
): number {
  if (failedAt > staleState.readAt) return 0;
  return Math.min(MAX_STALE_WAIT_MS - (now - readStartedAt), staleState.readAt + refreshPolicy.maxStaleMs - now);
}

/**
 * Stores a state unless the present one was read later. Endpoints differ in their heads: an older block does not replace a
 * newer one that is still fresh.
 */
export function storeIfNewer(entry: ChainStateEntry, state: ChainState, now: number): void {
  if (entry.state !== undefined && state.readAt < entry.state.readAt) return;
  const freshState = findFreshState(entry, now);
  if (freshState !== undefined && state.block.number < freshState.block.number) return;
  entry.state = state;
}

/** Returns in how many milliseconds the entry needs a refresh; 0 or less: it is due. */
export function computeRefreshDelayMs({ state, failedAt, refreshPolicy }: ChainStateEntry, now: number): number {
  const lastReadAt = Math.max(state?.readAt ?? Number.NEGATIVE_INFINITY, failedAt);
  const { refreshMs } = refreshPolicy;
  // Due after half of the interval already, so that the reads of several routes converge to one request.
  return now - lastReadAt >= refreshMs / 2 ? 0 : lastReadAt + refreshMs - now;
}

/** A joint entry and the last use of each of its members. */
interface JointEntry {
  readonly entry: ChainStateEntry;
  readonly lastUsed: Map<ChainStateEntry, number>;
}

/**
 * Finds the entry from which a batch of quotes gets everything that it reads on one chain, in one block. All batches have
 * one, so that the number of its reads does not depend on the combinations that callers ask for. It grows with the
 * entries that batches use, and loses those that none uses any more.
 */
export class JointEntries {
  #current: JointEntry | undefined;
  /** What it replaced, for use until it has been read. */
  #previous: JointEntry | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;

  /** Returns an entry that reads what each of these entries reads, and perhaps more. */
  include(entries: readonly ChainStateEntry[], now: number): ChainStateEntry {
    const current = this.#current;
    const previous = this.#previous;
    const isKnown = current !== undefined && covers(current, entries);
    if (!isKnown || now - this.#checkedAt > IDLE_MS) return this.#replaceCurrent(entries, now);
    for (const entry of entries) current.lastUsed.set(entry, now);
    // A batch of other routes does not make this one wait for its first read, or fail with it.
    const canUsePrevious =
      current.entry.state === undefined &&
      previous !== undefined &&
      covers(previous, entries) &&
      findStaleState(previous.entry, now) !== undefined;
    return canUsePrevious ? previous.entry : current.entry;
  }

  #replaceCurrent(entries: readonly ChainStateEntry[], now: number): ChainStateEntry {
    const replaced = this.#current;
    const lastUsed = new Map([...(replaced?.lastUsed ?? [])].filter(([, usedAt]) => now - usedAt <= IDLE_MS));
    for (const entry of entries) lastUsed.set(entry, now);
    const members = [...lastUsed.keys()];
    const isShrinking = replaced !== undefined && covers(replaced, members);
    const known = isShrinking ? replaced.entry.state : findCommonState(members);
    const entry = createJointChainStateEntry(members, known);
    this.#previous = replaced;
    this.#current = { entry, lastUsed };
    this.#checkedAt = now;
    return entry;
  }
}

function covers({ lastUsed }: JointEntry, entries: readonly ChainStateEntry[]): boolean {
  for (const entry of entries) if (!lastUsed.has(entry)) return false;
  return true;
}

/** Returns the state that all entries have, because one read got it for all of them. */
function findCommonState(entries: readonly ChainStateEntry[]): ChainState | undefined {
  const state = entries[0]?.state;
  return entries.every((entry) => entry.state === state) ? state : undefined;
}
