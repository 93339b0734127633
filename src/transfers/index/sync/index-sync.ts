import type { NetworkChainClients } from "../../../chain/chains.js";
import type { BlockFinder } from "../../../chain/read/block-finder.js";
import type { Network } from "../../../hop/networks.js";
import type { IndexStart } from "../index-options.js";
import { type LeaseHolder, type LeaseOptions, runWithLease } from "../store/lease.js";
import type { IndexHandle } from "../store/open-index.js";
import { type BackfillOptions, type BackfillProgress, backfillChain } from "./backfill.js";
import { type ChainIndexReader, createChainIndexReader } from "./indexed-chain.js";
import { type RealtimeSyncOptions, syncChainRealtime } from "./realtime-sync.js";
import { MAX_RETRY_DELAY_MS } from "./sync-state.js";

/** The index as a sync writes it. */
export type IndexBackfillTarget = Pick<IndexHandle, "store" | "leases">;

export interface IndexSyncOptions {
  readonly index: IndexBackfillTarget;
  readonly network: Network;
  readonly chains: NetworkChainClients;
  readonly blockAt: BlockFinder["findBlockAt"];
  /** How far back the history goes. */
  readonly from: IndexStart;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly monotonicNow: () => number;
  /** Resolves when the time has passed or the signal fires; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly events: IndexSyncListener;
  readonly signal: AbortSignal;
}

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

export type IndexBackfillOptions = Pick<
  IndexSyncOptions,
  "index" | "network" | "chains" | "blockAt" | "from" | "sleep" | "signal"
> & { readonly events: Omit<IndexSyncListener, "onReorg"> };

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
  const lease: LeaseOptions = {
    sleep,
    onLeaseHeld: (holder) => events.onLeaseHeld("all", holder),
    onError: (error) => onError("all", error),
    signal,
  };
  const realtimeSync = runWithLease(index.leases, "follow", lease, async (leaseSignal) => {
    const shared: Omit<RealtimeSyncOptions, "indexed"> = {
      store: index.store,
      wallNow,
      monotonicNow,
      sleep,
      onError,
      onReorg,
      signal: leaseSignal,
    };
    await Promise.all(indexedChains.map((indexed) => syncChainRealtime({ ...shared, indexed })));
  });
  await Promise.all([realtimeSync, backfillChains(indexedChains, options, BACKFILL_PAUSE_MS)]);
}

/** Backfills the history of all chains in parallel, without realtime sync; resolves when it is complete or the signal fires. */
export function backfillIndex(options: IndexBackfillOptions): Promise<void> {
  return backfillChains(createIndexedChains(options), options, 0);
}

function createIndexedChains({ network, chains }: IndexBackfillOptions): readonly ChainIndexReader[] {
  return [...network.chains.values()].map((chain) =>
    createChainIndexReader(network, chain, chains.getClient(chain.slug)),
  );
}

async function backfillChains(
  indexedChains: readonly ChainIndexReader[],
  options: IndexBackfillOptions,
  pauseMs: number,
): Promise<void> {
  const { index, network, blockAt, from, sleep, events, signal } = options;
  const shared: Omit<BackfillOptions, "indexed" | "onProgress" | "signal"> = {
    network,
    store: index.store,
    from,
    blockAt,
    pauseMs,
    sleep,
  };

  async function backfillWithRetry(indexed: ChainIndexReader): Promise<void> {
    const { slug } = indexed.chain;
    const onError = (error: unknown): void => events.onError(slug, error);
    const lease: LeaseOptions = {
      sleep,
      onLeaseHeld: (holder) => events.onLeaseHeld(slug, holder),
      onError,
      signal,
    };
    // One lease per chain: a chain that does not respond does not block the others.
    await runWithLease(index.leases, `history.${slug}`, lease, async (leaseSignal) => {
      let retryDelayMs = INITIAL_RETRY_DELAY_MS;
      const onProgress = (progress: BackfillProgress): void => {
        if (progress.blocksDone > 0) retryDelayMs = INITIAL_RETRY_DELAY_MS;
        events.onBackfillProgress(progress);
      };
      while (!leaseSignal.aborted) {
        try {
          return await backfillChain({ ...shared, indexed, onProgress, signal: leaseSignal });
        } catch (error) {
          if (leaseSignal.aborted) return;
          onError(error);
          await sleep(retryDelayMs, leaseSignal);
          retryDelayMs = Math.min(retryDelayMs * 2, MAX_RETRY_DELAY_MS);
        }
      }
    });
  }

  await Promise.all(indexedChains.map(backfillWithRetry));
}
