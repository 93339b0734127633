import type { Chains } from "../chain/chains.js";
import type { BlockFinder } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import type { IndexHandle } from "../transfers/index/store/open-index.js";
import type { IndexCoverage } from "../transfers/index/store/transfer-index.js";
import type { IndexSyncListener } from "../transfers/index/sync/index-sync.js";
import { getPollIntervalMs } from "../transfers/index/sync/reorg-detection.js";
import { createIndexSource, type IndexSource } from "../transfers/sources/index-source.js";
import { StartupError } from "./startup-error.js";

/** The index of transfers as the service runs it. */
export interface IndexModule {
  readonly source: IndexSource;
  /** How much of a chain is there; undefined: nothing yet. */
  coverage(slug: string): IndexCoverage | undefined;
  /**
   * Opens the index and follows the chains from then on.
   * @throws StartFailure when it cannot be opened
   */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ComposeIndexOptions {
  readonly config: NonNullable<Config["index"]>;
  readonly chains: Chains;
  readonly blockTimes: BlockFinder;
  readonly logger: Logger;
}

export function composeIndex({ config, chains, blockTimes, logger }: ComposeIndexOptions): IndexModule {
  const network = getNetwork("mainnet");
  const closing = new AbortController();
  let open: IndexHandle | undefined;
  let following: Promise<void> | undefined;

  const events: IndexSyncListener = {
    onError: (chain, error) => logger.warn({ chain, error: getErrorMessage(error) }, "the index could not be kept up"),
    onReorg: (chain, depth) => logger.info({ chain, depth }, "blocks were undone: the index reads them again"),
    onLeaseHeld: (chain, { pid }) => logger.info({ chain, pid }, "another process keeps this part of the index"),
    onBackfillProgress: (progress) => logger.debug({ ...progress }, "the index goes back"),
  };

  return {
    source: createIndexSource({
      getIndex: () => open?.reader,
      network,
      getPollIntervalMs,
      now: Date.now,
    }),
    coverage: (slug) => open?.reader.getCoverage(slug),
    async start() {
      // What the index needs is loaded only where there is one.
      const { openIndex } = await import("../transfers/index/store/open-index.js");
      const { syncIndex } = await import("../transfers/index/sync/index-sync.js");
      open = await openIndex(config.file, network).catch((error: unknown) => {
        throw new StartupError(getErrorMessage(error));
      });
      following = syncIndex({
        index: open,
        network,
        chains: chains.forNetwork(network.slug),
        blockAt: blockTimes.findBlockAt,
        from: config.from,
        wallNow: Date.now,
        monotonicNow,
        sleep,
        pid: process.pid,
        events,
        signal: closing.signal,
      });
      following.catch((error: unknown) =>
        logger.error({ error: getErrorMessage(error) }, "the index is not kept up any more"),
      );
    },
    async stop() {
      closing.abort();
      await following?.catch(() => {});
      open?.close();
      open = undefined;
    },
  };
}
