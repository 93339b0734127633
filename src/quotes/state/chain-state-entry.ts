import { STALLED_POLL_MS } from "../../chain/heads/head-tracker.js";
import type { Chain } from "../../hop/networks.js";
import type { ChainState } from "./chain-state.js";
import type { ReadSet } from "./read-set.js";

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
  readonly readSet: ReadSet;
  /** The same in parts, of which one that a node rejects does not fail the others. */
  readonly parts: readonly ReadSet[];
  readonly refreshPolicy: RefreshPolicy;
  state: ChainState | undefined;
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

/** Returns the policy while the chain is stalled: it is read more often, to see it move on. */
export function toStalledPolicy({ refreshMs, maxAgeMs, maxStaleMs }: RefreshPolicy): RefreshPolicy {
  return {
    refreshMs: Math.min(refreshMs, STALLED_POLL_MS),
    maxAgeMs: Math.min(maxAgeMs, STALLED_MAX_AGE_MS),
    maxStaleMs,
  };
}

/** Returns whether the entry was requested recently, so that it is refreshed. */
export function isRecentlyRequested({ requestedAt }: ChainStateEntry, now: number): boolean {
  return now - requestedAt <= IDLE_MS;
}

/** Returns whether the entry has been idle for so long that its state cannot be served any more. */
export function isEvictable({ requestedAt, refreshPolicy }: ChainStateEntry, now: number): boolean {
  return now - requestedAt > IDLE_MS + refreshPolicy.maxStaleMs;
}

/** Returns the cached state if it is younger than its maximum age. @param refreshPolicy default: that of the entry */
export function findFreshState(
  { state, refreshPolicy: ownPolicy }: Pick<ChainStateEntry, "state" | "refreshPolicy">,
  now: number,
  refreshPolicy = ownPolicy,
): ChainState | undefined {
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
export function computeRefreshDelayMs(
  { state, failedAt }: ChainStateEntry,
  { refreshMs }: RefreshPolicy,
  now: number,
): number {
  const lastReadAt = Math.max(state?.readAt ?? Number.NEGATIVE_INFINITY, failedAt);
  // Due after half of the interval already, so that the reads of several routes converge to one request.
  return now - lastReadAt >= refreshMs / 2 ? 0 : lastReadAt + refreshMs - now;
}
