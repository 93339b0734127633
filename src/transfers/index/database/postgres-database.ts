import { type CompiledQuery, Kysely, PostgresDialect, type PostgresPoolClient, sql } from "kysely";
import { withTimeout } from "../../../resilience/abort-scope.js";
import { FairSemaphore } from "../../../resilience/fair-semaphore.js";
import type { MaybePromise } from "../../../resilience/maybe-async.js";
import type { Requester } from "../../../resilience/waiters.js";
import {
  type DatabaseServerStatus,
  type IndexDatabase,
  runInTransaction,
  type SqlDialect,
  type SqlReadSession,
  type SqlValue,
} from "./index-database.js";
import { PostgresFailure } from "./postgres-failures.js";
import type { PostgresIndexLocation, PostgresLocation } from "./postgres-location.js";
import { CHANNEL, listenForNotifications } from "./postgres-notifications.js";
import { openPostgresPool, type PostgresPool } from "./postgres-pool.js";
import type { IndexTables } from "./schema.js";

/** One transaction at a time per chain that is followed, and heartbeats. */
export const WRITE_CONNECTIONS = 4;
/** How much later than the server's time limit a connection counts as lost. */
const RESPONSE_MARGIN_MS = 1_000;
/** Longest time that a read takes once it has its turn; lookups then ask the chains. */
const READ_TIMEOUT_MS = 1_000;
/** A server that takes longer to answer a probe counts as away. */
const PROBE_TIMEOUT_MS = 2_000;
/** A writer whose process hangs must not keep its locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
/** Indexes of ten million rows take half a minute; others wait as long. */
const MIGRATION_TIMEOUT_MS = 600_000;
/** Any number that nothing else locks in this database. */
const MIGRATION_LOCK_KEY = 7_166_823_345_101n;

const DIALECT: SqlDialect = {
  bytesType: "bytea",
  timeType: "timestamptz",
  rowId: "ctid",
  // A page of the backfill is one statement per table. A statement takes 65,535 values, a row 17 of them.
  rowsPerStatement: 2_000,
  toHexText: (column) => sql<string>`'0x' || encode(${sql.ref(column)}, 'hex')`,
  timeAfter: (ms) => sql`clock_timestamp() + make_interval(secs => ${sql.lit(ms / 1_000)})`,
};

/** Called when the server becomes available or unavailable. */
export type AvailabilityListener = (isAvailable: boolean, failure: PostgresFailure | undefined) => void;

/** Prepares connections to an index in PostgreSQL; nothing is connected yet. */
export async function openPostgresDatabase(
  location: PostgresIndexLocation,
  onAvailability: AvailabilityListener,
): Promise<PostgresDatabase> {
  const { primary, read, poolSize, statementTimeoutMs } = location;
  // The codes are those of PostgreSQL and of the operating system: a few dozen.
  const failures = new Map<string, number>();
  const open = (target: PostgresLocation, maxConnections: number): Promise<PostgresPool> =>
    openPostgresPool(target, {
      maxConnections,
      responseTimeoutMs: statementTimeoutMs + RESPONSE_MARGIN_MS,
      onFailure: ({ code }) => failures.set(code, (failures.get(code) ?? 0) + 1),
    });
  const pools = { read: await open(read ?? primary, poolSize), write: await open(primary, WRITE_CONNECTIONS) };
  return new PostgresDatabase(location, pools, failures, onAvailability);
}

/** An index in PostgreSQL. Works behind a pooler that assigns servers per transaction: nothing outlives one. */
export class PostgresDatabase implements IndexDatabase {
  readonly name = "the index in PostgreSQL";
  readonly dialect = DIALECT;
  readonly isLocal = false;
  readonly builder: Kysely<IndexTables>;
  readonly pools: Readonly<Record<"read" | "write", Pick<PostgresPool, "query" | "connect" | "usage" | "end">>>;
  readonly #location: PostgresIndexLocation;
  readonly #failures: ReadonlyMap<string, number>;
  readonly #onAvailability: AvailabilityListener;
  readonly #turns: FairSemaphore;
  /** Whether the last statement that needed the server succeeded: otherwise requests do not wait for it. */
  #isAvailable = false;

  constructor(
    location: PostgresIndexLocation,
    pools: PostgresDatabase["pools"],
    failures: ReadonlyMap<string, number>,
    onAvailability: AvailabilityListener,
  ) {
    this.#location = location;
    this.pools = pools;
    this.#failures = failures;
    this.#onAvailability = onAvailability;
    // One caller alone takes half of the connections.
    this.#turns = new FairSemaphore(Math.max(1, Math.floor(location.poolSize / 2)));
    this.builder = createBuilder(() => pools.write.connect());
  }

  async query<Row>(statement: CompiledQuery<Row>, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return (await this.pools.read.query<Row>(statement.sql, values, statement.queryId.queryId)).rows;
  }

  async admit<T>({ caller, waiters, signal }: Requester, read: () => MaybePromise<T>): Promise<T> {
    this.#assertAvailable();
    return this.#turns.acquire(waiters ?? caller, signal, () => {
      // It may have gone away while this read waited for its turn.
      this.#assertAvailable();
      return withinTime(READ_TIMEOUT_MS, read).catch((error: unknown) => {
        // A statement that the server refused says nothing about the next one.
        if (error instanceof PostgresFailure && error.isUnavailable) this.#setAvailable(false, error);
        throw error;
      });
    });
  }

  async probe<T>(read: () => MaybePromise<T>): Promise<T> {
    try {
      const value = await withinTime(PROBE_TIMEOUT_MS, read);
      this.#setAvailable(true);
      return value;
    } catch (error) {
      this.#setAvailable(false, error instanceof PostgresFailure ? error : undefined);
      throw error;
    }
  }

  async snapshot<T>(read: (session: SqlReadSession) => Promise<T>): Promise<T> {
    const timeout = `set local statement_timeout = ${this.#location.statementTimeoutMs}`;
    const client = await this.pools.read.connect();
    try {
      await client.query(`begin isolation level repeatable read read only; ${timeout}`);
      // Nothing is prepared in a transaction, which would not survive the loss of a prepared statement.
      return await read({
        query: async <Row>({ sql: text }: CompiledQuery<Row>, values?: readonly SqlValue[]) =>
          (await client.query<Row>(text, values)).rows,
      });
    } finally {
      await client.query("commit").catch(() => {});
      client.release();
    }
  }

  transact<T>(work: (transaction: Kysely<IndexTables>) => Promise<T>): Promise<T> {
    const { statementTimeoutMs } = this.#location;
    // One message to the server, and no setting outlives the transaction: a pooler may give the connection to others.
    const begin = [
      "begin",
      `set local statement_timeout = ${statementTimeoutMs}`,
      `set local lock_timeout = ${statementTimeoutMs}`,
      `set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS}`,
    ].join("; ");
    return runInTransaction(this.builder, begin, work);
  }

  migrate(work: (transaction: Kysely<IndexTables>) => Promise<void>): Promise<void> {
    const begin = [
      "begin",
      `set local statement_timeout = ${MIGRATION_TIMEOUT_MS}`,
      `select pg_advisory_xact_lock(${MIGRATION_LOCK_KEY}::bigint)`,
    ].join("; ");
    const connect = () => this.pools.write.connect(MIGRATION_TIMEOUT_MS + RESPONSE_MARGIN_MS);
    return runInTransaction(createBuilder(connect), begin, work);
  }

  notify(): void {
    void this.pools.write.query(`notify ${CHANNEL}`).catch(() => {});
  }

  async listen(onNotification: () => void, signal: AbortSignal): Promise<void> {
    const { listen } = this.#location;
    if (listen !== undefined) await listenForNotifications(listen, onNotification, signal);
  }

  getServerStatus(): DatabaseServerStatus {
    const { read, write } = this.pools;
    return {
      isAvailable: this.#isAvailable,
      connections: { read: read.usage(), write: write.usage() },
      failures: this.#failures,
    };
  }

  async close(): Promise<void> {
    await Promise.all([this.pools.read.end(), this.pools.write.end()]);
  }

  #assertAvailable(): void {
    if (!this.#isAvailable) throw new PostgresFailure("", "the server is away");
  }

  #setAvailable(isAvailable: boolean, failure?: PostgresFailure): void {
    if (this.#isAvailable === isAvailable) return;
    this.#isAvailable = isAvailable;
    this.#onAvailability(isAvailable, failure);
  }
}

/** Creates a query builder. Its connections lack the cursors of the driver, which nothing uses. */
function createBuilder(connect: PostgresPool["connect"]): Kysely<IndexTables> {
  const connectClient = async () => (await connect()) as unknown as PostgresPoolClient;
  return new Kysely({ dialect: new PostgresDialect({ pool: { connect: connectClient, end: async () => {} } }) });
}

/** @throws PostgresFailure when it takes longer */
async function withinTime<T>(timeoutMs: number, read: () => MaybePromise<T>): Promise<T> {
  // Before the timer, which nobody would stop if the read throws at once.
  const result = Promise.resolve(read());
  return withTimeout(result, timeoutMs, () => {
    throw new PostgresFailure("ETIMEDOUT");
  });
}
