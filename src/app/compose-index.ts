import type { ChainClients } from "../chain/chains.js";
import type { BlockFinder } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { Scheduler } from "../resilience/scheduler.js";
import type { AvailabilityListener } from "../transfers/index/database/postgres-database.js";
import { DeliveryTimes } from "../transfers/index/delivery-times.js";
import type { IndexLocation } from "../transfers/index/index-options.js";
import { TransferLister } from "../transfers/index/list/transfer-lister.js";
import type { IndexSyncListener } from "../transfers/index/sync/index-sync.js";
import type { TransferIndex } from "../transfers/index/transfer-index.js";
import { IndexLookup } from "../transfers/sources/index-lookup.js";
import { StartupError } from "./process-lifecycle.js";

const MIGRATION_RETRY_INTERVAL_MS = 1_000;

/**
 * Opens the transfer index of mainnet; a server is not connected to yet.
 * @throws StartupError when the index cannot be opened
 */
export async function openIndex(location: IndexLocation, logger: Logger): Promise<TransferIndex> {
  const onAvailability: AvailabilityListener = (isAvailable, failure) =>
    isAvailable
      ? logger.info({}, "the index in PostgreSQL is available")
      : logger.warn({ error: failure?.message }, "the index in PostgreSQL is away; statuses come from the chains");
  // Loads the query builder and the driver only when an index is configured: the start is faster without them.
  const { openTransferIndex } = await import("../transfers/index/transfer-index.js");
  return openTransferIndex(location, getNetwork("mainnet"), onAvailability).catch(failStart);
}

/** The transfer index of mainnet as the service runs it. */
export class IndexModule {
  readonly opened: TransferIndex;
  readonly lookup: IndexLookup;
  readonly lister: TransferLister;
  readonly deliveryTimes: DeliveryTimes;
  readonly #from: NonNullable<Config["index"]>["from"];
  readonly #chains: ChainClients;
  readonly #blockTimes: BlockFinder;
  readonly #logger: Logger;
  readonly #network = getNetwork("mainnet");
  readonly #scheduler: Scheduler;
  readonly #shutdown = new AbortController();
  #isMigrating = false;
  #sync: Promise<void> | undefined;

  /** @param from where the index begins */
  constructor({
    opened,
    from,
    chains,
    blockTimes,
    logger,
  }: {
    readonly opened: TransferIndex;
    readonly from: NonNullable<Config["index"]>["from"];
    readonly chains: ChainClients;
    readonly blockTimes: BlockFinder;
    readonly logger: Logger;
  }) {
    this.opened = opened;
    this.#from = from;
    this.#chains = chains;
    this.#blockTimes = blockTimes;
    this.#logger = logger;
    this.lookup = new IndexLookup(opened, this.#network, Date.now);
    this.lister = new TransferLister(opened, this.#network);
    this.deliveryTimes = new DeliveryTimes(this.#network, opened.reader, { now: Date.now, monotonicNow, sleep });
    this.#scheduler = new Scheduler({
      onError: (error) => logger.warn({ error: getErrorMessage(error) }, "delivery times could not be measured"),
    });
  }

  /**
   * Updates the tables and starts to sync the index with the chains: later, where its server is away.
   * @throws StartupError when the tables cannot be updated
   */
  async start(): Promise<void> {
    // What only the operator can change ends the start; a server that is away does not: quotes need no index.
    const isReady = await this.#migrate().then(
      () => true,
      (error: unknown) => (isTemporary(error) ? false : this.opened.close().then(() => failStart(error))),
    );
    if (this.#shutdown.signal.aborted) return;
    await this.opened.watch();
    this.#sync = this.#runSync(isReady).catch((error: unknown) =>
      this.#logger.error({ error: getErrorMessage(error) }, "index sync stopped"),
    );
    this.deliveryTimes.schedule(this.#scheduler);
  }

  async stop(): Promise<void> {
    this.#scheduler.close();
    this.#shutdown.abort();
    // One may take ten minutes. It closes the index at its end, and ends with the process.
    if (this.#isMigrating) return;
    await this.#sync;
    await this.opened.close();
  }

  async #migrate(): Promise<void> {
    this.#isMigrating = true;
    try {
      await this.opened.migrate();
    } finally {
      this.#isMigrating = false;
      if (this.#shutdown.signal.aborted) await this.opened.close();
    }
  }

  async #runSync(isReady: boolean): Promise<void> {
    const { signal } = this.#shutdown;
    if (!isReady) await this.#migrateWhenAvailable(signal);
    const { syncIndex } = await import("../transfers/index/sync/index-sync.js");
    await syncIndex({
      index: this.opened,
      network: this.#network,
      chains: this.#chains.forBackground(this.#network.slug),
      blockAt: (...args) => this.#blockTimes.findBlockAt(...args),
      from: this.#from,
      wallNow: Date.now,
      monotonicNow,
      sleep,
      events: this.#listener(),
      signal,
    });
  }

  async #migrateWhenAvailable(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(MIGRATION_RETRY_INTERVAL_MS, signal);
      try {
        return await this.#migrate();
      } catch (error) {
        if (!signal.aborted)
          this.#logger.warn({ error: getErrorMessage(error) }, "the index cannot be opened; retrying");
      }
    }
  }

  #listener(): IndexSyncListener {
    const logger = this.#logger;
    return {
      onError: (chain, error) => logger.warn({ chain, error: getErrorMessage(error) }, "index sync failed; retrying"),
      onReorg: (chain, depth) => logger.info({ chain, depth }, "reorg detected; reading the replaced blocks again"),
      onLeaseHeld: (chain, holder) =>
        logger.info({ chain, ...holder }, "another process holds the index lease of this chain"),
      onBackfillProgress: (progress) => logger.debug({ ...progress }, "backfill progress"),
    };
  }
}

/** Returns whether an index may become available without a change of the configuration. */
function isTemporary(error: unknown): boolean {
  return error instanceof Error && "isTemporary" in error && error.isTemporary === true;
}

function failStart(error: unknown): never {
  throw new StartupError(getErrorMessage(error));
}
