import type { ChainClients } from "../chain/chains.js";
import type { BlockFinder } from "../chain/read/block-finder.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { getNetwork } from "../hop/networks.js";
import type { IndexDatabaseStatus } from "../observability/dependency-status.js";
import type { Logger } from "../observability/log.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { createDeliveryTimes, type DeliveryTimes } from "../transfers/delivery-times/delivery-times.js";
import type { IndexChangeFeed } from "../transfers/index/store/changes/index-changes.js";
import type { IndexCoverage } from "../transfers/index/store/index-coverage.js";
import { IndexUnavailableError } from "../transfers/index/store/index-unavailable-error.js";
import type { DeliveredReader } from "../transfers/index/store/pages/delivered-statement.js";
import type { PostgresIndexLocation } from "../transfers/index/store/postgres/connection/location.js";
import type { PostgresIndex } from "../transfers/index/store/postgres/postgres-index.js";
import type { RemoteIndex } from "../transfers/index/store/postgres/remote-index.js";
import type { TransferIndexReader } from "../transfers/index/store/transfer-index.js";
import type { IndexBackfillTarget, IndexSyncListener } from "../transfers/index/sync/index-sync.js";
import { getPollIntervalMs } from "../transfers/index/sync/reorg-detection.js";
import {
  createTransferLister,
  type TransferLister,
  type TransferListerDeps,
} from "../transfers/list/transfer-lister.js";
import { createIndexLookup, type IndexLookup } from "../transfers/sources/index-source.js";
import { StartupError } from "./startup/startup-error.js";

const OPEN_RETRY_INTERVAL_MS = 1_000;

/** The transfer index as the service runs it. */
export interface IndexModule {
  /** The index in this process; undefined: it is remote. */
  readonly source: IndexLookup | undefined;
  /** The index elsewhere; undefined: it is in this process. */
  readonly remote: RemoteIndex | undefined;
  readonly lister: TransferLister;
  readonly deliveryTimes: Pick<DeliveryTimes, "get">;
  /** Returns the indexed range of a chain; undefined: nothing yet. */
  coverage(slug: string): IndexCoverage | undefined;
  /** Returns what changes in the index; undefined: it is not open. */
  changes(): IndexChangeFeed | undefined;
  /** Returns the state of the database; undefined: the index is in a file, or not open yet. */
  databaseStatus(): IndexDatabaseStatus | undefined;
  /**
   * Opens the index and starts to sync it with the chains. A remote one that is away is opened later.
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

/** An index of either kind. */
interface OpenedIndex extends IndexBackfillTarget {
  readonly readIndex: TransferListerDeps["readIndex"];
  readonly readDelivered: DeliveredReader;
  readonly changes: IndexChangeFeed;
  getCoverage(slug: string): IndexCoverage | undefined;
  readonly getStatus?: () => IndexDatabaseStatus;
  /** Resolves when the tables are there. */
  readonly ready: Promise<void>;
  close(): void | Promise<void>;
}

export function composeIndex({ config, chains, blockTimes, logger }: ComposeIndexOptions): IndexModule {
  const network = getNetwork("mainnet");
  const shutdown = new AbortController();
  const { signal } = shutdown;
  let opened: OpenedIndex | undefined;
  let reader: TransferIndexReader | undefined;
  let remote: RemoteIndex | undefined;
  let work: Promise<unknown> | undefined;

  const listener: IndexSyncListener = {
    onError: (chain, error) => logger.warn({ chain, error: getErrorMessage(error) }, "index sync failed; retrying"),
    onReorg: (chain, depth) => logger.info({ chain, depth }, "reorg detected; reading the replaced blocks again"),
    onLeaseHeld: (chain, holder) =>
      logger.info({ chain, ...holder }, "another process holds the index lease of this chain"),
    onBackfillProgress: (progress) => logger.debug({ ...progress }, "backfill progress"),
  };

  async function openFile(file: string): Promise<OpenedIndex> {
    // Loads SQLite and the query builder only when an index is configured: the start is faster without them.
    const { openIndex } = await import("../transfers/index/store/open-index.js");
    const handle = await openIndex(file, network).catch(failStart);
    reader = handle.reader;
    return {
      ...handle,
      readIndex: (query) => query(handle.reader),
      getCoverage: handle.reader.getCoverage,
      ready: Promise.resolve(),
      close() {
        reader = undefined;
        handle.close();
      },
    };
  }

  async function openPostgres(location: PostgresIndexLocation): Promise<OpenedIndex> {
    const { openPostgresIndex } = await import("../transfers/index/store/postgres/postgres-index.js");
    const { createRemoteIndex } = await import("../transfers/index/store/postgres/remote-index.js");
    const index = await openPostgresIndex({
      ...{ location, network, now: monotonicNow, sleep, signal },
      onAvailability: (isAvailable, failure) =>
        isAvailable
          ? logger.info({}, "the index in PostgreSQL is available")
          : logger.warn({ error: failure?.message }, "the index in PostgreSQL is away; statuses come from the chains"),
    }).catch(failStart);
    // What only the operator can change ends the start; a server that is away does not: quotes need no index.
    const isReady = await index.migrate().then(
      () => true,
      (error: unknown) => (error instanceof IndexUnavailableError && error.isTemporary ? false : failStart(error)),
    );
    await index.watch();
    const source = createRemoteIndex(index.reader, index.monitor, location.poolSize);
    remote = source;
    return {
      ...index,
      async readIndex(query, context) {
        const result = await source.read(query, context);
        if (result === undefined) throw new Error("the index is away");
        return result.value;
      },
      ready: isReady ? Promise.resolve() : migrateWhenAvailable(index),
    };
  }

  async function migrateWhenAvailable(index: Pick<PostgresIndex, "migrate">): Promise<void> {
    while (!signal.aborted) {
      await sleep(OPEN_RETRY_INTERVAL_MS, signal);
      try {
        return await index.migrate();
      } catch (error) {
        if (!signal.aborted) logger.warn({ error: getErrorMessage(error) }, "the index cannot be opened; retrying");
      }
    }
  }

  async function runSync(index: OpenedIndex): Promise<void> {
    await index.ready;
    const { syncIndex } = await import("../transfers/index/sync/index-sync.js");
    await syncIndex({
      ...{ index, network, from: config.from, monotonicNow, sleep, signal },
      chains: chains.forBackground(network.slug),
      blockAt: blockTimes.findBlockAt,
      wallNow: Date.now,
      events: listener,
    });
  }

  function requireIndex(): OpenedIndex {
    if (opened === undefined) throw new Error("the index is not open");
    return opened;
  }

  const deliveryTimes = createDeliveryTimes({
    network,
    readDelivered: (...range) => requireIndex().readDelivered(...range),
    ...{ now: Date.now, monotonicNow, sleep },
    onError: (error) => logger.warn({ error: getErrorMessage(error) }, "delivery times could not be measured"),
  });
  const { location } = config;

  return {
    deliveryTimes,
    source:
      location.kind === "sqlite"
        ? createIndexLookup({ getIndex: () => reader, network, getPollIntervalMs, now: Date.now })
        : undefined,
    remote: location.kind === "postgres" ? { read: async (query, reading) => remote?.read(query, reading) } : undefined,
    lister: createTransferLister({
      readIndex: (query, context) => requireIndex().readIndex(query, context),
      network,
      now: Date.now,
    }),
    coverage: (slug) => opened?.getCoverage(slug),
    changes: () => opened?.changes,
    databaseStatus: () => opened?.getStatus?.(),
    async start() {
      opened = await (location.kind === "sqlite" ? openFile(location.file) : openPostgres(location));
      const sync = runSync(opened).catch((error: unknown) =>
        logger.error({ error: getErrorMessage(error) }, "index sync stopped"),
      );
      work = Promise.all([sync, deliveryTimes.run(signal)]);
    },
    async stop() {
      shutdown.abort();
      await work;
      await opened?.close();
      opened = undefined;
    },
  };
}

function failStart(error: unknown): never {
  throw new StartupError(getErrorMessage(error));
}
