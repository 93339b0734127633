import type { ChainClients } from "../chain/chains.js";
import type { BlockFinder } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { createDeliveryTimes, type DeliveryTimes } from "../transfers/delivery-times/delivery-times.js";
import type { IndexCoverage } from "../transfers/index/store/index-coverage.js";
import type { IndexHandle } from "../transfers/index/store/open-index.js";
import type { TransferIndexReader } from "../transfers/index/store/transfer-index.js";
import type { IndexSyncListener } from "../transfers/index/sync/index-sync.js";
import { getPollIntervalMs } from "../transfers/index/sync/reorg-detection.js";
import { createTransferLister, type TransferLister } from "../transfers/list/transfer-lister.js";
import { createIndexLookup, type IndexLookup } from "../transfers/sources/index-source.js";
import { StartupError } from "./startup-error.js";

/** The transfer index as the service runs it. */
export interface IndexModule {
  readonly source: IndexLookup;
  readonly lister: TransferLister;
  readonly deliveryTimes: Pick<DeliveryTimes, "get">;
  /** Returns the indexed range of a chain; undefined: nothing yet. */
  coverage(slug: string): IndexCoverage | undefined;
  /**
   * Opens the index and starts to sync it with the chains.
   * @throws StartupError when the index cannot be opened
   */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface ComposeIndexOptions {
  readonly config: NonNullable<Config["index"]>;
  readonly chains: ChainClients;
  readonly blockTimes: BlockFinder;
  readonly logger: Logger;
}

export function composeIndex({ config, chains, blockTimes, logger }: ComposeIndexOptions): IndexModule {
  const network = getNetwork("mainnet");
  const shutdown = new AbortController();
  let handle: IndexHandle | undefined;
  let sync: Promise<void> | undefined;
  let measurement: Promise<void> | undefined;

  const listener: IndexSyncListener = {
    onError: (chain, error) => logger.warn({ chain, error: getErrorMessage(error) }, "index sync failed; retrying"),
    onReorg: (chain, depth) => logger.info({ chain, depth }, "reorg detected; reading the replaced blocks again"),
    onLeaseHeld: (chain, holder) =>
      logger.info({ chain, ...holder }, "another process holds the index lease of this chain"),
    onBackfillProgress: (progress) => logger.debug({ ...progress }, "backfill progress"),
  };

  const readIndex = <T>(query: (index: TransferIndexReader) => T): T => {
    if (handle === undefined) throw new Error("the index is not open");
    return query(handle.reader);
  };

  const deliveryTimes = createDeliveryTimes({
    network,
    readDelivered(...range) {
      if (handle === undefined) throw new Error("the index is not open");
      return handle.readDelivered(...range);
    },
    ...{ now: Date.now, monotonicNow, sleep },
    onError: (error) => logger.warn({ error: getErrorMessage(error) }, "delivery times could not be measured"),
  });

  return {
    deliveryTimes,
    source: createIndexLookup({
      getIndex: () => handle?.reader,
      network,
      getPollIntervalMs,
      now: Date.now,
    }),
    lister: createTransferLister({ readIndex, network, now: Date.now }),
    coverage: (slug) => handle?.reader.getCoverage(slug),
    async start() {
      // Loads SQLite and the query builder only when an index is configured: the start is faster without them.
      const { openIndex } = await import("../transfers/index/store/open-index.js");
      const { syncIndex } = await import("../transfers/index/sync/index-sync.js");
      handle = await openIndex(config.file, network).catch((error: unknown) => {
        throw new StartupError(getErrorMessage(error));
      });
      measurement = deliveryTimes.run(shutdown.signal);
      sync = syncIndex({
        index: handle,
        network,
        chains: chains.forBackground(network.slug),
        blockAt: blockTimes.findBlockAt,
        from: config.from,
        wallNow: Date.now,
        monotonicNow,
        sleep,
        events: listener,
        signal: shutdown.signal,
      });
      sync.catch((error: unknown) => logger.error({ error: getErrorMessage(error) }, "index sync stopped"));
    },
    async stop() {
      shutdown.abort();
      await sync?.catch(() => {});
      await measurement;
      handle?.close();
      handle = undefined;
    },
  };
}
