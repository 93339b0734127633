import type { Network } from "../../hop/networks.js";
import { monotonicNow, sleep } from "../../resilience/clock.js";
import { Scheduler } from "../../resilience/scheduler.js";
import { ChangeFeed } from "./change-feed.js";
import { compileStatements } from "./compiled-statements.js";
import type { IndexDatabase } from "./database/index-database.js";
import { migrateIndex } from "./database/migrations.js";
import type { AvailabilityListener } from "./database/postgres-database.js";
import type { IndexLocation } from "./index-options.js";
import { IndexReader } from "./index-reader.js";
import { IndexStore } from "./index-store.js";
import { HEARTBEAT_INTERVAL_MS, Leases } from "./leases.js";
import type { IndexCoverage } from "./row-mapping.js";

const POLL_INTERVAL_MS = 1_000;

/**
 * Opens an index; a server is not connected to yet. Loads only what its database needs.
 * @param onAvailability called when a server becomes available or unavailable
 * @throws IndexUnavailableError when the file, or the driver for it, cannot be used
 */
export async function openTransferIndex(
  location: IndexLocation,
  network: Network,
  onAvailability: AvailabilityListener = () => {},
): Promise<TransferIndex> {
  if (location.kind === "sqlite") {
    const { openSqliteDatabase } = await import("./database/sqlite-database.js");
    return new TransferIndex(await openSqliteDatabase(location.file), network);
  }
  const { openPostgresDatabase } = await import("./database/postgres-database.js");
  return new TransferIndex(await openPostgresDatabase(location, onAvailability), network);
}

/** The transfer index as one process uses it, in any database. */
export class TransferIndex {
  readonly database: IndexDatabase;
  readonly reader: IndexReader;
  readonly store: IndexStore;
  readonly changes: ChangeFeed;
  /** For the work that one process does for all that share the index. */
  readonly leases: Leases;
  readonly #scheduler = new Scheduler();
  readonly #closing = new AbortController();
  #listening: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #coverage: ReadonlyMap<string, IndexCoverage> = new Map();
  #sequence = 0;

  constructor(database: IndexDatabase, network: Network) {
    const statements = compileStatements(database.builder, database.dialect);
    this.database = database;
    this.reader = new IndexReader(database, statements, network);
    this.changes = new ChangeFeed(database, statements);
    this.leases = new Leases(database, { now: monotonicNow, sleep });
    const transact: IndexDatabase["transact"] = (work) =>
      database.transact(async (transaction) => {
        await this.leases.assertHeld(transaction);
        return work(transaction);
      });
    this.store = new IndexStore(database, transact, () => {
      this.changes.announce();
      database.notify();
    });
    this.#scheduler.every("renew leases", HEARTBEAT_INTERVAL_MS, () => this.leases.renew());
  }

  /**
   * Creates or updates the tables.
   * @throws IndexUnavailableError
   */
  migrate(): Promise<void> {
    return migrateIndex(this.database);
  }

  /** Polls and listens until the index is closed. Resolves when it is known whether a server answers, in two seconds at most. */
  async watch(): Promise<void> {
    const poll = this.#scheduler.every("poll the index", POLL_INTERVAL_MS, () => this.#poll());
    this.#listening = this.database.listen(() => poll.runNow(), this.#closing.signal);
    await this.#poll().catch(() => {});
  }

  /** Returns the indexed range of a chain as of the last poll; undefined: none is known. */
  getCoverage(slug: string): IndexCoverage | undefined {
    return this.#coverage.get(slug);
  }

  /**
   * Returns what the metrics show of a server, with the number of leases that this process holds, by kind; undefined for a
   * file.
   */
  getServerStatus() {
    const status = this.database.getServerStatus?.();
    const names = this.leases.list();
    const follow = names.filter((name) => name === "follow").length;
    return status && { ...status, leases: { follow, history: names.length - follow } };
  }

  /** Closes the index; does nothing more when it is closed already. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#scheduler.close();
    this.#closing.abort();
    await this.#listening;
    await this.database.close();
  }

  async #poll(): Promise<void> {
    const [sequence, coverage] = await this.database.probe(async () => {
      return [await this.changes.readSequence(), await this.reader.readCoverage()] as const;
    });
    this.#coverage = coverage;
    if (sequence === this.#sequence) return;
    this.#sequence = sequence;
    this.changes.announce();
  }
}
