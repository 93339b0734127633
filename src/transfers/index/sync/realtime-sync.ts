import { findRpcResult } from "../../../chain/chain-client.js";
import { parseBlockHeader, parseLogs } from "../../../chain/json-rpc/parse-results.js";
import { type BlockHeader, type BlockRange, type Log, readBlockHeader } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import { getPollIntervalMs } from "../../../hop/networks.js";
import type { CursorRow } from "../database/schema.js";
import type { IndexStore } from "../index-store.js";
import { AdaptivePageSize, type ChainIndexReader, createBlockCall, type EventPage } from "./chain-index-reader.js";

/** Each poll reads the newest blocks of the last poll again, because an endpoint may serve a block before its logs. */
const OVERLAP_MS = 10_000;
/** Blocks per request in the search for the common ancestor. */
const BLOCKS_PER_BATCH = 50;
/** Interval at which newly final blocks are read again. */
const FINALIZE_INTERVAL_MS = 60_000;
/** How long a chain may have fewer blocks than the index before that is reported. */
const CHAIN_BEHIND_TOLERANCE_MS = 60_000;
/** Longest delay after failures. */
export const MAX_RETRY_DELAY_MS = 60_000;

const OLDEST_FIRST = { newestFirst: false };
const getBlockTimeMs = ({ timestamp }: BlockHeader): number => timestamp * 1_000;

/** Keeps the index of one chain up to date. */
export class RealtimeSync {
  readonly #indexed: ChainIndexReader;
  readonly #store: IndexStore;
  readonly #options;
  readonly #signal: AbortSignal;
  readonly #pageSize = new AdaptivePageSize();
  /** Whether the index is so close to the head that a single request can fetch everything that is missing. */
  #isCaughtUp = false;
  /** When the newly final blocks were last read again, on the monotonic clock; -Infinity for never. */
  #finalizedAtMs = Number.NEGATIVE_INFINITY;
  /** Keys of the last poll's logs. Their events are indexed, so their details are not requested again. */
  #indexedLogKeys: ReadonlySet<string> = new Set();
  /** Set while the chain has fewer blocks than the index. */
  #chainBehind: { readonly sinceMs: number; isReported: boolean } | undefined;
  /** Failed steps in a row. */
  #failures = 0;

  /** @param signal ends the sync */
  constructor(
    indexed: ChainIndexReader,
    store: IndexStore,
    options: {
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
    },
    signal: AbortSignal,
  ) {
    this.#indexed = indexed;
    this.#store = store;
    this.#options = options;
    this.#signal = signal;
  }

  /** Resolves when the signal fires. */
  async run(): Promise<void> {
    const { chain } = this.#indexed;
    const pollIntervalMs = getPollIntervalMs(chain);
    while (!this.#signal.aborted) {
      try {
        await this.#runStep();
        this.#failures = 0;
      } catch (error) {
        if (this.#signal.aborted) return;
        // The range may have been too large for one request, so the sync falls back to pages.
        this.#isCaughtUp = false;
        this.#failures += 1;
        this.#options.onError(chain.slug, error);
      }
      const delayMs = this.#getNextDelayMs(pollIntervalMs);
      if (delayMs > 0) await this.#options.sleep(delayMs, this.#signal);
    }
  }

  async #runStep(): Promise<void> {
    const cursor = await this.#readCursor();
    const recentBlocks = await this.#store.readRecentBlocks(this.#indexed.chain.chainId, 2);
    const [last] = recentBlocks;
    if (last?.number !== cursor.to_block) throw new Error("the index has lost its last block");
    if (this.#isCaughtUp) await this.#poll(cursor, last, recentBlocks);
    else await this.#catchUp(cursor, last);
    if (this.#isCaughtUp && this.#options.monotonicNow() - this.#finalizedAtMs >= FINALIZE_INTERVAL_MS)
      await this.#finalize((await this.#indexed.readHeadAndSettledBlock(this.#signal)).settled);
  }

  #readCursor(): Promise<CursorRow> {
    return this.#indexed.ensureCursor(this.#store, this.#signal);
  }

  /** Returns the delay before the next step in milliseconds; 0 while pages remain to be read. */
  #getNextDelayMs(pollIntervalMs: number): number {
    if (!this.#isCaughtUp && this.#failures === 0) return 0;
    return Math.min(pollIntervalMs * 2 ** Math.max(0, this.#failures - 1), MAX_RETRY_DELAY_MS);
  }

  /** Reports once when the chain has had fewer blocks than the index for too long. */
  #observeHead(head: BlockHeader | undefined, lastIndexed: BlockHeader): void {
    if (head === undefined) return;
    const now = this.#options.monotonicNow();
    this.#chainBehind =
      head.number >= lastIndexed.number ? undefined : (this.#chainBehind ?? { sinceMs: now, isReported: false });
    if (this.#chainBehind === undefined || this.#chainBehind.isReported) return;
    if (now - this.#chainBehind.sinceMs < CHAIN_BEHIND_TOLERANCE_MS) return;
    this.#chainBehind.isReported = true;
    const { slug } = this.#indexed.chain;
    this.#options.onError(slug, new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} has fewer blocks than the index`));
  }

  /**
   * Adds what is new since the last poll: one request when nothing is.
   * @param recentBlocks the last block of the index and the one indexed as last before it. When a reorg fell between the
   *   responses of one poll, the two may belong to different chains
   */
  async #poll(cursor: CursorRow, last: BlockHeader, recentBlocks: readonly BlockHeader[]): Promise<void> {
    const { chain, client } = this.#indexed;
    const observedAtMs = this.#options.wallNow();
    const from = Math.max(cursor.final_to, last.number - Math.ceil(OVERLAP_MS / chain.blockTimeMs));
    const calls = [
      createBlockCall("latest"),
      this.#indexed.createLogsCall(from, "latest"),
      ...recentBlocks.map(({ number }) => createBlockCall(number)),
    ];
    const [latestResult, logsResult, ...blockResults] = (await client.sendBatch(calls, this.#signal)).map(
      findRpcResult,
    );
    const head = parseBlockHeader(client, latestResult);
    const current = blockResults.map((block) => parseBlockHeader(client, block));
    this.#observeHead(head, last);
    const verdict = classifyPoll(recentBlocks, current, head);
    if (verdict === "reorg") await this.#rollBackToAncestor(cursor);
    if (verdict !== "advance" || head === undefined) return;
    // Logs beyond the head of the same response are left for the next poll.
    const logs = parseLogs(client, logsResult).filter(({ blockNumber }) => blockNumber <= head.number);
    if (!isConsistentChain([...recentBlocks, head], logs)) throw inconsistentChainError(chain.slug);
    const newLogs = logs.filter((log) => !this.#indexedLogKeys.has(toLogKey(log)));
    const range = { from: from + 1, to: head.number };
    const { rows } = await this.#indexed.readEventRows(newLogs, range, this.#signal);
    await this.#store.advance(cursor, rows, { to: head, isFinal: false, observedAtMs });
    this.#indexedLogKeys = new Set(logs.map(toLogKey));
  }

  /** Adds all final blocks that are missing, or one page of the others. */
  async #catchUp(cursor: CursorRow, last: BlockHeader): Promise<void> {
    const observedAtMs = this.#options.wallNow();
    const [{ latest, settled }, current] = await Promise.all([
      this.#indexed.readHeadAndSettledBlock(this.#signal),
      readBlockHeader(this.#indexed.client, last.number, this.#signal),
    ]);
    this.#observeHead(latest, last);
    const verdict = classifyPoll([last], [current], latest);
    if (verdict === "reorg") await this.#rollBackToAncestor(cursor);
    else if (verdict === "wait" || latest.number === last.number) this.#isCaughtUp = true;
    else if (settled > last.number) await this.#fetchFinalPages(settled);
    else await this.#fetchPage(cursor, { from: last.number + 1, to: latest.number }, observedAtMs);
  }

  #readPage(range: BlockRange): Promise<EventPage> {
    return this.#indexed.readEventPage(range, OLDEST_FIRST, this.#pageSize, this.#signal);
  }

  async #fetchPage(cursor: CursorRow, range: BlockRange, observedAtMs: number): Promise<void> {
    const { rows, lastBlock: to } = await this.#readPage(range);
    // The index is caught up when the page ends at the chain's latest block.
    this.#isCaughtUp = to.number === range.to;
    const pageObservedAtMs = this.#isCaughtUp ? observedAtMs : getBlockTimeMs(to);
    await this.#store.advance(cursor, rows, { to, isFinal: false, observedAtMs: pageObservedAtMs });
  }

  /** Finalizes what is indexed, so that the final blocks that follow can be added as final at once. */
  async #fetchFinalPages(settled: number): Promise<void> {
    await this.#finalize(settled);
    for (let cursor = await this.#readCursor(); cursor.to_block < settled; cursor = await this.#readCursor()) {
      const { rows, lastBlock: to } = await this.#readPage({ from: cursor.to_block + 1, to: settled });
      await this.#store.advance(cursor, rows, { to, isFinal: true, observedAtMs: getBlockTimeMs(to) });
    }
  }

  /** Rolls the index back to the newest of its blocks that is still on the chain. */
  async #rollBackToAncestor(cursor: CursorRow): Promise<void> {
    const { chain, client } = this.#indexed;
    this.#isCaughtUp = false;
    this.#indexedLogKeys = new Set();
    const recentBlocks = await this.#store.readRecentBlocks(chain.chainId);
    for (let start = 0; start < recentBlocks.length; start += BLOCKS_PER_BATCH) {
      const batch = recentBlocks.slice(start, start + BLOCKS_PER_BATCH);
      const calls = batch.map(({ number }) => createBlockCall(number));
      const outcomes = await client.sendBatch(calls, this.#signal);
      const current = outcomes.map((outcome) => parseBlockHeader(client, findRpcResult(outcome)));
      const ancestor = findCommonAncestor(batch, current);
      if (ancestor === undefined) continue;
      if (ancestor.number === cursor.to_block) throw inconsistentChainError(chain.slug);
      await this.#store.rollBack(cursor, ancestor);
      this.#options.onReorg(chain.slug, cursor.to_block - ancestor.number);
      return;
    }
    throw inconsistentChainError(chain.slug);
  }

  /** Reads the blocks again that have become final since the last time. */
  async #finalize(settled: number): Promise<void> {
    for (;;) {
      const cursor = await this.#readCursor();
      const range = { from: cursor.final_to + 1, to: Math.min(settled, cursor.to_block) };
      if (range.from > range.to) break;
      const page = await this.#readPage(range);
      await this.#store.finalize(cursor, page.lastBlock, page.rows);
    }
    this.#finalizedAtMs = this.#options.monotonicNow();
  }
}

/** advance: add what is new. reorg: an indexed block was removed. wait: this endpoint does not have every block yet. */
type PollVerdict = "advance" | "reorg" | "wait";

/**
 * Compares the index with a chain.
 * @param indexed the last block of the index, and some that were the last before it
 * @param current the blocks that the chain has at their numbers; undefined for none
 * @param latest the chain's latest block in the same response
 */
function classifyPoll(
  indexed: readonly BlockHeader[],
  current: readonly (BlockHeader | undefined)[],
  latest: BlockHeader | undefined,
): PollVerdict {
  // A head that moves back is an endpoint that lags, or a reorg to a shorter chain, which will grow.
  if (latest === undefined || indexed.some(({ number }) => latest.number < number)) return "wait";
  if (indexed.some(({ number }, index) => current[index]?.number !== number)) return "wait";
  return indexed.every(({ hash }, index) => current[index]?.hash === hash) ? "advance" : "reorg";
}

/**
 * Returns the newest block that is still on the chain together with all blocks before it; undefined for none. A block above
 * a removed one may still be on the chain, if a reorg fell between the responses of one poll.
 * @param indexed newest first
 */
function findCommonAncestor(
  indexed: readonly BlockHeader[],
  current: readonly (BlockHeader | undefined)[],
): BlockHeader | undefined {
  return indexed[indexed.findLastIndex(({ hash }, index) => current[index]?.hash !== hash) + 1];
}

/**
 * Returns whether the blocks and logs of one batch belong to one chain. A reorg, or a switch to another endpoint, may fall
 * between two responses of a batch.
 */
function isConsistentChain(headers: readonly BlockHeader[], logs: readonly Log[]): boolean {
  const hashes = new Map<number, string>();
  const logBlocks = logs.map(({ blockNumber, blockHash }) => ({ number: blockNumber, hash: blockHash }));
  for (const { number, hash } of [...headers, ...logBlocks]) {
    if ((hashes.get(number) ?? hash) !== hash) return false;
    hashes.set(number, hash);
  }
  return true;
}

/** Returns a key that is unique among the logs of a chain. */
function toLogKey({ blockHash, logIndex }: Log): string {
  return `${blockHash} ${logIndex}`;
}

/** Reports blocks that contradict each other: two endpoints are on different chains, or a final block was reorged. */
function inconsistentChainError(slug: string): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} returned blocks that contradict each other`);
}
