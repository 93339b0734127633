import { getRpcResult } from "../../../chain/chain-client.js";
import { parseBlockHeader, parseLogs } from "../../../chain/json-rpc/parse-results.js";
import { type BlockHeader, type BlockRange, type Log, readBlockHeader } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { IndexStore } from "../store/index-store.js";
import type { CursorRow } from "../store/schema.js";
import { createAdaptivePageSize } from "./adaptive-page-size.js";
import {
  type ChainIndexReader,
  createBlockCall,
  createLogsCall,
  ensureCursor,
  readEventPage,
  readEventRows,
} from "./indexed-chain.js";
import { findCommonAncestor, getPollIntervalMs, isConsistentChain } from "./reorg-detection.js";
import {
  applyCatchUp,
  applyPoll,
  getNextDelayMs,
  INITIAL_SYNC_STATE,
  isFinalizationDue,
  recordExtension,
  recordFailure,
  recordFinalization,
  recordPage,
  recordSuccess,
  type SyncAction,
  type SyncTransition,
} from "./sync-state.js";

export interface RealtimeSyncOptions {
  readonly indexed: ChainIndexReader;
  readonly store: IndexStore;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicNow: () => number;
  /** Resolves when the time has passed or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called for every failed step; the step is retried. */
  readonly onError: (slug: string, error: unknown) => void;
  /** Called after a reorg with the number of removed blocks. */
  readonly onReorg: (slug: string, depth: number) => void;
  readonly signal: AbortSignal;
}

/** Each poll reads the newest blocks of the last poll again, because an endpoint may serve a block before its logs. */
const OVERLAP_MS = 10_000;
/** Blocks per request in the search for the common ancestor. */
const BLOCKS_PER_BATCH = 50;

const OLDEST_FIRST = { newestFirst: false };
const getBlockTimeMs = ({ timestamp }: BlockHeader): number => timestamp * 1_000;

/**
 * Keeps the index of one chain up to date until the signal fires. What to do next is decided by the transitions in
 * sync-state.ts; this function reads from the chain and writes to the store.
 */
export async function syncChainRealtime(options: RealtimeSyncOptions): Promise<void> {
  const { indexed, store, wallNow, monotonicNow, sleep, onError, onReorg, signal } = options;
  const { chain, client, eventParser } = indexed;
  const pollIntervalMs = getPollIntervalMs(chain);
  const pageSize = createAdaptivePageSize();
  let state = INITIAL_SYNC_STATE;

  const readCursor = (): Promise<CursorRow> => ensureCursor(store, indexed, signal);

  function applyTransition(transition: SyncTransition): SyncAction {
    state = transition.state;
    if (transition.shouldReportChainBehind) {
      const message = `${chain.slug} has fewer blocks than the index`;
      onError(chain.slug, new ServiceError("UPSTREAM_UNAVAILABLE", message));
    }
    return transition.action;
  }

  /**
   * Adds what is new since the last poll: one request when nothing is.
   * @param recentBlocks the last block of the index and the one indexed as last before it. When a reorg fell between the
   *   responses of one poll, the two may belong to different chains
   */
  async function poll(cursor: CursorRow, last: BlockHeader, recentBlocks: readonly BlockHeader[]): Promise<void> {
    const observedAtMs = wallNow();
    const from = Math.max(cursor.final_to, last.number - Math.ceil(OVERLAP_MS / chain.blockTimeMs));
    const calls = [
      createBlockCall("latest"),
      createLogsCall(eventParser, from, "latest"),
      ...recentBlocks.map(({ number }) => createBlockCall(number)),
    ];
    const [latestResult, logsResult, ...blockResults] = (await client.sendBatch(calls, signal)).map(getRpcResult);
    const head = parseBlockHeader(client, latestResult);
    const current = blockResults.map((block) => parseBlockHeader(client, block));
    const action = applyTransition(applyPoll(state, { indexed: recentBlocks, current, head }, monotonicNow()));
    if (action.kind === "rollBack") await rollBackToAncestor(cursor);
    if (action.kind !== "extend") return;
    // Logs beyond the head of the same response are left for the next poll.
    const logs = parseLogs(client, logsResult).filter(({ blockNumber }) => blockNumber <= action.head.number);
    if (!isConsistentChain([...recentBlocks, action.head], logs)) throw inconsistentChainError(chain.slug);
    const newLogs = logs.filter((log) => !state.indexedLogKeys.has(toLogKey(log)));
    const { rows } = await readEventRows(indexed, newLogs, { from: from + 1, to: action.head.number }, signal);
    await store.advance(cursor, rows, { to: action.head, isFinal: false, observedAtMs });
    state = recordExtension(state, logs.map(toLogKey));
  }

  /** Adds all final blocks that are missing, or one page of the others. */
  async function catchUp(cursor: CursorRow, last: BlockHeader): Promise<void> {
    const observedAtMs = wallNow();
    const [{ latest, settled }, current] = await Promise.all([
      indexed.readHeadAndSettledBlock(signal),
      readBlockHeader(client, last.number, signal),
    ]);
    const observation = { lastIndexed: last, current, latest, settled };
    const action = applyTransition(applyCatchUp(state, observation, monotonicNow()));
    if (action.kind === "rollBack") await rollBackToAncestor(cursor);
    else if (action.kind === "fetchFinalPages") await fetchFinalPages(action.to);
    else if (action.kind === "fetchPage") await fetchPage(cursor, action.range, observedAtMs);
  }

  async function fetchPage(cursor: CursorRow, range: BlockRange, observedAtMs: number): Promise<void> {
    const { rows, lastBlock: to } = await readEventPage(indexed, range, OLDEST_FIRST, pageSize, signal);
    state = recordPage(state, to, range.to);
    const pageObservedAtMs = state.isCaughtUp ? observedAtMs : getBlockTimeMs(to);
    await store.advance(cursor, rows, { to, isFinal: false, observedAtMs: pageObservedAtMs });
  }

  /** Finalizes what is indexed, so that the final blocks that follow can be added as final at once. */
  async function fetchFinalPages(settled: number): Promise<void> {
    await finalize(settled);
    for (let cursor = await readCursor(); cursor.to_block < settled; cursor = await readCursor()) {
      const range = { from: cursor.to_block + 1, to: settled };
      const { rows, lastBlock: to } = await readEventPage(indexed, range, OLDEST_FIRST, pageSize, signal);
      await store.advance(cursor, rows, { to, isFinal: true, observedAtMs: getBlockTimeMs(to) });
    }
  }

  /** Rolls the index back to the newest of its blocks that is still on the chain. */
  async function rollBackToAncestor(cursor: CursorRow): Promise<void> {
    const recentBlocks = await store.readRecentBlocks(chain.chainId);
    for (let start = 0; start < recentBlocks.length; start += BLOCKS_PER_BATCH) {
      const batch = recentBlocks.slice(start, start + BLOCKS_PER_BATCH);
      const outcomes = await client.sendBatch(
        batch.map(({ number }) => createBlockCall(number)),
        signal,
      );
      const current = outcomes.map((outcome) => parseBlockHeader(client, getRpcResult(outcome)));
      const ancestor = findCommonAncestor(batch, current);
      if (ancestor === undefined) continue;
      if (ancestor.number === cursor.to_block) throw inconsistentChainError(chain.slug);
      await store.rollBack(cursor, ancestor);
      onReorg(chain.slug, cursor.to_block - ancestor.number);
      return;
    }
    throw inconsistentChainError(chain.slug);
  }

  /** Reads the blocks again that have become final since the last time. */
  async function finalize(settled: number): Promise<void> {
    for (;;) {
      const cursor = await readCursor();
      const range = { from: cursor.final_to + 1, to: Math.min(settled, cursor.to_block) };
      if (range.from > range.to) break;
      const page = await readEventPage(indexed, range, OLDEST_FIRST, pageSize, signal);
      await store.finalize(cursor, page.lastBlock, page.rows);
    }
    state = recordFinalization(state, monotonicNow());
  }

  async function runStep(): Promise<void> {
    const cursor = await readCursor();
    const recentBlocks = await store.readRecentBlocks(chain.chainId, 2);
    const [last] = recentBlocks;
    if (last?.number !== cursor.to_block) throw new Error("the index has lost its last block");
    if (state.isCaughtUp) await poll(cursor, last, recentBlocks);
    else await catchUp(cursor, last);
    if (isFinalizationDue(state, monotonicNow()))
      await finalize((await indexed.readHeadAndSettledBlock(signal)).settled);
  }

  while (!signal.aborted) {
    try {
      await runStep();
      state = recordSuccess(state);
    } catch (error) {
      if (signal.aborted) return;
      state = recordFailure(state);
      onError(chain.slug, error);
    }
    const delayMs = getNextDelayMs(state, pollIntervalMs);
    if (delayMs > 0) await sleep(delayMs, signal);
  }
}

/** Returns a key that is unique among the logs of a chain. */
function toLogKey({ blockHash, logIndex }: Log): string {
  return `${blockHash} ${logIndex}`;
}

/** Reports blocks that contradict each other: two endpoints are on different chains, or a final block was reorged. */
function inconsistentChainError(slug: string): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned blocks that contradict each other`);
}
