import type { ChainClients } from "../chain/chains.js";
import type { BlockFinder } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { Scheduler } from "../resilience/scheduler.js";
import type { IndexChangeFeed } from "../transfers/index/change-feed.js";
import type { AvailabilityListener } from "../transfers/index/database/postgres-database.js";
import { DeliveryTimes } from "../transfers/index/delivery-times.js";
import type { IndexLocation } from "../transfers/index/index-options.js";
import type { IndexReader, ReadIndex } from "../transfers/index/index-reader.js";
import { TransferLister } from "../transfers/index/list/transfer-lister.js";
import type { IndexCoverage } from "../transfers/index/row-mapping.js";
import type { IndexSyncListener } from "../transfers/index/sync/index-sync.js";
import type { TransferIndex } from "../transfers/index/transfer-index.js";
import { IndexLookup } from "../transfers/sources/index-lookup.js";
import { StartupError } from "./process-lifecycle.js";

const OPEN_RETRY_INTERVAL_MS = 1_000;

/** The transfer index of mainnet as the service runs it. */
export class IndexModule {
  readonly lookup: IndexLookup;
  readonly lister: TransferLister;
  readonly deliveryTimes: DeliveryTimes;
  readonly #config: NonNullable<Config["index"]>;
  readonly #chains: ChainClients;
  readonly #blockTimes: BlockFinder;
  readonly #logger: Logger;
  readonly #network = getNetwork("mainnet");
  readonly #scheduler: Scheduler;
  readonly #shutdown = new AbortController();
  #index: TransferIndex | undefined;
  #sync: Promise<void> | undefined;

  constructor(config: NonNullable<Config["index"]>, chains: ChainClients, blockTimes: BlockFinder, logger: Logger) {
    this.#config = config;
    this.#chains = chains;
    this.#blockTimes = blockTimes;
    this.#logger = logger;
    const read: ReadIndex<keyof IndexReader> = (query, requester) => {
      const { database, reader } = this.#requireIndex();
      return database.admit(requester, () => query(reader));
    };
    this.lookup = new IndexLookup(read, this.#network, Date.now);
    this.lister = new TransferLister(read, this.#network);
    this.deliveryTimes = new DeliveryTimes(
      this.#network,
      (chainId, before, limit) => this.#requireIndex().reader.readDelivered(chainId, before, limit),
      { now: Date.now, monotonicNow, sleep },
    );
    this.#scheduler = new Scheduler({
      onError: (error) => logger.warn({ error: getErrorMessage(error) }, "delivery times could not be measured"),
    });
  }

  /** Whether lookups are answered in this process, at once. */
  get isLocal(): boolean {
    return this.#config.location.kind === "sqlite";
  }

  /** Returns the indexed range of a chain; undefined: nothing yet. */
  getCoverage(slug: string): IndexCoverage | undefined {
    return this.#index?.getCoverage(slug);
  }

  /** Returns what changes in the index; undefined: it is not open. */
  getChanges(): IndexChangeFeed | undefined {
    return this.#index?.changes;
  }

  /** Returns the state of the database server; undefined: the index is in a file, or not open yet. */
  getServerStatus(): ReturnType<TransferIndex["getServerStatus"]> {
    return this.#index?.getServerStatus();
  }

  /**
   * Opens the index and starts to sync it with the chains. One whose server is away is opened later.
   * @throws StartupError when the index cannot be opened
   */
  async start(): Promise<void> {
    const index = await this.#open(this.#config.location);
    // What only the operator can change ends the start; a server that is away does not: quotes need no index.
    const isReady = await index.migrate().then(
      () => true,
      (error: unknown) => (isTemporary(error) ? false : index.close().then(() => failStart(error))),
    );
    await index.watch();
    this.#index = index;
    this.#sync = this.#runSync(index, isReady).catch((error: unknown) =>
      this.#logger.error({ error: getErrorMessage(error) }, "index sync stopped"),
    );
    this.deliveryTimes.schedule(this.#scheduler);
  }

  async stop(): Promise<void> {
    this.#scheduler.close();
    this.#shutdown.abort();
    await this.#sync;
    await this.#index?.close();
    this.#index = undefined;
  }

  async #open(location: IndexLocation): Promise<TransferIndex> {
    const onAvailability: AvailabilityListener = (isAvailable, failure) =>
      isAvailable
        ? this.#logger.info({}, "the index in PostgreSQL is available")
        : this.#logger.warn(
            { error: failure?.message },
            "the index in PostgreSQL is away; statuses come from the chains",
          );
    // Loads the query builder and the driver only when an index is configured: the start is faster without them.
    const { openTransferIndex } = await import("../transfers/index/transfer-index.js");
    return openTransferIndex(location, this.#network, onAvailability).catch(failStart);
  }

  async #runSync(index: TransferIndex, isReady: boolean): Promise<void> {
    const { signal } = this.#shutdown;
    if (!isReady) await this.#migrateWhenAvailable(index, signal);
    const { syncIndex } = await import("../transfers/index/sync/index-sync.js");
    await syncIndex({
      index,
      network: this.#network,
      chains: this.#chains.forBackground(this.#network.slug),
      blockAt: (...args) => this.#blockTimes.findBlockAt(...args),
      from: this.#config.from,
      wallNow: Date.now,
      monotonicNow,
      sleep,
      events: this.#listener(),
      signal,
    });
  }

  async #migrateWhenAvailable(index: TransferIndex, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(OPEN_RETRY_INTERVAL_MS, signal);
      try {
        return await index.migrate();
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

  #requireIndex(): TransferIndex {
    if (this.#index === undefined) throw new Error("the index is not open");
    return this.#index;
  }
}

/** Returns whether an index may become available without a change of the configuration. */
function isTemporary(error: unknown): boolean {
  return error instanceof Error && "isTemporary" in error && error.isTemporary === true;
}

function failStart(error: unknown): never {
  throw new StartupError(getErrorMessage(error));
}
