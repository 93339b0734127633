import { Migrator } from "kysely";
import { IndexUnavailableError } from "../index-unavailable-error.js";
import { createMigrations } from "../migrations.js";
import type { IndexTables } from "../schema.js";
import { acquireFileLease } from "./file-lease.js";
import { BYTES_COLUMN_TYPE, createKysely, enableWriteAheadLog, type SqliteConnection } from "./sqlite.js";

/** How long another process may take for its migration: indexes of ten million rows take half a minute. */
const MIGRATION_TIMEOUT_MS = 300_000;
const RETRY_INTERVAL_MS = 50;

/**
 * Migrates the tables of an index file to the latest version; several processes may call this at the same time.
 * @throws IndexUnavailableError when another version of this service wrote the file, or when it is not writable
 */
export async function migrateIndex(
  connection: SqliteConnection,
  file: string,
  pid: number,
  sleep: (ms: number) => Promise<void>,
): Promise<void> {
  let lease = await acquireFileLease(`${file}.migration`, pid);
  for (let waitedMs = 0; !("release" in lease); waitedMs += RETRY_INTERVAL_MS) {
    if (waitedMs > MIGRATION_TIMEOUT_MS)
      throw new IndexUnavailableError(`process ${lease.pid} keeps the index file ${file} locked`);
    await sleep(RETRY_INTERVAL_MS);
    lease = await acquireFileLease(`${file}.migration`, pid);
  }
  try {
    enableWriteAheadLog(connection);
    const db = createKysely<IndexTables>(connection);
    const migrator = new Migrator({
      db,
      provider: { getMigrations: async () => ({ ...createMigrations(BYTES_COLUMN_TYPE) }) },
    });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw unusableIndexError(file, error);
  } finally {
    lease.release();
  }
}

function unusableIndexError(file: string, cause: unknown): IndexUnavailableError {
  const message = cause instanceof Error ? cause.message : String(cause);
  // Kysely's message for a file with migrations that this version does not have.
  const reason = message.startsWith("corrupted migrations") ? "it was written by another version" : message;
  return new IndexUnavailableError(`the index file ${file} cannot be used: ${reason}`, { cause });
}
