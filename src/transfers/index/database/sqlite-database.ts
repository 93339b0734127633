import { setTimeout as sleep } from "node:timers/promises";
import type { DatabaseSyncInstance, DatabaseSyncOptions, StatementSyncInstance } from "@photostructure/sqlite";
import { type CompiledQuery, type SqliteDatabase as Driver, Kysely, SqliteDialect, sql } from "kysely";
import { getErrorMessage } from "../../../errors.js";
import type { MaybePromise } from "../../../resilience/maybe-async.js";
import type { Requester } from "../../../resilience/waiters.js";
import {
  type IndexDatabase,
  IndexUnavailableError,
  runInTransaction,
  type SqlDialect,
  type SqlReadSession,
  type SqlValue,
} from "./index-database.js";
import type { IndexTables } from "./schema.js";

/** A connection to an index file. */
export type SqliteConnection = DatabaseSyncInstance;

/** How long a connection waits for a file that another process has locked. */
const BUSY_TIMEOUT_MS = 5_000;
/** How long another process may take for its migration: indexes of ten million rows take half a minute. */
const MIGRATION_TIMEOUT_MS = 300_000;
/** Interval at which a transaction is retried where the wait must not block the event loop. */
const BUSY_RETRY_DELAY_MS = 20;
/** Of each connection. Large, because keys are random: reads and writes touch pages all over the file. */
const CACHE_SIZE_KIB = 32_768;
/** SQLite's result code for a lock that another connection holds; extended codes have it in their lowest byte. */
const SQLITE_BUSY = 5;

const DIALECT: SqlDialect = {
  bytesType: "blob",
  timeType: "bigint",
  rowId: "rowid",
  // Statements run synchronously: small ones let the event loop serve requests in between.
  rowsPerStatement: 100,
  toHexText(column) {
    const ref = sql.ref(column);
    return sql<string>`case when ${ref} is not null then '0x' || lower(hex(${ref})) end`;
  },
  timeAfter: (ms) => sql`cast(unixepoch('subsec') * 1000 as integer) + ${sql.lit(ms)}`,
};

/**
 * Opens a file with the SQLite driver. The driver is optional, because it has no binary for some platforms, and loaded on
 * first use.
 * @throws IndexUnavailableError when the driver is missing or the file cannot be opened
 */
export async function openSqlite(file: string, options: DatabaseSyncOptions = {}): Promise<SqliteConnection> {
  const { DatabaseSync } = await import("@photostructure/sqlite").catch((cause: unknown) => {
    const message = "the index needs the package @photostructure/sqlite, which is not installed or has no binary for";
    throw new IndexUnavailableError(`${message} this platform: install it, or set INDEX=off`, { cause });
  });
  try {
    return new DatabaseSync(file, { timeout: BUSY_TIMEOUT_MS, ...options });
  } catch (cause) {
    throw new IndexUnavailableError(`the index file ${file} cannot be opened: ${getErrorMessage(cause)}`, { cause });
  }
}

/**
 * Opens an index file, and creates it if it does not exist. Any number of processes may have it open.
 * @throws IndexUnavailableError when the driver is missing or the file cannot be used
 */
export async function openSqliteDatabase(file: string): Promise<SqliteDatabase> {
  const writer = await openSqlite(file);
  try {
    // Readers are not blocked by a writer. A crash of the machine (not of the process) may lose the last transactions; the
    // sync reads their blocks again.
    writer.exec("pragma journal_mode = WAL");
    writer.exec("pragma synchronous = NORMAL");
    // Waits of the driver block the event loop.
    writer.exec("pragma busy_timeout = 0");
    // Reads on the connection that writes would see uncommitted changes.
    const reader = await openSqlite(file, { readOnly: true });
    for (const connection of [writer, reader]) connection.exec(`pragma cache_size = -${CACHE_SIZE_KIB}`);
    return new SqliteDatabase(reader, writer);
  } catch (cause) {
    writer.close();
    if (cause instanceof IndexUnavailableError) throw cause;
    throw new IndexUnavailableError(`the index file ${file} cannot be used: ${getErrorMessage(cause)}`, { cause });
  }
}

/** An index file. */
export class SqliteDatabase implements IndexDatabase {
  readonly name: string;
  readonly dialect = DIALECT;
  readonly isLocal = true;
  readonly builder: Kysely<IndexTables>;
  readonly #reader: SqliteConnection;
  readonly #writer: SqliteConnection;
  readonly #statements = new Map<CompiledQuery<unknown>, (values: readonly SqlValue[]) => unknown[]>();
  /** Reads of one state in progress. All of them end before the event loop goes on, so that they may share a state. */
  #snapshots = 0;

  constructor(reader: SqliteConnection, writer: SqliteConnection) {
    this.name = `the index file ${writer.location()}`;
    this.#reader = reader;
    this.#writer = writer;
    this.builder = new Kysely({ dialect: new SqliteDialect({ database: toDriver(writer) }) });
  }

  query<Row>(statement: CompiledQuery<Row>, values: readonly SqlValue[] = []): readonly Row[] {
    let run = this.#statements.get(statement);
    if (run === undefined) {
      run = prepareRows(this.#reader.prepare(statement.sql, { returnArrays: true }));
      this.#statements.set(statement, run);
    }
    return run(values) as Row[];
  }

  admit<T>(_: Requester, read: () => MaybePromise<T>): MaybePromise<T> {
    return read();
  }

  probe<T>(read: () => MaybePromise<T>): MaybePromise<T> {
    return read();
  }

  async snapshot<T>(read: (session: SqlReadSession) => Promise<T>): Promise<T> {
    if (this.#snapshots++ === 0) this.#reader.exec("begin");
    try {
      return await read(this);
    } finally {
      if (--this.#snapshots === 0) this.#reader.exec("commit");
    }
  }

  transact<T>(work: (transaction: Kysely<IndexTables>) => Promise<T>): Promise<T> {
    return this.#transact(work, BUSY_TIMEOUT_MS);
  }

  migrate(work: (transaction: Kysely<IndexTables>) => Promise<void>): Promise<void> {
    return this.#transact(work, MIGRATION_TIMEOUT_MS);
  }

  notify(): void {
    // Other processes poll: a look at a file takes microseconds.
  }

  async listen(): Promise<void> {}

  async close(): Promise<void> {
    this.#reader.close();
    this.#writer.close();
  }

  /** Retries while another process writes, without blocking the event loop. */
  async #transact<T>(work: (transaction: Kysely<IndexTables>) => Promise<T>, timeoutMs: number): Promise<T> {
    for (let waitedMs = 0; ; waitedMs += BUSY_RETRY_DELAY_MS) {
      try {
        // Takes the write lock at the start, so that a retry has nothing to undo.
        return await runInTransaction(this.builder, "begin immediate", work);
      } catch (error) {
        if (!isSqliteBusy(error) || waitedMs >= timeoutMs) throw error;
      }
      await sleep(BUSY_RETRY_DELAY_MS);
    }
  }
}

/** Adapts the driver to the query builder, which expects that of `better-sqlite3`. */
function toDriver(connection: SqliteConnection): Driver {
  return {
    close: () => {},
    prepare(query) {
      const statement = connection.prepare(query);
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...parameters),
        run: (parameters) => statement.run(...parameters),
        iterate: (parameters) => statement.iterate(...parameters),
      };
    },
  };
}

/** Returns a function that runs a statement with rows as arrays: the driver's own objects are dictionaries, which are slow. */
function prepareRows(statement: StatementSyncInstance): (values: readonly SqlValue[]) => unknown[] {
  const names = statement.columns().map(({ name }) => name);
  const toRow = (values: readonly unknown[]): unknown => {
    const row: Record<string, unknown> = {};
    for (let i = 0; i < names.length; i++) row[names[i] ?? ""] = values[i];
    return row;
  };
  return (values) => statement.all(...values).map(toRow);
}

/** Returns whether an error means that another process holds the lock. */
function isSqliteBusy(error: unknown): boolean {
  return (Number((error as { readonly errcode?: unknown }).errcode) & 0xff) === SQLITE_BUSY;
}
