import { type ChainClient, type RpcCall, resultOf, toQuantity } from "../../../chain/chain-client.js";
import { headerIn, logsIn } from "../../../chain/json-rpc/parse-results.js";
import {
  type BlockHeader,
  type BlockRange,
  type LogPage,
  readHead,
  readHeader,
  readLogPage,
} from "../../../chain/read/chain-reads.js";
import { isUnknownTag } from "../../../chain/read/finality-tracker.js";
import { ServiceError } from "../../../errors.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { EventRows, IndexStore } from "../store/index-store.js";
import type { CursorRow } from "../store/schema.js";
import type { PageWidth } from "./adaptive-page-size.js";
import { createEventReader, type EventReader } from "./bridge-event-parser.js";
import { completeEvents } from "./event-enrichment.js";
import { settledBlock } from "./reorg-detection.js";

/** A chain as the index reads it. */
export interface IndexedChain {
  readonly chain: Chain;
  readonly client: ChainClient;
  readonly reader: EventReader;
  /**
   * The chain's latest block, and the number of the newest one that nothing can undo.
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer
   */
  readEnds(signal: AbortSignal): Promise<{ readonly latest: BlockHeader; readonly settled: number }>;
}

export function indexedChain(network: Network, chain: Chain, client: ChainClient): IndexedChain {
  /** The last block that was said to be final. */
  let finalized: number | undefined;
  return {
    chain,
    client,
    reader: createEventReader(network, chain),
    async readEnds(signal) {
      const [latest, told] = await Promise.all([readHead(client, signal), readFinalized(client, signal)]);
      // One endpoint that does not know the tag says nothing of a chain that does.
      finalized = told?.number ?? finalized;
      return { latest, settled: settledBlock(latest, finalized, chain.blockMs) };
    },
  };
}

/** undefined: the endpoint does not know of such a block. */
async function readFinalized(client: ChainClient, signal: AbortSignal): Promise<BlockHeader | undefined> {
  try {
    return await readHeader(client, "finalized", signal);
  } catch (error) {
    if (isUnknownTag(error)) return undefined;
    throw error;
  }
}

export const blockCall = (block: number | "latest"): RpcCall => ({
  method: "eth_getBlockByNumber",
  params: [block === "latest" ? block : toQuantity(block), false],
});

export function logsCall({ filter }: EventReader, from: number, to: number | "latest"): RpcCall {
  const toBlock = to === "latest" ? to : toQuantity(to);
  return { method: "eth_getLogs", params: [{ ...filter, fromBlock: toQuantity(from), toBlock }] };
}

/** The events of some blocks, with all that is kept of them. */
export interface EventPage {
  readonly first: BlockHeader;
  readonly last: BlockHeader;
  readonly rows: EventRows;
  /** How many of Hop's events there were. */
  readonly events: number;
}

/**
 * The events of a part of a range of blocks. Both ends of it come from the answer that has the logs: an endpoint that is
 * behind says of blocks that it does not have that there are no events in them.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no such answer
 */
export async function readEvents(
  indexed: IndexedChain,
  range: BlockRange,
  order: { readonly newestFirst: boolean },
  width: PageWidth,
  signal: AbortSignal,
): Promise<EventPage> {
  const { client, reader } = indexed;
  const part = width.partOf(range, order);
  const { from, to } = part;
  const calls = [logsCall(reader, from, to), blockCall(from), blockCall(to)];
  const outcomes = await client.batch(calls, signal).catch(async (error: unknown) => {
    // It may be too many blocks: this finds out how many endpoints take.
    const { range: taken } = await readLogPage(client, reader.filter, part, order, signal);
    if (taken.to - taken.from === to - from) throw error;
    width.limit(taken.to - taken.from + 1);
  });
  if (outcomes === undefined) return readEvents(indexed, range, order, width, signal);
  const [answer, first, last] = outcomes.map(resultOf);
  const logs = logsIn(client, answer);
  // Logs that are not Hop's are read as well, and are the most where CCTP is.
  width.learn(part, logs.length);
  return {
    first: present(client, headerIn(client, first), from),
    last: present(client, headerIn(client, last), to),
    ...(await rowsOf(indexed, logs, part, signal)),
  };
}

/** What logs say of a range of blocks; other logs are left out. */
export async function rowsOf(
  { client, reader }: IndexedChain,
  logs: LogPage["logs"],
  { from, to }: BlockRange,
  signal: AbortSignal,
): Promise<Pick<EventPage, "rows" | "events">> {
  const within = logs.filter(({ blockNumber }) => Number(blockNumber) >= from && Number(blockNumber) <= to);
  const events = within.flatMap((log) => reader.read(log) ?? []);
  return { rows: await completeEvents(client, events, signal), events: events.length };
}

/** How much of a chain is in the index; where nothing is, it begins at the newest block that nothing can undo. */
export async function ensureCursor(store: IndexStore, indexed: IndexedChain, signal: AbortSignal): Promise<CursorRow> {
  const { chain, client } = indexed;
  const known = await store.cursor(chain.chainId);
  if (known !== undefined) return known;
  const { settled } = await indexed.readEnds(signal);
  await store.begin(chain.chainId, present(client, await readHeader(client, settled, signal), settled));
  const begun = await store.cursor(chain.chainId);
  if (begun === undefined) throw new Error("the index does not keep what is written");
  return begun;
}

function present({ slug }: ChainClient, header: BlockHeader | undefined, number: number): BlockHeader {
  if (header?.number === number) return header;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} does not have all of its blocks`);
}
