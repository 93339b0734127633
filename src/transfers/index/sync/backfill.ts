import type { ChainClient } from "../../../chain/chain-client.js";
import type { Chain, Network, TokenContracts } from "../../../hop/networks.js";
import type { IndexStart } from "../index-options.js";
import type { IndexStore } from "../store/index-store.js";
import { createAdaptivePageSize } from "./adaptive-page-size.js";
import { type ChainIndexReader, ensureCursor, readEventPage } from "./indexed-chain.js";

/** How much of a chain's history has been read. */
export interface BackfillProgress {
  readonly chain: string;
  /** Blocks read so far. */
  readonly blocksDone: number;
  /** Blocks to read in all. */
  readonly blocksTotal: number;
  /** Events in the blocks read so far. */
  readonly events: number;
}

export interface BackfillOptions {
  readonly indexed: ChainIndexReader;
  readonly network: Network;
  readonly store: IndexStore;
  readonly from: IndexStart;
  /** Finds a block at or before a time in Unix seconds. */
  readonly blockAt: (client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal) => Promise<number>;
  /** Pause after each page, in milliseconds; leaves the chain's endpoints to requests. */
  readonly pauseMs: number;
  /** Resolves when the time has passed or the signal fires. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onProgress: (progress: BackfillProgress) => void;
  readonly signal: AbortSignal;
}

/**
 * Reads a chain's events backwards from the first indexed block, until the requested start is reached or the signal fires.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer; the pages read before are kept
 */
export async function backfillChain(options: BackfillOptions): Promise<void> {
  const { indexed, network, store, from, blockAt, pauseMs, sleep, onProgress, signal } = options;
  const { chain, client } = indexed;
  const initialCursor = await ensureCursor(store, indexed, signal);
  const deploymentBlock = findDeploymentBlock(network, chain, initialCursor.from_block);
  const requestedStart =
    from.blocks.get(chain.slug) ?? (await blockAt(client, from.timestamp, chain.blockTimeMs, signal));
  const target = Math.max(requestedStart, deploymentBlock);
  const pageSize = createAdaptivePageSize();
  const blocksTotal = Math.max(0, initialCursor.from_block - target);
  let events = 0;
  onProgress({ chain: chain.slug, blocksDone: 0, blocksTotal, events });
  for (let cursor = initialCursor; cursor.from_block > target && !signal.aborted; ) {
    const range = { from: target, to: cursor.from_block - 1 };
    const page = await readEventPage(indexed, range, { newestFirst: true }, pageSize, signal);
    // A chain has no events before its first contract.
    const isComplete = page.firstBlock.number <= deploymentBlock;
    await store.prepend(
      cursor,
      isComplete ? 0 : page.firstBlock.number,
      isComplete ? 0 : page.firstBlock.timestamp,
      page.rows,
    );
    events += page.eventCount;
    onProgress({
      chain: chain.slug,
      blocksDone: initialCursor.from_block - page.firstBlock.number,
      blocksTotal,
      events,
    });
    if (pauseMs > 0) await sleep(pauseMs, signal);
    cursor = await ensureCursor(store, indexed, signal);
  }
}

/**
 * Returns the block before which a chain has none of Hop's contracts; 0 when the chain is so short that it cannot be the one
 * in the address book, as on a local network.
 */
function findDeploymentBlock({ contracts }: Network, { slug }: Chain, firstIndexedBlock: number): number {
  const blocks = [...contracts.values()].flatMap((byChain) => listDeploymentBlocks(byChain.get(slug) ?? {}));
  const first = Math.min(...blocks);
  return first < firstIndexedBlock ? first : 0;
}

function listDeploymentBlocks({
  bridgeDeployedBlockNumber,
  cctpBridgeDeployedBlockNumber,
}: TokenContracts): readonly number[] {
  return [bridgeDeployedBlockNumber, cctpBridgeDeployedBlockNumber].filter((block) => typeof block === "number");
}
