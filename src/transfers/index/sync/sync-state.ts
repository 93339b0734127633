import type { BlockHeader, BlockRange } from "../../../chain/read/chain-reads.js";
import { classifyPoll } from "./reorg-detection.js";

// The state of the realtime sync of one chain and its transitions: pure functions without input or output.

export interface SyncState {
  /** Whether the index is so close to the head that a single request can fetch everything that is missing. */
  readonly isCaughtUp: boolean;
  /** When the newly final blocks were last read again, on the monotonic clock; -Infinity for never. */
  readonly finalizedAtMs: number;
  /** Keys of the last poll's logs. Their events are indexed, so their details are not requested again. */
  readonly indexedLogKeys: ReadonlySet<string>;
  /** Set while the chain has fewer blocks than the index. */
  readonly chainBehind: { readonly sinceMs: number; readonly isReported: boolean } | undefined;
  /** Failed steps in a row. */
  readonly failures: number;
}

export const INITIAL_SYNC_STATE: SyncState = {
  isCaughtUp: false,
  finalizedAtMs: Number.NEGATIVE_INFINITY,
  indexedLogKeys: new Set(),
  chainBehind: undefined,
  failures: 0,
};

/** What the sync does next with what it has read. */
export type SyncAction =
  /** Nothing is new, or this endpoint does not have it yet. */
  | { readonly kind: "wait" }
  /** Adds the events of the poll, up to its head. */
  | { readonly kind: "extend"; readonly head: BlockHeader }
  /** Goes back to the last block that is still on the chain. */
  | { readonly kind: "rollBack" }
  /** Reads page after page of final blocks, up to this one. */
  | { readonly kind: "fetchFinalPages"; readonly to: number }
  /** Reads one page of a range that is not final. */
  | { readonly kind: "fetchPage"; readonly range: BlockRange };

export interface SyncTransition {
  readonly state: SyncState;
  readonly action: SyncAction;
  /** Whether to report now that the chain has had fewer blocks than the index for too long. */
  readonly shouldReportChainBehind: boolean;
}

/** Interval at which newly final blocks are read again. */
const FINALIZE_INTERVAL_MS = 60_000;
/** How long a chain may have fewer blocks than the index before that is reported. */
const CHAIN_BEHIND_TOLERANCE_MS = 60_000;
/** Longest delay after failures. */
export const MAX_RETRY_DELAY_MS = 60_000;

/** The result of one poll. */
export interface PollObservation {
  /** The newest blocks of the index, newest first. */
  readonly indexed: readonly BlockHeader[];
  /** The blocks that the chain has at their numbers; undefined for none. */
  readonly current: readonly (BlockHeader | undefined)[];
  /** The chain's latest block in the same response. */
  readonly head: BlockHeader | undefined;
}

/** Decides what to do after a poll of a caught-up index. */
export function applyPoll(
  state: SyncState,
  { indexed, current, head }: PollObservation,
  nowMs: number,
): SyncTransition {
  const observed = observeHead(state, head, indexed[0], nowMs);
  const result = classifyPoll(indexed, current, head);
  if (result === "reorg") return toRollBack(observed);
  if (result === "wait" || head === undefined) return { ...observed, action: { kind: "wait" } };
  return { ...observed, action: { kind: "extend", head } };
}

/** What an index that is not caught up reads before it decides what to fetch. */
export interface CatchUpObservation {
  readonly lastIndexed: BlockHeader;
  /** The block that the chain has at that number; undefined for none. */
  readonly current: BlockHeader | undefined;
  readonly latest: BlockHeader;
  /** Number of the newest block that is final with a safety margin. */
  readonly settled: number;
}

/** Decides what to fetch for an index that is not caught up. */
export function applyCatchUp(
  state: SyncState,
  { lastIndexed, current, latest, settled }: CatchUpObservation,
  nowMs: number,
): SyncTransition {
  const observed = observeHead(state, latest, lastIndexed, nowMs);
  const result = classifyPoll([lastIndexed], [current], latest);
  if (result === "reorg") return toRollBack(observed);
  if (result === "wait" || latest.number === lastIndexed.number)
    return { ...observed, state: { ...observed.state, isCaughtUp: true }, action: { kind: "wait" } };
  if (settled > lastIndexed.number) return { ...observed, action: { kind: "fetchFinalPages", to: settled } };
  return { ...observed, action: { kind: "fetchPage", range: { from: lastIndexed.number + 1, to: latest.number } } };
}

/** Records a poll whose events have been indexed. */
export function recordExtension(state: SyncState, logKeys: Iterable<string>): SyncState {
  return { ...state, indexedLogKeys: new Set(logKeys) };
}

/** Records a page that is about to be indexed: the index is caught up when the page ends at the chain's latest block. */
export function recordPage(state: SyncState, lastBlock: BlockHeader, latestNumber: number): SyncState {
  return { ...state, isCaughtUp: lastBlock.number === latestNumber };
}

/** Records that everything that has become final has been read again. */
export function recordFinalization(state: SyncState, nowMs: number): SyncState {
  return { ...state, finalizedAtMs: nowMs };
}

export function isFinalizationDue({ isCaughtUp, finalizedAtMs }: SyncState, nowMs: number): boolean {
  return isCaughtUp && nowMs - finalizedAtMs >= FINALIZE_INTERVAL_MS;
}

export function recordSuccess(state: SyncState): SyncState {
  return { ...state, failures: 0 };
}

/** Records a failed step. The range may have been too large for one request, so the sync falls back to pages. */
export function recordFailure(state: SyncState): SyncState {
  return { ...state, isCaughtUp: false, failures: state.failures + 1 };
}

/** Returns the delay before the next step in milliseconds; 0 while pages remain to be read. */
export function getNextDelayMs({ isCaughtUp, failures }: SyncState, pollIntervalMs: number): number {
  if (!isCaughtUp && failures === 0) return 0;
  return Math.min(pollIntervalMs * 2 ** Math.max(0, failures - 1), MAX_RETRY_DELAY_MS);
}

/** Tracks how long the chain has had fewer blocks than the index. */
function observeHead(
  state: SyncState,
  latest: BlockHeader | undefined,
  lastIndexed: BlockHeader | undefined,
  nowMs: number,
): Omit<SyncTransition, "action"> {
  if (latest === undefined || lastIndexed === undefined) return { state, shouldReportChainBehind: false };
  if (latest.number >= lastIndexed.number)
    return { state: { ...state, chainBehind: undefined }, shouldReportChainBehind: false };
  const { sinceMs, isReported } = state.chainBehind ?? { sinceMs: nowMs, isReported: false };
  const shouldReportChainBehind = !isReported && nowMs - sinceMs >= CHAIN_BEHIND_TOLERANCE_MS;
  const chainBehind = { sinceMs, isReported: isReported || shouldReportChainBehind };
  return { state: { ...state, chainBehind }, shouldReportChainBehind };
}

function toRollBack({ state, shouldReportChainBehind }: Omit<SyncTransition, "action">): SyncTransition {
  return {
    state: { ...state, isCaughtUp: false, indexedLogKeys: new Set() },
    action: { kind: "rollBack" },
    shouldReportChainBehind,
  };
}
