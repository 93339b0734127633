import { type ChainClient, findRpcResult, type RpcCall } from "../../../chain/chain-client.js";
import { isUnknownBlockTagError } from "../../../chain/heads/finality-tracker.js";
import { toQuantity } from "../../../chain/hex.js";
import { parseBlockHeader, parseLogs } from "../../../chain/json-rpc/parse-results.js";
import {
  type BlockHeader,
  type BlockRange,
  type Log,
  type LogFilter,
  type LogPage,
  readBlockHeader,
  readLatestBlockHeader,
  readLogPage,
} from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { CursorRow, EventRows } from "../database/schema.js";
import type { IndexStore } from "../index-store.js";
import { type BridgeEvent, BridgeEventParser } from "./bridge-event-parser.js";
import { enrichEvents } from "./event-enrichment.js";

const INITIAL_PAGE_BLOCKS = 500;
const MAX_PAGE_BLOCKS = 1_000_000;
/** A page is one transaction, and is lost when the process is killed: it should be neither tiny nor huge. */
const MIN_TARGET_LOGS = 200;
const MAX_TARGET_LOGS = 1_000;
/** After this many pages at the limit a larger one is tried, in case other endpoints serve the chain by then. */
const LIMIT_RESET_PAGES = 100;

/** Chooses how many blocks a page of a long read covers: more where there are few logs, fewer where there are many. */
export class AdaptivePageSize {
  #blocks = INITIAL_PAGE_BLOCKS;
  #maxBlocks = MAX_PAGE_BLOCKS;
  #pagesAtLimit = 0;

  /** Returns the first page of a range, from its beginning or from its end. */
  selectPage({ from, to }: BlockRange, { newestFirst }: { readonly newestFirst: boolean }): BlockRange {
    const blocks = this.#blocks;
    return newestFirst ? { from: Math.max(from, to - blocks + 1), to } : { from, to: Math.min(to, from + blocks - 1) };
  }

  /** Adapts the size to the number of logs that a page had. */
  recordLogCount({ from, to }: BlockRange, logCount: number): void {
    const covered = to - from + 1;
    if (logCount > MAX_TARGET_LOGS) this.#blocks = Math.max(1, Math.floor((covered * MAX_TARGET_LOGS) / logCount));
    if (logCount >= MIN_TARGET_LOGS || covered < this.#blocks) return;
    this.#pagesAtLimit = this.#blocks < this.#maxBlocks ? 0 : this.#pagesAtLimit + 1;
    if (this.#pagesAtLimit >= LIMIT_RESET_PAGES) this.#maxBlocks = MAX_PAGE_BLOCKS;
    this.#blocks = Math.min(this.#maxBlocks, this.#blocks * 2);
  }

  /** Sets the limit that the endpoints impose on the number of blocks per request. */
  setMaxBlocks(limit: number): void {
    this.#maxBlocks = Math.max(1, limit);
    this.#blocks = Math.min(this.#blocks, this.#maxBlocks);
    this.#pagesAtLimit = 0;
  }
}

/** The events of a range of blocks as rows. */
export interface EventPage {
  readonly firstBlock: BlockHeader;
  readonly lastBlock: BlockHeader;
  readonly rows: EventRows;
  /** Number of Hop's events. */
  readonly eventCount: number;
}

/** Reads what the index needs of a chain. */
export class ChainIndexReader {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly #eventParser: BridgeEventParser;
  /** Number of the last known finalized block. */
  #finalized: number | undefined;

  constructor(network: Network, chain: Chain, client: ChainClient) {
    this.chain = chain;
    this.client = client;
    this.#eventParser = new BridgeEventParser(network, chain);
  }

  /**
   * Reads the chain's latest block and the number of its newest settled block: finalized, minus a safety margin.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer
   */
  async readHeadAndSettledBlock(
    signal: AbortSignal,
  ): Promise<{ readonly latest: BlockHeader; readonly settled: number }> {
    const [latest, finalizedHeader] = await Promise.all([
      readLatestBlockHeader(this.client, signal),
      readFinalizedHeader(this.client, signal),
    ]);
    // An endpoint that does not support the tag does not mean that the chain does not.
    this.#finalized = finalizedHeader?.number ?? this.#finalized;
    return { latest, settled: computeSettledBlock(latest, this.#finalized, this.chain.blockTimeMs) };
  }

  /**
   * Reads the events of the first page of a range.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not return all of it
   */
  async readEventPage(
    range: BlockRange,
    order: { readonly newestFirst: boolean },
    pageSize: AdaptivePageSize,
    signal: AbortSignal,
  ): Promise<EventPage> {
    const search = { filter: this.#eventParser.filter, range, ...order };
    const { logs, firstBlock, lastBlock } = await this.#readPage(search, pageSize, signal);
    const page = { from: firstBlock.number, to: lastBlock.number };
    return { firstBlock, lastBlock, ...(await this.readEventRows(logs, page, signal)) };
  }

  /**
   * Reads the events that make transfer roots from the last page of a range.
   * @returns the first block of the page, and the events from there to the end of the range: commits, and sends as leaves
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not return all of it
   */
  async readRootEvents(range: BlockRange, pageSize: AdaptivePageSize, signal: AbortSignal) {
    const filter = this.#eventParser.rootFilter;
    if (filter === undefined) return { from: range.from, leaves: [], commits: [] };
    const search = { filter, range, newestFirst: true };
    const { logs, firstBlock, lastBlock } = await this.#readPage(search, pageSize, signal);
    const events = this.#parseLogs(logs, { from: firstBlock.number, to: lastBlock.number });
    const leaves = events.flatMap((event) => ("send" in event ? [event.send] : []));
    const commits = events.flatMap((event) => ("commit" in event ? [event.commit] : []));
    return { from: firstBlock.number, leaves, commits };
  }

  /**
   * Reads the logs of the first page of a range. The headers of the page's first and last block are read in the same batch
   * as the logs, because an endpoint that lags returns no logs for blocks that it does not have.
   */
  async #readPage(
    search: { readonly filter: LogFilter; readonly range: BlockRange; readonly newestFirst: boolean },
    pageSize: AdaptivePageSize,
    signal: AbortSignal,
  ): Promise<Pick<EventPage, "firstBlock" | "lastBlock"> & Pick<LogPage, "logs">> {
    const { client } = this;
    const page = pageSize.selectPage(search.range, search);
    const { from, to } = page;
    const calls = [createLogsCall(search.filter, from, to), createBlockCall(from), createBlockCall(to)];
    const outcomes = await client.sendBatch(calls, signal).catch(async (error: unknown) => {
      // The page may be too large: a single log read finds out how many blocks the endpoints accept.
      const { range: accepted } = await readLogPage(client, { ...search, range: page }, signal);
      if (accepted.to - accepted.from === to - from) throw error;
      pageSize.setMaxBlocks(accepted.to - accepted.from + 1);
    });
    if (outcomes === undefined) return this.#readPage(search, pageSize, signal);
    const [logsResult, firstResult, lastResult] = outcomes.map(findRpcResult);
    const logs = parseLogs(client, logsResult);
    // Counts foreign logs too: on chains with CCTP most of the logs are not Hop's.
    pageSize.recordLogCount(page, logs.length);
    return {
      logs,
      firstBlock: requireHeader(client, parseBlockHeader(client, firstResult), from),
      lastBlock: requireHeader(client, parseBlockHeader(client, lastResult), to),
    };
  }

  /** Converts the logs within a range of blocks to rows; logs outside it are ignored. */
  async readEventRows(
    logs: LogPage["logs"],
    range: BlockRange,
    signal: AbortSignal,
  ): Promise<Pick<EventPage, "rows" | "eventCount">> {
    const events = this.#parseLogs(logs, range);
    return { rows: await enrichEvents(this.client, events, signal), eventCount: events.length };
  }

  #parseLogs(logs: readonly Log[], { from, to }: BlockRange): readonly BridgeEvent[] {
    const logsInRange = logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to);
    return logsInRange.flatMap((log) => this.#eventParser.parse(log) ?? []);
  }

  createLogsCall(from: number, to: "latest"): RpcCall {
    return createLogsCall(this.#eventParser.filter, from, to);
  }

  /** Reads the cursor of the chain; creates it at the newest settled block if the chain is not indexed yet. */
  async ensureCursor(store: IndexStore, signal: AbortSignal): Promise<CursorRow> {
    const { chain, client } = this;
    const existing = await store.readCursor(chain.chainId);
    if (existing !== undefined) return existing;
    const { settled } = await this.readHeadAndSettledBlock(signal);
    const header = requireHeader(client, await readBlockHeader(client, settled, signal), settled);
    await store.initializeCursor(chain.chainId, header);
    const created = await store.readCursor(chain.chainId);
    if (created === undefined) throw new Error("the cursor was written but cannot be read");
    return created;
  }
}

function createLogsCall(filter: LogFilter, from: number, to: number | "latest"): RpcCall {
  const toBlock = to === "latest" ? to : toQuantity(to);
  return { method: "eth_getLogs", params: [{ ...filter, fromBlock: toQuantity(from), toBlock }] };
}

export const createBlockCall = (block: number | "latest"): RpcCall => ({
  method: "eth_getBlockByNumber",
  params: [block === "latest" ? block : toQuantity(block), false],
});

/** Reads the finalized block; undefined when the endpoint does not support the tag. */
async function readFinalizedHeader(client: ChainClient, signal: AbortSignal): Promise<BlockHeader | undefined> {
  try {
    return await readBlockHeader(client, "finalized", signal);
  } catch (error) {
    if (isUnknownBlockTagError(error)) return undefined;
    throw error;
  }
}

function requireHeader({ slug }: ChainClient, header: BlockHeader | undefined, number: number): BlockHeader {
  if (header?.number === number) return header;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} currently returns incomplete blocks`);
}

/** Safety margin below the latest block: by then, an endpoint that lags behind its peers has caught up. */
const FINALITY_MARGIN_MS = 120_000;
/** Age at which a block counts as final on a chain that does not support the `finalized` tag. */
const FALLBACK_FINALITY_AGE_MS = 3_600_000;

/**
 * Returns the number of the newest settled block: final, and below the latest block by a safety margin, so that every
 * endpoint has it.
 * @param finalized number of the chain's finalized block; undefined when the chain does not support the tag
 */
export function computeSettledBlock(latest: BlockHeader, finalized: number | undefined, blockMs: number): number {
  const countBlocks = (ms: number): number => Math.ceil(ms / blockMs);
  const settled =
    finalized === undefined
      ? latest.number - countBlocks(FALLBACK_FINALITY_AGE_MS)
      : Math.min(finalized, latest.number - countBlocks(FINALITY_MARGIN_MS));
  return Math.max(0, settled);
}
