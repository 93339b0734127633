import type { NetworkChains } from "../../../chain/chains.js";
import type { BlockFinder } from "../../../chain/read/block-finder.js";
import type { Network } from "../../../hop/networks.js";
import type { IndexStart } from "../index-options.js";
import { type LeaseHolder, type LeaseOptions, runWithLease } from "../store/lease.js";
import type { IndexHandle } from "../store/open-index.js";
import { type BackfillOptions, type BackfillProgress, backfillChain } from "./backfill.js";
import { createIndexedChain, type IndexedChain } from "./indexed-chain.js";
import { MAX_RETRY_DELAY_MS, type RealtimeSyncOptions, syncChainRealtime } from "./realtime-sync.js";

export interface IndexSyncOptions {
  readonly index: Pick<IndexHandle, "file" | "store">;
  readonly network: Network;
  readonly chains: NetworkChains;
  readonly blockAt: BlockFinder["findBlockAt"];
  /** How far back the history goes. */
  readonly from: IndexStart;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Milliseconds on a steady clock. */
  readonly monotonicNow: () => number;
  /** Resolves when the time is over or the signal fires; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly pid: number;
  readonly events: IndexSyncListener;
  readonly signal: AbortSignal;
}

/** Told what happens. */
export interface IndexSyncListener {
  /**
   * A step that failed, and is tried again.
   * @param chain its slug; "all": none of them is followed meanwhile
   */
  onError(chain: string, error: unknown): void;
  /** @param depth how many blocks were undone */
  onReorg(slug: string, depth: number): void;
  /**
   * Another process does this part; it is taken over when that one ends.
   * @param chain slug of the chain whose history it is; "all": the following of all of them
   */
  onLeaseHeld(chain: string, holder: LeaseHolder): void;
  onBackfillProgress(progress: BackfillProgress): void;
}

export type IndexBackfillOptions = Pick<
  IndexSyncOptions,
  "index" | "network" | "chains" | "blockAt" | "from" | "sleep" | "pid" | "signal"
> & { readonly events: Omit<IndexSyncListener, "onReorg"> };

const INITIAL_RETRY_DELAY_MS = 2_000;
/** Requests to the service need the same endpoints, and the history has time. */
const BACKFILL_PAUSE_MS = 250;

/**
 * Keeps the index up to date and fills its history until the signal fires. Of the processes that do so on one file one
 * does the following, and one the history of each chain; the others wait for it to end.
 */
export async function syncIndex(options: IndexSyncOptions): Promise<void> {
  const { index, wallNow, monotonicNow, sleep, pid, events, signal } = options;
  const { onError, onReorg } = events;
  const all = createIndexedChains(options);
  const lease: LeaseOptions = {
    pid,
    sleep,
    onLeaseHeld: (holder: LeaseHolder) => events.onLeaseHeld("all", holder),
    onError: (error: unknown) => onError("all", error),
    signal,
  };
  const following = runWithLease(`${index.file}.follow`, lease, async () => {
    const shared: Omit<RealtimeSyncOptions, "indexed"> = {
      store: index.store,
      wallNow,
      monotonicNow,
      sleep,
      onError,
      onReorg,
      signal,
    };
    await Promise.all(all.map((indexed) => syncChainRealtime({ ...shared, indexed })));
  });
  await Promise.all([following, backfillChains(all, options, BACKFILL_PAUSE_MS)]);
}

/** Fills the history alone, of all chains at a time; resolves when it is there or the signal fires. */
export function backfillIndex(options: IndexBackfillOptions): Promise<void> {
  return backfillChains(createIndexedChains(options), options, 0);
}

function createIndexedChains({ network, chains }: IndexBackfillOptions): readonly IndexedChain[] {
  return [...network.chains.values()].map((chain) => createIndexedChain(network, chain, chains.getClient(chain.slug)));
}

async function backfillChains(
  all: readonly IndexedChain[],
  options: IndexBackfillOptions,
  pauseMs: number,
): Promise<void> {
  const { index, network, blockAt, from, sleep, pid, events, signal } = options;
  const shared: Omit<BackfillOptions, "indexed" | "onProgress"> = {
    network,
    store: index.store,
    from,
    blockAt,
    pauseMs,
    sleep,
    signal,
  };

  async function fill(indexed: IndexedChain): Promise<void> {
    const { slug } = indexed.chain;
    const onError = (error: unknown): void => events.onError(slug, error);
    const lease: LeaseOptions = {
      pid,
      sleep,
      onLeaseHeld: (holder: LeaseHolder) => events.onLeaseHeld(slug, holder),
      onError,
      signal,
    };
    // One for each chain: one that does not answer keeps nobody from the others.
    await runWithLease(`${index.file}.history.${slug}`, lease, async () => {
      let retryDelayMs = INITIAL_RETRY_DELAY_MS;
      const onProgress = (progress: BackfillProgress): void => {
        if (progress.blocksDone > 0) retryDelayMs = INITIAL_RETRY_DELAY_MS;
        events.onBackfillProgress(progress);
      };
      while (!signal.aborted) {
        try {
          return await backfillChain({ ...shared, indexed, onProgress });
        } catch (error) {
          if (signal.aborted) return;
          onError(error);
          await sleep(retryDelayMs, signal);
          retryDelayMs = Math.min(retryDelayMs * 2, MAX_RETRY_DELAY_MS);
        }
      }
    });
  }

  await Promise.all(all.map(fill));
}
