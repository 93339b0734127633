import { type ChainClient, getRpcResult, type RpcCall } from "../../../chain/chain-client.js";
import { toQuantity } from "../../../chain/hex.js";
import { parseBlockHeader, parseLogs } from "../../../chain/json-rpc/parse-results.js";
import {
  type BlockHeader,
  type BlockRange,
  type LogPage,
  readBlockHeader,
  readLatestBlockHeader,
  readLogPage,
} from "../../../chain/read/chain-reads.js";
import { isUnknownBlockTagError } from "../../../chain/read/finality-tracker.js";
import { ServiceError } from "../../../errors.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { IndexStore } from "../store/index-store.js";
import type { CursorRow, EventRows } from "../store/schema.js";
import type { AdaptivePageSize } from "./adaptive-page-size.js";
import { type BridgeEventParser, createBridgeEventParser } from "./bridge-event-parser.js";
import { enrichEvents } from "./event-enrichment.js";
import { computeSettledBlock } from "./reorg-detection.js";

/** A chain with what the index needs to read it. */
export interface ChainIndexReader {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly eventParser: BridgeEventParser;
  /**
   * Reads the chain's latest block and the number of its newest settled block: finalized, minus a safety margin.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer
   */
  readHeadAndSettledBlock(signal: AbortSignal): Promise<{ readonly latest: BlockHeader; readonly settled: number }>;
}

export function createChainIndexReader(network: Network, chain: Chain, client: ChainClient): ChainIndexReader {
  /** Number of the last known finalized block. */
  let finalized: number | undefined;
  return {
    chain,
    client,
    eventParser: createBridgeEventParser(network, chain),
    async readHeadAndSettledBlock(signal) {
      const [latest, finalizedHeader] = await Promise.all([
        readLatestBlockHeader(client, signal),
        readFinalizedHeader(client, signal),
      ]);
      // An endpoint that does not support the tag does not mean that the chain does not.
      finalized = finalizedHeader?.number ?? finalized;
      return { latest, settled: computeSettledBlock(latest, finalized, chain.blockTimeMs) };
    },
  };
}

/** Reads the finalized block; undefined when the endpoint does not support the tag. */
async function readFinalizedHeader(client: ChainClient, signal: AbortSignal): Promise<BlockHeader | undefined> {
  try {
    return await readBlockHeader(client, "finalized", signal);
  } catch (error) {
    if (isUnknownBlockTagError(error)) return undefined;
    throw error;
  }
}

export const createBlockCall = (block: number | "latest"): RpcCall => ({
  method: "eth_getBlockByNumber",
  params: [block === "latest" ? block : toQuantity(block), false],
});

export function createLogsCall({ filter }: BridgeEventParser, from: number, to: number | "latest"): RpcCall {
  const toBlock = to === "latest" ? to : toQuantity(to);
  return { method: "eth_getLogs", params: [{ ...filter, fromBlock: toQuantity(from), toBlock }] };
}

/** The events of a range of blocks as rows. */
export interface EventPage {
  readonly firstBlock: BlockHeader;
  readonly lastBlock: BlockHeader;
  readonly rows: EventRows;
  /** Number of Hop's events. */
  readonly eventCount: number;
}

/**
 * Reads the events of the first page of a range. The headers of the page's first and last block are read in the same batch
 * as the logs, because an endpoint that lags returns no logs for blocks that it does not have.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not return all of it
 */
export async function readEventPage(
  indexed: ChainIndexReader,
  range: BlockRange,
  order: { readonly newestFirst: boolean },
  pageSize: AdaptivePageSize,
  signal: AbortSignal,
): Promise<EventPage> {
  const { client, eventParser } = indexed;
  const page = pageSize.selectPage(range, order);
  const { from, to } = page;
  const calls = [createLogsCall(eventParser, from, to), createBlockCall(from), createBlockCall(to)];
  const outcomes = await client.sendBatch(calls, signal).catch(async (error: unknown) => {
    // The page may be too large: a single log read finds out how many blocks the endpoints accept.
    const { range: accepted } = await readLogPage(client, eventParser.filter, page, order, signal);
    if (accepted.to - accepted.from === to - from) throw error;
    pageSize.setMaxBlocks(accepted.to - accepted.from + 1);
  });
  if (outcomes === undefined) return readEventPage(indexed, range, order, pageSize, signal);
  const [logsResult, firstResult, lastResult] = outcomes.map(getRpcResult);
  const logs = parseLogs(client, logsResult);
  // Counts foreign logs too: on chains with CCTP most of the logs are not Hop's.
  pageSize.recordLogCount(page, logs.length);
  return {
    firstBlock: requireHeader(client, parseBlockHeader(client, firstResult), from),
    lastBlock: requireHeader(client, parseBlockHeader(client, lastResult), to),
    ...(await readEventRows(indexed, logs, page, signal)),
  };
}

/** Converts the logs within a range of blocks to rows; logs outside it are ignored. */
export async function readEventRows(
  { client, eventParser }: ChainIndexReader,
  logs: LogPage["logs"],
  { from, to }: BlockRange,
  signal: AbortSignal,
): Promise<Pick<EventPage, "rows" | "eventCount">> {
  const logsInRange = logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to);
  const events = logsInRange.flatMap((log) => eventParser.parse(log) ?? []);
  return { rows: await enrichEvents(client, events, signal), eventCount: events.length };
}

/** Reads the cursor of a chain; creates it at the newest settled block if the chain is not indexed yet. */
export async function ensureCursor(
  store: IndexStore,
  indexed: ChainIndexReader,
  signal: AbortSignal,
): Promise<CursorRow> {
  const { chain, client } = indexed;
  const existing = await store.readCursor(chain.chainId);
  if (existing !== undefined) return existing;
  const { settled } = await indexed.readHeadAndSettledBlock(signal);
  await store.initializeCursor(
    chain.chainId,
    requireHeader(client, await readBlockHeader(client, settled, signal), settled),
  );
  const created = await store.readCursor(chain.chainId);
  if (created === undefined) throw new Error("the cursor was written but cannot be read");
  return created;
}

function requireHeader({ slug }: ChainClient, header: BlockHeader | undefined, number: number): BlockHeader {
  if (header?.number === number) return header;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} currently returns incomplete blocks`);
}
