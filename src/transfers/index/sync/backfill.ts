import type { ChainClient } from "../../../chain/chain-client.js";
import type { Chain, Network, TokenContracts } from "../../../hop/networks.js";
import type { IndexStart } from "../index-options.js";
import type { IndexStore } from "../store/index-store.js";
import { createAdaptivePageSize } from "./adaptive-page-size.js";
import { ensureCursor, type IndexedChain, readEventPage } from "./indexed-chain.js";

/** How far the history of a chain is filled. */
export interface BackfillProgress {
  readonly chain: string;
  /** Blocks read so far, of those that there were to read. */
  readonly blocksDone: number;
  readonly blocksTotal: number;
  /** Events found in them. */
  readonly events: number;
}

export interface BackfillOptions {
  readonly indexed: IndexedChain;
  readonly network: Network;
  readonly store: IndexStore;
  readonly from: IndexStart;
  /** A block whose time is at or before a time in Unix seconds. */
  readonly blockAt: (client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal) => Promise<number>;
  /** How long the chain's endpoints are left to others after each step, in milliseconds. */
  readonly pauseMs: number;
  /** Resolves when the time is over or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onProgress: (progress: BackfillProgress) => void;
  readonly signal: AbortSignal;
}

/**
 * Reads a chain's events backwards from the first block in the index, until what is asked for is there or the signal fires.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain gives no answer; what was read before is kept
 */
export async function backfillChain(options: BackfillOptions): Promise<void> {
  const { indexed, network, store, from, blockAt, pauseMs, sleep, onProgress, signal } = options;
  const { chain, client } = indexed;
  const begin = await ensureCursor(store, indexed, signal);
  const deployed = findDeploymentBlock(network, chain, begin.from_block);
  const asked = from.blocks.get(chain.slug) ?? (await blockAt(client, from.timestamp, chain.blockTimeMs, signal));
  const target = Math.max(asked, deployed);
  const width = createAdaptivePageSize();
  const blocksTotal = Math.max(0, begin.from_block - target);
  let events = 0;
  onProgress({ chain: chain.slug, blocksDone: 0, blocksTotal, events });
  for (let cursor = begin; cursor.from_block > target && !signal.aborted; ) {
    const range = { from: target, to: cursor.from_block - 1 };
    const page = await readEventPage(indexed, range, { newestFirst: true }, width, signal);
    // Before its first contract a chain has no events.
    const isAll = page.firstBlock.number <= deployed;
    await store.prepend(cursor, isAll ? 0 : page.firstBlock.number, isAll ? 0 : page.firstBlock.timestamp, page.rows);
    events += page.eventCount;
    onProgress({ chain: chain.slug, blocksDone: begin.from_block - page.firstBlock.number, blocksTotal, events });
    if (pauseMs > 0) await sleep(pauseMs, signal);
    cursor = await ensureCursor(store, indexed, signal);
  }
}

/** The block before which a chain has none of Hop's contracts; 0 where it is not the chain that the address book means. */
function findDeploymentBlock({ contracts }: Network, { slug }: Chain, known: number): number {
  const blocks = [...contracts.values()].flatMap((byChain) => listDeploymentBlocks(byChain.get(slug) ?? {}));
  const first = Math.min(...blocks);
  return first < known ? first : 0;
}

function listDeploymentBlocks({
  bridgeDeployedBlockNumber,
  cctpBridgeDeployedBlockNumber,
}: TokenContracts): readonly number[] {
  return [bridgeDeployedBlockNumber, cctpBridgeDeployedBlockNumber].filter((block) => typeof block === "number");
}
