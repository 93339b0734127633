import { type ChainClient, getResult, type RpcCall } from "../../../chain/chain-client.js";
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
import type { EventRows, IndexStore } from "../store/index-store.js";
import type { CursorRow } from "../store/schema.js";
import type { AdaptivePageSize } from "./adaptive-page-size.js";
import { type BridgeEventParser, createBridgeEventParser } from "./bridge-event-parser.js";
import { enrichEvents } from "./event-enrichment.js";
import { computeSettledBlock } from "./reorg-detection.js";

/** A chain as the index reads it. */
export interface IndexedChain {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly eventParser: BridgeEventParser;
  /**
   * The chain's latest block, and the number of the newest one that nothing can undo.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer
   */
  readHeadAndSettledBlock(signal: AbortSignal): Promise<{ readonly latest: BlockHeader; readonly settled: number }>;
}

export function createIndexedChain(network: Network, chain: Chain, client: ChainClient): IndexedChain {
  /** The last block that was said to be final. */
  let finalized: number | undefined;
  return {
    chain,
    client,
    eventParser: createBridgeEventParser(network, chain),
    async readHeadAndSettledBlock(signal) {
      const [latest, told] = await Promise.all([
        readLatestBlockHeader(client, signal),
        readFinalizedHeader(client, signal),
      ]);
      // One endpoint that does not know the tag says nothing of a chain that does.
      finalized = told?.number ?? finalized;
      return { latest, settled: computeSettledBlock(latest, finalized, chain.blockTimeMs) };
    },
  };
}

/** undefined: the endpoint does not know of such a block. */
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

/** The events of some blocks, with all that is kept of them. */
export interface EventPage {
  readonly firstBlock: BlockHeader;
  readonly lastBlock: BlockHeader;
  readonly rows: EventRows;
  /** How many of Hop's events there were. */
  readonly eventCount: number;
}

/**
 * The events of a part of a range of blocks. Both ends of it come from the answer that has the logs: an endpoint that is
 * behind says of blocks that it does not have that there are no events in them.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no such answer
 */
export async function readEventPage(
  indexed: IndexedChain,
  range: BlockRange,
  order: { readonly newestFirst: boolean },
  width: AdaptivePageSize,
  signal: AbortSignal,
): Promise<EventPage> {
  const { client, eventParser } = indexed;
  const part = width.selectPage(range, order);
  const { from, to } = part;
  const calls = [createLogsCall(eventParser, from, to), createBlockCall(from), createBlockCall(to)];
  const outcomes = await client.sendBatch(calls, signal).catch(async (error: unknown) => {
    // It may be too many blocks: this finds out how many endpoints take.
    const { range: taken } = await readLogPage(client, eventParser.filter, part, order, signal);
    if (taken.to - taken.from === to - from) throw error;
    width.setMaxBlocks(taken.to - taken.from + 1);
  });
  if (outcomes === undefined) return readEventPage(indexed, range, order, width, signal);
  const [answer, first, last] = outcomes.map(getResult);
  const logs = parseLogs(client, answer);
  // Logs that are not Hop's are read as well, and are the most where CCTP is.
  width.recordLogCount(part, logs.length);
  return {
    firstBlock: requireHeader(client, parseBlockHeader(client, first), from),
    lastBlock: requireHeader(client, parseBlockHeader(client, last), to),
    ...(await readEventRows(indexed, logs, part, signal)),
  };
}

/** What logs say of a range of blocks; other logs are left out. */
export async function readEventRows(
  { client, eventParser }: IndexedChain,
  logs: LogPage["logs"],
  { from, to }: BlockRange,
  signal: AbortSignal,
): Promise<Pick<EventPage, "rows" | "eventCount">> {
  const within = logs.filter(({ blockNumber }) => blockNumber >= from && blockNumber <= to);
  const events = within.flatMap((log) => eventParser.parse(log) ?? []);
  return { rows: await enrichEvents(client, events, signal), eventCount: events.length };
}

/** How much of a chain is in the index; where nothing is, it begins at the newest block that nothing can undo. */
export async function ensureCursor(store: IndexStore, indexed: IndexedChain, signal: AbortSignal): Promise<CursorRow> {
  const { chain, client } = indexed;
  const known = await store.readCursor(chain.chainId);
  if (known !== undefined) return known;
  const { settled } = await indexed.readHeadAndSettledBlock(signal);
  await store.initializeCursor(
    chain.chainId,
    requireHeader(client, await readBlockHeader(client, settled, signal), settled),
  );
  const begun = await store.readCursor(chain.chainId);
  if (begun === undefined) throw new Error("the index does not keep what is written");
  return begun;
}

function requireHeader({ slug }: ChainClient, header: BlockHeader | undefined, number: number): BlockHeader {
  if (header?.number === number) return header;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} does not have all of its blocks`);
}
