import { getResult } from "../../../chain/chain-client.js";
import { parseBlockHeader, parseLogs } from "../../../chain/json-rpc/parse-results.js";
import { type BlockHeader, type Log, readBlockHeader } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { IndexStore } from "../store/index-store.js";
import type { CursorRow } from "../store/schema.js";
import { createAdaptivePageSize } from "./adaptive-page-size.js";
import {
  createBlockCall,
  createLogsCall,
  ensureCursor,
  type IndexedChain,
  readEventPage,
  readEventRows,
} from "./indexed-chain.js";
import { classifyPoll, findCommonAncestor, getPollIntervalMs, isConsistentChain } from "./reorg-detection.js";

export interface RealtimeSyncOptions {
  readonly indexed: IndexedChain;
  readonly store: IndexStore;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Milliseconds on a steady clock. */
  readonly monotonicNow: () => number;
  /** Resolves when the time is over or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Told of a step that failed; it is tried again. */
  readonly onError: (slug: string, error: unknown) => void;
  /** Told of a reorg: how many blocks were undone. */
  readonly onReorg: (slug: string, depth: number) => void;
  readonly signal: AbortSignal;
}

/**
 * How much of the newest is read again at each look, in milliseconds: an endpoint may tell of a block before it has its
 * logs.
 */
const OVERLAP_MS = 10_000;
/** How often it is looked up what has become final; and for how long a chain may be shorter than the index unremarked. */
const FINALIZE_INTERVAL_MS = 60_000;
/** Longest pause after failures. */
export const MAX_RETRY_DELAY_MS = 60_000;
/** Blocks asked for in one batch when a reorg's depth is looked for. */
const BLOCKS_PER_BATCH = 50;

const OLDEST_FIRST = { newestFirst: false };
/** When a block was the latest one, in milliseconds since 1970. */
const getBlockTimeMs = ({ timestamp }: BlockHeader): number => timestamp * 1_000;

/** Keeps the index of one chain up to date until the signal fires. */
export async function syncChainRealtime(options: RealtimeSyncOptions): Promise<void> {
  const { indexed, store, wallNow, monotonicNow, sleep, onError, onReorg, signal } = options;
  const { chain, client, eventParser } = indexed;
  const pollMs = getPollIntervalMs(chain);
  const width = createAdaptivePageSize();
  /** Whether all that is missing can be asked for at once. */
  let isNear = false;
  let confirmedAt = Number.NEGATIVE_INFINITY;
  /** Logs of the last poll, by their places, whose events are in the index: of these nothing more is asked. */
  let taken: ReadonlySet<string> = new Set();
  /** Since when the chain has been shorter than the index, on the steady clock; Infinity: that has been told. */
  let shortSince: number | undefined;

  const readCursor = (): Promise<CursorRow> => ensureCursor(store, indexed, signal);

  /**
   * Takes what is new since the last poll: one request when nothing is.
   * @param kept the last block in the index and the one that was it before, which may be of different chains when a reorg
   *   came between the answers of one poll
   */
  async function poll(cursor: CursorRow, last: BlockHeader, kept: readonly BlockHeader[]): Promise<void> {
    const observedAtMs = wallNow();
    const from = Math.max(cursor.final_to, last.number - Math.ceil(OVERLAP_MS / chain.blockTimeMs));
    const calls = [
      createBlockCall("latest"),
      createLogsCall(eventParser, from, "latest"),
      ...kept.map(({ number }) => createBlockCall(number)),
    ];
    const [latest, found, ...now] = (await client.sendBatch(calls, signal)).map(getResult);
    const head = parseBlockHeader(client, latest);
    const keptNow = now.map((block) => parseBlockHeader(client, block));
    noteLength(head, last);
    const verdict = classifyPoll(kept, keptNow, head);
    if (verdict === "reorg") return undo(cursor);
    if (verdict === "wait" || head === undefined) return;
    // What is beyond the head of the same answer is left for the next one.
    const logs = parseLogs(client, found).filter(({ blockNumber }) => blockNumber <= head.number);
    if (!isConsistentChain([...kept, head], logs)) throw inconsistentChainError(chain.slug);
    const missing = logs.filter((log) => !taken.has(toLogKey(log)));
    const { rows } = await readEventRows(indexed, missing, { from: from + 1, to: head.number }, signal);
    await store.advance(cursor, rows, { to: head, isFinal: false, observedAtMs });
    taken = new Set(logs.map(toLogKey));
  }

  /** Says so, once, when a chain stays shorter than the index. */
  function noteLength(latest: BlockHeader | undefined, last: BlockHeader): void {
    if (latest === undefined) return;
    if (latest.number >= last.number) {
      shortSince = undefined;
      return;
    }
    shortSince ??= monotonicNow();
    if (monotonicNow() - shortSince < FINALIZE_INTERVAL_MS) return;
    shortSince = Number.POSITIVE_INFINITY;
    onError(chain.slug, new ServiceError("UPSTREAM_UNAVAILABLE", `${chain.slug} has fewer blocks than before`));
  }

  /** Takes all that is final of what is missing, or one page of the rest. */
  async function catchUp(cursor: CursorRow, last: BlockHeader): Promise<void> {
    const observedAt = wallNow();
    const [{ latest, settled }, lastNow] = await Promise.all([
      indexed.readHeadAndSettledBlock(signal),
      readBlockHeader(client, last.number, signal),
    ]);
    noteLength(latest, last);
    const verdict = classifyPoll([last], [lastNow], latest);
    if (verdict === "reorg") return undo(cursor);
    isNear = verdict === "wait" || latest.number === last.number;
    if (isNear) return;
    if (settled > last.number) return catchUpFinal(settled);
    const missing = { from: last.number + 1, to: latest.number };
    const { rows, lastBlock: to } = await readEventPage(indexed, missing, OLDEST_FIRST, width, signal);
    isNear = to.number === latest.number;
    await store.advance(cursor, rows, { to, isFinal: false, observedAtMs: isNear ? observedAt : getBlockTimeMs(to) });
  }

  /** Once all that is there is confirmed, what follows and is final needs no second look. */
  async function catchUpFinal(settled: number): Promise<void> {
    await confirm(settled);
    for (let cursor = await readCursor(); cursor.to_block < settled; cursor = await readCursor()) {
      const missing = { from: cursor.to_block + 1, to: settled };
      const { rows, lastBlock: to } = await readEventPage(indexed, missing, OLDEST_FIRST, width, signal);
      await store.advance(cursor, rows, { to, isFinal: true, observedAtMs: getBlockTimeMs(to) });
    }
  }

  /** Goes back to the newest block that is still there. */
  async function undo(cursor: CursorRow): Promise<void> {
    taken = new Set();
    const kept = await store.readRecentBlocks(chain.chainId);
    for (let start = 0; start < kept.length; start += BLOCKS_PER_BATCH) {
      const some = kept.slice(start, start + BLOCKS_PER_BATCH);
      const outcomes = await client.sendBatch(
        some.map(({ number }) => createBlockCall(number)),
        signal,
      );
      const fork = findCommonAncestor(
        some,
        outcomes.map((outcome) => parseBlockHeader(client, getResult(outcome))),
      );
      if (fork === undefined) continue;
      if (fork.number === cursor.to_block) throw inconsistentChainError(chain.slug);
      isNear = false;
      await store.rollBack(cursor, fork);
      onReorg(chain.slug, cursor.to_block - fork.number);
      return;
    }
    throw inconsistentChainError(chain.slug);
  }

  /** Reads again what has become final since the last time. */
  async function confirm(settled: number): Promise<void> {
    for (;;) {
      const cursor = await readCursor();
      const range = { from: cursor.final_to + 1, to: Math.min(settled, cursor.to_block) };
      if (range.from > range.to) break;
      const page = await readEventPage(indexed, range, OLDEST_FIRST, width, signal);
      await store.finalize(cursor, page.lastBlock, page.rows);
    }
    confirmedAt = monotonicNow();
  }

  async function step(): Promise<void> {
    const cursor = await readCursor();
    const kept = await store.readRecentBlocks(chain.chainId, 2);
    const [last] = kept;
    if (last?.number !== cursor.to_block) throw new Error("the index has lost its last block");
    if (isNear) await poll(cursor, last, kept);
    else await catchUp(cursor, last);
    if (isNear && monotonicNow() - confirmedAt >= FINALIZE_INTERVAL_MS)
      await confirm((await indexed.readHeadAndSettledBlock(signal)).settled);
  }

  let failures = 0;
  while (!signal.aborted) {
    try {
      await step();
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      // The range may have been too much at once.
      isNear = false;
      failures += 1;
      onError(chain.slug, error);
    }
    if (isNear || failures > 0)
      await sleep(Math.min(pollMs * 2 ** Math.max(0, failures - 1), MAX_RETRY_DELAY_MS), signal);
  }
}

/** No two logs have the same. */
function toLogKey({ blockHash, logIndex }: Log): string {
  return `${blockHash} ${logIndex}`;
}

/** Two endpoints have different chains, or one has undone what was final. */
function inconsistentChainError(slug: string): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} does not say the same of its blocks as before`);
}
