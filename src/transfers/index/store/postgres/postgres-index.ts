import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Kysely } from "kysely";
import type { Network } from "../../../../hop/networks.js";
import type { IndexChangeFeed } from "../changes/index-changes.js";
import { type IndexCoverage, toCoverage } from "../index-coverage.js";
import { createIndexStore, type IndexStore } from "../index-store.js";
import type { DeliveredReader } from "../pages/delivered-statement.js";
import type { IndexTables } from "../schema.js";
import { createPostgresPool, type PostgresPool } from "./connection/connection.js";
import { createPostgresKysely, createPostgresTransactionRunner } from "./connection/database.js";
import type { PostgresFailure } from "./connection/failures.js";
import type { PostgresIndexLocation, PostgresLocation } from "./connection/location.js";
import { CHANGES_CHANNEL, LEASES_CHANNEL, listenForNotifications } from "./connection/notifications.js";
import { createIndexMonitor, type IndexMonitor } from "./index-monitor.js";
import { migrateDatabase } from "./migrate-database.js";
import { createPostgresChangeFeed } from "./postgres-change-feed.js";
import { createPostgresDeliveredReader } from "./postgres-delivered.js";
import { createPostgresReader, type PostgresReader } from "./postgres-reader.js";
import { createRowLeases, type RowLeases } from "./row-lease.js";

type PoolUsage = ReturnType<PostgresPool["usage"]>;

/** The state of the connections and leases of one process. */
export interface PostgresIndexStatus {
  readonly isAvailable: boolean;
  readonly connections: { readonly read: PoolUsage; readonly write: PoolUsage };
  /** Failed statements and connections since the start, by code. */
  readonly failures: ReadonlyMap<string, number>;
  /** Number of leases that this process holds, by kind. */
  readonly leases: { readonly follow: number; readonly history: number };
}

/** The index in PostgreSQL as one process uses it. */
export interface PostgresIndex {
  readonly reader: PostgresReader;
  readonly store: IndexStore;
  readonly leases: RowLeases;
  readonly readDelivered: DeliveredReader;
  readonly changes: IndexChangeFeed;
  readonly monitor: IndexMonitor;
  readonly pools: { readonly read: PostgresPool; readonly write: PostgresPool };
  /** The primary, for statements that no other part has. */
  readonly db: Kysely<IndexTables>;
  /** Returns what the metrics show. */
  getStatus(): PostgresIndexStatus;
  /** Returns the indexed range of a chain as of the last poll; undefined: none is known. */
  getCoverage(slug: string): IndexCoverage | undefined;
  /**
   * Creates or updates the tables.
   * @throws IndexUnavailableError
   */
  migrate(): Promise<void>;
  /** Polls and listens until the signal fires. Resolves when it is known whether the server answers, in two seconds at most. */
  watch(): Promise<void>;
  /** Call it after the signal has fired. */
  close(): Promise<void>;
}

export interface PostgresIndexOptions {
  readonly location: PostgresIndexLocation;
  readonly network: Network;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Resolves when the time has passed or the signal fires; never rejects. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called when the server becomes available or unavailable. */
  readonly onAvailability: (isAvailable: boolean, failure: PostgresFailure | undefined) => void;
  /** Ends waits, polls and notifications, before the index is closed. */
  readonly signal: AbortSignal;
}

/** One transaction at a time per chain that is followed, and heartbeats. */
export const WRITE_CONNECTIONS = 4;
/** A page of the backfill is one statement per table. A statement takes 65,535 values, a row 17 of them. */
const ROWS_PER_STATEMENT = 2_000;
/** How much later than the server's time limit a connection counts as lost. */
const RESPONSE_MARGIN_MS = 1_000;

/** Prepares connections to an index in PostgreSQL; nothing is connected yet. */
export async function openPostgresIndex(options: PostgresIndexOptions): Promise<PostgresIndex> {
  const { location, network, now, sleep, onAvailability, signal } = options;
  const { primary, read, listen, poolSize, statementTimeoutMs } = location;
  // The codes are those of PostgreSQL and of the operating system: a few dozen.
  const failures = new Map<string, number>();
  const pool = (target: PostgresLocation, maxConnections: number): Promise<PostgresPool> =>
    createPostgresPool(target, {
      maxConnections,
      responseTimeoutMs: statementTimeoutMs + RESPONSE_MARGIN_MS,
      onFailure: ({ code }) => failures.set(code, (failures.get(code) ?? 0) + 1),
    });
  const pools = { read: await pool(read ?? primary, poolSize), write: await pool(primary, WRITE_CONNECTIONS) };
  const listeners = new Set<{ readonly onWrite: () => void }>();
  const notifyListeners = (): void => {
    for (const { onWrite } of listeners) onWrite();
  };
  /** Tells the other processes; who misses it polls. */
  const notify = (channel: string): void => void pools.write.query(`notify ${channel}`).catch(() => {});

  const leases = createRowLeases({
    pool: pools.write,
    holder: randomUUID(),
    host: hostname(),
    pid: process.pid,
    now,
    onReleased: () => notify(LEASES_CHANNEL),
  });
  const monitor = createIndexMonitor({ pool: pools.read, sleep, onChange: notifyListeners, onAvailability });
  const db = createPostgresKysely<IndexTables>(pools.write, { sleep, signal });

  /** Throws unless this process still has every lease that it believes to have. */
  async function assertLeases(transaction: Kysely<IndexTables>): Promise<void> {
    const fences = leases.fences();
    if (fences.size === 0) return;
    const rows = await (transaction as unknown as Kysely<{ leases: { name: string; fence: number } }>)
      .selectFrom("leases")
      .select(["name", "fence"])
      .where("name", "in", [...fences.keys()])
      .execute();
    if (rows.filter(({ name, fence }) => fences.get(name) === fence).length === fences.size) return;
    leases.loseAll();
    throw new Error("another process has taken over the index");
  }

  function handleNotification(channel: string): void {
    if (channel === LEASES_CHANNEL) leases.wake();
    else monitor.poll();
  }

  let background: Promise<unknown> | undefined;
  return {
    reader: createPostgresReader({ pool: pools.read, network, statementTimeoutMs }),
    store: createIndexStore(
      db,
      createPostgresTransactionRunner(db, statementTimeoutMs, assertLeases),
      () => {
        notify(CHANGES_CHANNEL);
        monitor.poll();
      },
      ROWS_PER_STATEMENT,
    ),
    leases,
    readDelivered: createPostgresDeliveredReader(pools.read),
    changes: createPostgresChangeFeed(pools.read, statementTimeoutMs, (onWrite) => {
      const listener = { onWrite };
      listeners.add(listener);
      return () => listeners.delete(listener);
    }),
    monitor,
    pools,
    db,
    getStatus() {
      const held = [...leases.fences().keys()];
      const follow = held.filter((name) => name === "follow").length;
      return {
        isAvailable: monitor.isAvailable(),
        connections: { read: pools.read.usage(), write: pools.write.usage() },
        failures,
        leases: { follow, history: held.length - follow },
      };
    },
    getCoverage(slug) {
      const chain = network.chains.get(slug);
      return chain && toCoverage(monitor.getCursor(chain.chainId));
    },
    migrate: () => migrateDatabase(createPostgresKysely<IndexTables>(pools.write)),
    watch() {
      return new Promise((resolve) => {
        background = Promise.all([
          monitor.run(signal, resolve),
          listen && listenForNotifications({ location: listen, onNotification: handleNotification, sleep, signal }),
        ]);
      });
    },
    async close() {
      leases.close();
      await background;
      await Promise.all([pools.read.end(), pools.write.end()]);
    },
  };
}
