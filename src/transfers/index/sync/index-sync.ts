import type { ChainClient } from "../../../chain/chain-client.js";
import type { NetworkChainClients } from "../../../chain/chains.js";
import type { Chain, Network } from "../../../hop/networks.js";
import type { IndexStart } from "../index-options.js";
import type { LeaseHolder } from "../leases.js";
import type { TransferIndex } from "../transfer-index.js";
import { AdaptivePageSize, ChainIndexReader } from "./chain-index-reader.js";
import { MAX_RETRY_DELAY_MS, RealtimeSync } from "./realtime-sync.js";

export interface IndexBackfillOptions {
  readonly index: Pick<TransferIndex, "store" | "leases">;
  readonly network: Network;
  readonly chains: NetworkChainClients;
  /** Finds a block at or before a time in Unix seconds. */
  readonly blockAt: (client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal) => Promise<number>;
  /** How far back the history goes. */
  readonly from: IndexStart;
  /** Resolves when the time has passed or the signal fires; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly events: Omit<IndexSyncListener, "onReorg">;
  readonly signal: AbortSignal;
}

type IndexSyncOptions = IndexBackfillOptions & {
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicNow: () => number;
  readonly events: IndexSyncListener;
};

/** Receives the events of a sync. */
export interface IndexSyncListener {
  /**
   * Called when a step fails; the step is retried.
   * @param chain slug of the chain; "all" when no chain is synced meanwhile
   */
  onError(chain: string, error: unknown): void;
  /** @param depth number of removed blocks */
  onReorg(slug: string, depth: number): void;
  /**
   * Called when another process holds the lease of a part; this process takes over when that one ends.
   * @param chain slug of the chain for its backfill; "all" for the realtime sync of all chains
   */
  onLeaseHeld(chain: string, holder: LeaseHolder): void;
  onBackfillProgress(progress: BackfillProgress): void;
}

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

const INITIAL_RETRY_DELAY_MS = 2_000;
/** Pause after each page of a backfill beside the service: requests need the same endpoints, and history is not urgent. */
const BACKFILL_PAUSE_MS = 250;

/**
 * Keeps the index up to date and backfills its history until the signal fires. Of the processes that share an index, one at a
 * time runs the realtime sync, and one at a time the backfill of each chain; the others wait for it to end.
 */
export async function syncIndex(options: IndexSyncOptions): Promise<void> {
  const { index, wallNow, monotonicNow, sleep, events, signal } = options;
  const { onError, onReorg } = events;
  const indexedChains = createIndexedChains(options);
  const realtimeSync = index.leases.run("follow", listenFor("all", events), signal, async (leaseSignal) => {
    const shared = { wallNow, monotonicNow, sleep, onError, onReorg };
    await Promise.all(
      indexedChains.map((indexed) => new RealtimeSync(indexed, index.store, shared, leaseSignal).run()),
    );
  });
  const backfills = indexedChains.map((indexed) => backfillWithRetry(indexed, options, true));
  await Promise.all([realtimeSync, ...backfills]);
}

/** Backfills the history of all chains in parallel, without realtime sync; resolves when it is complete or the signal fires. */
export async function backfillIndex(options: IndexBackfillOptions): Promise<void> {
  await Promise.all(createIndexedChains(options).map((indexed) => backfillWithRetry(indexed, options, false)));
}

function createIndexedChains({ network, chains }: IndexBackfillOptions): readonly ChainIndexReader[] {
  return [...network.chains.values()].map(
    (chain) => new ChainIndexReader(network, chain, chains.getClient(chain.slug)),
  );
}

function listenFor(chain: string, events: IndexBackfillOptions["events"]) {
  return {
    onLeaseHeld: (holder: LeaseHolder) => events.onLeaseHeld(chain, holder),
    onError: (error: unknown) => events.onError(chain, error),
  };
}

/**
 * Backfills one chain under a lease of its own: a chain that does not respond does not block the others.
 * @param isFollowed whether the realtime sync is or will be run by a process of this version, beside requests
 */
async function backfillWithRetry(
  indexed: ChainIndexReader,
  options: IndexBackfillOptions,
  isFollowed: boolean,
): Promise<void> {
  const { index, sleep, events, signal } = options;
  const { slug } = indexed.chain;
  await index.leases.run(`history.${slug}`, listenFor(slug, events), signal, async (leaseSignal) => {
    let retryDelayMs = INITIAL_RETRY_DELAY_MS;
    const onBackfillProgress = (progress: BackfillProgress): void => {
      if (progress.blocksDone > 0) retryDelayMs = INITIAL_RETRY_DELAY_MS;
      events.onBackfillProgress(progress);
    };
    const attempt = { ...options, events: { ...events, onBackfillProgress }, signal: leaseSignal };
    while (!leaseSignal.aborted) {
      try {
        await backfillChain(indexed, attempt, isFollowed);
        return await fillCommits(indexed, attempt, isFollowed);
      } catch (error) {
        if (leaseSignal.aborted) return;
        events.onError(slug, error);
        await sleep(retryDelayMs, leaseSignal);
        retryDelayMs = Math.min(retryDelayMs * 2, MAX_RETRY_DELAY_MS);
      }
    }
  });
}

/**
 * Reads a chain's events backwards from the first indexed block, until the requested start is reached or the signal fires.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not answer; the pages read before are kept
 */
async function backfillChain(
  indexed: ChainIndexReader,
  options: IndexBackfillOptions,
  isFollowed: boolean,
): Promise<void> {
  const { index, network, from, blockAt, sleep, events: listener, signal } = options;
  const { chain, client } = indexed;
  const initialCursor = await indexed.ensureCursor(index.store, signal);
  const deploymentBlock = findDeploymentBlock(network, chain, initialCursor.from_block);
  const requestedStart =
    from.blocks.get(chain.slug) ?? (await blockAt(client, from.timestamp, chain.blockTimeMs, signal));
  const target = Math.max(requestedStart, deploymentBlock);
  const pageSize = new AdaptivePageSize();
  const blocksTotal = Math.max(0, initialCursor.from_block - target);
  let events = 0;
  listener.onBackfillProgress({ chain: chain.slug, blocksDone: 0, blocksTotal, events });
  for (let cursor = initialCursor; cursor.from_block > target && !signal.aborted; ) {
    const range = { from: target, to: cursor.from_block - 1 };
    const page = await indexed.readEventPage(range, { newestFirst: true }, pageSize, signal);
    // A chain has no events before its first contract.
    const isComplete = page.firstBlock.number <= deploymentBlock;
    const { timestamp } = page.firstBlock;
    await index.store.prepend(cursor, isComplete ? { number: 0, timestamp } : page.firstBlock, page.rows);
    events += page.eventCount;
    const blocksDone = initialCursor.from_block - page.firstBlock.number;
    listener.onBackfillProgress({ chain: chain.slug, blocksDone, blocksTotal, events });
    if (isFollowed) await sleep(BACKFILL_PAUSE_MS, signal);
    cursor = await indexed.ensureCursor(index.store, signal);
  }
}

/**
 * Reads the commits of the blocks that a version without commits has indexed, backwards.
 * @throws ServiceError UPSTREAM_UNAVAILABLE as `backfillChain`
 */
async function fillCommits(
  indexed: ChainIndexReader,
  { index: { store }, network, sleep, events: listener, signal }: IndexBackfillOptions,
  isFollowed: boolean,
): Promise<void> {
  const { chain } = indexed;
  const pageSize = new AdaptivePageSize();
  const progress = { chain: chain.slug, blocksDone: 0, events: 0 };
  while (!signal.aborted) {
    const cursor = await indexed.ensureCursor(store, signal);
    if (cursor.commits_to_block !== cursor.to_block) {
      // While a process of an older version follows the chain, each of its polls would undo this.
      if (isFollowed) await sleep(INITIAL_RETRY_DELAY_MS, signal);
      else await store.beginCommits(chain.chainId);
      continue;
    }
    if (cursor.commits_from_block <= cursor.from_block) return;
    const to = cursor.commits_from_block - 1;
    const from = Math.max(cursor.from_block, findDeploymentBlock(network, chain, cursor.commits_from_block));
    const page = await indexed.readRootEvents({ from, to }, pageSize, signal);
    await store.fillCommits(cursor, page.from <= from ? cursor.from_block : page.from, page.leaves, page.commits);
    progress.blocksDone += to - page.from + 1;
    progress.events += page.leaves.length + page.commits.length;
    listener.onBackfillProgress({ ...progress, blocksTotal: progress.blocksDone + Math.max(0, page.from - from) });
    if (isFollowed) await sleep(BACKFILL_PAUSE_MS, signal);
  }
}

/**
 * Returns the block before which a chain has none of Hop's contracts; 0 when the chain is so short that it cannot be the one
 * in the address book, as on a local network.
 */
function findDeploymentBlock({ contracts }: Network, { slug }: Chain, firstIndexedBlock: number): number {
  const blocks = [...contracts.values()].flatMap((byChain) => {
    const { bridgeDeployedBlockNumber, cctpBridgeDeployedBlockNumber } = byChain.get(slug) ?? {};
    return [bridgeDeployedBlockNumber, cctpBridgeDeployedBlockNumber].filter((block) => typeof block === "number");
  });
  const first = Math.min(...blocks);
  return first < firstIndexedBlock ? first : 0;
}
