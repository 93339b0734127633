import type { ChainAccess } from "../../../chain/chains.js";
import type { BlockTimes } from "../../../chain/read/block-finder.js";
import type { Network } from "../../../hop/networks.js";
import type { IndexFrom } from "../index-options.js";
import { type Holder, underLease } from "../store/lease.js";
import type { OpenIndex } from "../store/open-index.js";
import { fillHistory, type HistoryProgress } from "./backfill.js";
import { type IndexedChain, indexedChain } from "./indexed-chain.js";
import { followChain, longestPauseMs } from "./realtime-sync.js";

export interface FollowIndexOptions {
  readonly index: Pick<OpenIndex, "file" | "store">;
  readonly network: Network;
  readonly chains: ChainAccess;
  readonly blockAt: BlockTimes["blockAt"];
  /** How far back the history goes. */
  readonly from: IndexFrom;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Milliseconds on a steady clock. */
  readonly steadyNow: () => number;
  /** Resolves when the time is over or the signal fires; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly pid: number;
  readonly events: IndexEvents;
  readonly signal: AbortSignal;
}

/** Told what happens. */
export interface IndexEvents {
  /**
   * A step that failed, and is tried again.
   * @param chain its slug; "all": none of them is followed meanwhile
   */
  onTrouble(chain: string, error: unknown): void;
  /** @param depth how many blocks were undone */
  onReorg(slug: string, depth: number): void;
  /**
   * Another process does this part; it is taken over when that one ends.
   * @param chain slug of the chain whose history it is; "all": the following of all of them
   */
  onHeld(chain: string, holder: Holder): void;
  onHistory(progress: HistoryProgress): void;
}

export type FillIndexOptions = Pick<
  FollowIndexOptions,
  "index" | "network" | "chains" | "blockAt" | "from" | "sleep" | "pid" | "signal"
> & { readonly events: Omit<IndexEvents, "onReorg"> };

const firstPauseMs = 2_000;
/** Requests to the service need the same endpoints, and the history has time. */
const restBesideMs = 250;

/**
 * Keeps the index up to date and fills its history until the signal fires. Of the processes that do so on one file one
 * does the following, and one the history of each chain; the others wait for it to end.
 */
export async function followIndex(options: FollowIndexOptions): Promise<void> {
  const { index, wallNow, steadyNow, sleep, pid, events, signal } = options;
  const { onTrouble, onReorg } = events;
  const all = indexedChains(options);
  const lease = {
    pid,
    sleep,
    onHeld: (holder: Holder) => events.onHeld("all", holder),
    onTrouble: (error: unknown) => onTrouble("all", error),
    signal,
  };
  const following = underLease(`${index.file}.follow`, lease, async () => {
    const shared = { store: index.store, wallNow, steadyNow, sleep, onTrouble, onReorg, signal };
    await Promise.all(all.map((indexed) => followChain({ ...shared, indexed })));
  });
  await Promise.all([following, fillAll(all, options, restBesideMs)]);
}

/** Fills the history alone, of all chains at a time; resolves when it is there or the signal fires. */
export function fillIndex(options: FillIndexOptions): Promise<void> {
  return fillAll(indexedChains(options), options, 0);
}

function indexedChains({ network, chains }: FillIndexOptions): readonly IndexedChain[] {
  return [...network.chains.values()].map((chain) => indexedChain(network, chain, chains.client(chain.slug)));
}

async function fillAll(all: readonly IndexedChain[], options: FillIndexOptions, restMs: number): Promise<void> {
  const { index, network, blockAt, from, sleep, pid, events, signal } = options;
  const shared = { network, store: index.store, from, blockAt, restMs, sleep, signal };

  async function fill(indexed: IndexedChain): Promise<void> {
    const { slug } = indexed.chain;
    const onTrouble = (error: unknown): void => events.onTrouble(slug, error);
    const lease = { pid, sleep, onHeld: (holder: Holder) => events.onHeld(slug, holder), onTrouble, signal };
    // One for each chain: one that does not answer keeps nobody from the others.
    await underLease(`${index.file}.history.${slug}`, lease, async () => {
      let pauseMs = firstPauseMs;
      const onProgress = (progress: HistoryProgress): void => {
        if (progress.done > 0) pauseMs = firstPauseMs;
        events.onHistory(progress);
      };
      while (!signal.aborted) {
        try {
          return await fillHistory({ ...shared, indexed, onProgress });
        } catch (error) {
          if (signal.aborted) return;
          onTrouble(error);
          await sleep(pauseMs, signal);
          pauseMs = Math.min(pauseMs * 2, longestPauseMs);
        }
      }
    });
  }

  await Promise.all(all.map(fill));
}
