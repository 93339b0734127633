import type { Database, Options } from "better-sqlite3";
import { type ColumnDataType, Kysely, type RawBuilder, SqliteDialect, sql } from "kysely";
import { IndexUnavailableError } from "../index-unavailable-error.js";
import { assertSafeDriver, BUILD_DRIVER } from "./driver-binary.js";

// Everything specific to SQLite connections: another database needs a counterpart of this file.

/** A connection to an index file. */
export type SqliteConnection = Database;

/** Column type for bytes. */
export const BYTES_COLUMN_TYPE: ColumnDataType = "blob";

/** How long a connection waits for a file that another process has locked. The wait blocks the event loop. */
const BUSY_TIMEOUT_MS = 5_000;
/** Interval at which a transaction is retried where the wait must not block the event loop. */
const BUSY_RETRY_DELAY_MS = 20;
/** Large, because keys are random and every write touches pages all over the file. */
const CACHE_SIZE_KIB = 32_768;

/**
 * Opens a file with the SQLite driver. The driver is optional and loaded on first use; its native part is built on demand.
 * @throws IndexUnavailableError when the driver is missing or unsafe, or the file cannot be opened
 */
export async function openSqlite(file: string, options: Options = {}): Promise<SqliteConnection> {
  await assertSafeDriver();
  const driver = await import("better-sqlite3").catch((cause: unknown) => {
    throw missingDriverError(cause);
  });
  try {
    return new driver.default(file, { timeout: BUSY_TIMEOUT_MS, ...options });
  } catch (cause) {
    // The driver throws a TypeError for a missing folder.
    if (!(cause instanceof driver.default.SqliteError) && !(cause instanceof TypeError))
      throw missingDriverError(cause);
    throw new IndexUnavailableError(`the index file ${file} cannot be opened: ${cause.message}`, { cause });
  }
}

/**
 * Enables write-ahead logging, so that readers are not blocked by a writer. A crash of the machine (not of the process) may
 * lose the last transactions; the sync reads their blocks again.
 * @throws IndexUnavailableError when the file is not a database
 */
export function enableWriteAheadLog(connection: SqliteConnection): void {
  try {
    connection.pragma("journal_mode = WAL");
    connection.pragma("synchronous = NORMAL");
    connection.pragma(`cache_size = -${CACHE_SIZE_KIB}`);
  } catch (cause) {
    throw new IndexUnavailableError(`the index file ${connection.name} cannot be used: ${String(cause)}`, { cause });
  }
}

export function createKysely<Tables>(connection: SqliteConnection): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) });
}

/**
 * Returns an expression for the bytes of a column as lower-case hex with 0x, null for null. As text they reach JavaScript
 * several times faster than as a buffer.
 */
export function toHexText(column: string): RawBuilder<string> {
  const ref = sql.ref(column);
  return sql<string>`case when ${ref} is not null then '0x' || lower(hex(${ref})) end`;
}

/** Prepares a query once; the function that it returns runs it. */
export function prepareQuery<Row>(
  connection: SqliteConnection,
  query: string,
): (...parameters: readonly (Uint8Array | number | string | null)[]) => Row[] {
  const statement = connection.prepare<unknown[], readonly unknown[]>(query).raw(true);
  const names = statement.columns().map(({ name }) => name);
  // The driver's own objects are dictionaries, which are slow to create and to read.
  const toRow = (values: readonly unknown[]): Row => {
    const row: Record<string, unknown> = {};
    for (let i = 0; i < names.length; i++) row[names[i] ?? ""] = values[i];
    return row as Row;
  };
  return (...parameters) => statement.all(...parameters).map(toRow);
}

/**
 * Creates a function that runs its argument in one transaction and rethrows its errors. While another process writes, the
 * transaction is retried without blocking the event loop.
 */
export function createTransactionRunner<Tables>(
  connection: SqliteConnection,
  db: Kysely<Tables>,
  sleep: (ms: number) => Promise<void>,
): (work: (transaction: Kysely<Tables>) => Promise<void>) => Promise<void> {
  connection.pragma("busy_timeout = 0");
  return async (work) => {
    for (let waitedMs = 0; ; waitedMs += BUSY_RETRY_DELAY_MS) {
      try {
        return await db.connection().execute((transaction) => runInTransaction(transaction, work));
      } catch (error) {
        if (!isSqliteBusy(error) || waitedMs >= BUSY_TIMEOUT_MS) throw error;
      }
      await sleep(BUSY_RETRY_DELAY_MS);
    }
  };
}

async function runInTransaction<Tables>(
  db: Kysely<Tables>,
  work: (transaction: Kysely<Tables>) => Promise<void>,
): Promise<void> {
  // Takes the write lock at the start, so that a retry has nothing to undo.
  await sql`begin immediate`.execute(db);
  try {
    await work(db);
    await sql`commit`.execute(db);
  } catch (error) {
    // SQLite may have rolled back by itself, as on a full disk; the first error is the one to report.
    await sql`rollback`.execute(db).catch(() => {});
    throw error;
  }
}

/** Returns whether an error means that another process holds the lock. */
export function isSqliteBusy(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
}

function missingDriverError(cause: unknown): IndexUnavailableError {
  const message = `the index needs the SQLite driver, which is not built: ${BUILD_DRIVER}; or set INDEX=off`;
  return new IndexUnavailableError(message, { cause });
}
