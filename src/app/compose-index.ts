import type { Chains } from "../chain/chains.js";
import type { BlockTimes } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import { messageOf } from "../errors.js";
import { networkOf } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import { pause, steadyNow } from "../resilience/clock.js";
import type { OpenIndex } from "../transfers/index/store/open-index.js";
import type { IndexCoverage } from "../transfers/index/store/transfer-index.js";
import type { IndexEvents } from "../transfers/index/sync/index-sync.js";
import { pollMsOf } from "../transfers/index/sync/reorg-detection.js";
import { createIndexSource, type IndexSource } from "../transfers/sources/index-source.js";
import { StartFailure } from "./startup-error.js";

/** The index of transfers as the service runs it. */
export interface Indexing {
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

export interface IndexingOptions {
  readonly config: NonNullable<Config["index"]>;
  readonly chains: Chains;
  readonly blockTimes: BlockTimes;
  readonly logger: Logger;
}

export function createIndexing({ config, chains, blockTimes, logger }: IndexingOptions): Indexing {
  const network = networkOf("mainnet");
  const closing = new AbortController();
  let open: OpenIndex | undefined;
  let following: Promise<void> | undefined;

  const events: IndexEvents = {
    onTrouble: (chain, error) => logger.warn({ chain, problem: messageOf(error) }, "the index could not be kept up"),
    onReorg: (chain, depth) => logger.info({ chain, depth }, "blocks were undone: the index reads them again"),
    onHeld: (chain, { pid }) => logger.info({ chain, pid }, "another process keeps this part of the index"),
    onHistory: (progress) => logger.debug({ ...progress }, "the index goes back"),
  };

  return {
    source: createIndexSource({
      index: () => open?.reader,
      network,
      pollMs: pollMsOf,
      now: Date.now,
    }),
    coverage: (slug) => open?.reader.coverage(slug),
    async start() {
      // What the index needs is loaded only where there is one.
      const { openIndex } = await import("../transfers/index/store/open-index.js");
      const { followIndex } = await import("../transfers/index/sync/index-sync.js");
      open = await openIndex(config.file, network).catch((error: unknown) => {
        throw new StartFailure(messageOf(error));
      });
      following = followIndex({
        index: open,
        network,
        chains: chains.of(network.slug),
        blockAt: blockTimes.blockAt,
        from: config.from,
        wallNow: Date.now,
        steadyNow,
        sleep: pause,
        pid: process.pid,
        events,
        signal: closing.signal,
      });
      following.catch((error: unknown) =>
        logger.error({ problem: messageOf(error) }, "the index is not kept up any more"),
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
