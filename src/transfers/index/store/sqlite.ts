import type { Database, Options } from "better-sqlite3";
import { type ColumnDataType, Kysely, SqliteDialect, sql } from "kysely";

// All that is SQLite's own stands here: another database needs another file like this one.

/** A connection to the index's file. */
export type SqliteConnection = Database;

/** Why the index cannot be used here, in words for whoever configured it. */
export class IndexUnavailableError extends Error {
  override readonly name = "IndexUnavailableError";
}

/** Type of a column that holds bytes. */
export const BYTES_COLUMN_TYPE: ColumnDataType = "blob";

/** How long a connection waits where another process has locked the file; while it does, the whole process stands still. */
const BUSY_TIMEOUT_MS = 5_000;
/** How often a transaction is begun anew meanwhile, where the process does not stand still. */
const BUSY_RETRY_DELAY_MS = 20;
/** Keys are random, so that every write touches pages all over the file. */
const CACHE_SIZE_KIB = 32_768;

/** The driver, which is loaded only here: it is optional, and its native part is built on demand. */
export async function openSqlite(file: string, options: Options = {}): Promise<SqliteConnection> {
  const driver = await import("better-sqlite3").catch((cause: unknown) => {
    throw missingDriverError(cause);
  });
  try {
    return new driver.default(file, { timeout: BUSY_TIMEOUT_MS, ...options });
  } catch (cause) {
    // A missing folder is a TypeError of the driver's own.
    if (!(cause instanceof driver.default.SqliteError) && !(cause instanceof TypeError))
      throw missingDriverError(cause);
    throw new IndexUnavailableError(`the index's file ${file} cannot be opened: ${cause.message}`, { cause });
  }
}

/**
 * Lets readers go on while one writes. What a crash of the machine (not of the process) undoes is read again.
 * @throws IndexUnavailable when the file is something else
 */
export function enableWriteAheadLog(connection: SqliteConnection): void {
  try {
    connection.pragma("journal_mode = WAL");
    connection.pragma("synchronous = NORMAL");
    connection.pragma(`cache_size = -${CACHE_SIZE_KIB}`);
  } catch (cause) {
    throw new IndexUnavailableError(`the index's file ${connection.name} cannot be used: ${String(cause)}`, { cause });
  }
}

export function createQueryBuilder<Tables>(connection: SqliteConnection): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }) });
}

/**
 * Lets nothing stand still while another process writes: transactions wait by themselves.
 * @returns runs its argument in one transaction, all of which happens or nothing; what the argument throws is thrown
 */
export function createTransactionRunner<Tables>(
  connection: SqliteConnection,
  db: Kysely<Tables>,
  sleep: (ms: number) => Promise<void>,
): (work: (transaction: Kysely<Tables>) => Promise<void>) => Promise<void> {
  connection.pragma("busy_timeout = 0");
  return async (work) => {
    for (let waited = 0; ; waited += BUSY_RETRY_DELAY_MS) {
      try {
        return await db.connection().execute((transaction) => runInTransaction(transaction, work));
      } catch (error) {
        if (!isSqliteBusy(error) || waited >= BUSY_TIMEOUT_MS) throw error;
      }
      await sleep(BUSY_RETRY_DELAY_MS);
    }
  };
}

async function runInTransaction<Tables>(
  db: Kysely<Tables>,
  work: (transaction: Kysely<Tables>) => Promise<void>,
): Promise<void> {
  // With the right to write from the start, so that waiting for it undoes nothing.
  await sql`begin immediate`.execute(db);
  try {
    await work(db);
    await sql`commit`.execute(db);
  } catch (error) {
    // SQLite may have rolled it back itself, as on a full disk: that this fails then is not what went wrong.
    await sql`rollback`.execute(db).catch(() => {});
    throw error;
  }
}

/** Whether another process has locked what was wanted. */
export function isSqliteBusy(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
}

function missingDriverError(cause: unknown): IndexUnavailableError {
  const message = "the index needs SQLite's driver, which is not built: run `npm run build:sqlite`, or set INDEX=off";
  return new IndexUnavailableError(message, { cause });
}
