import { type Kysely, type Migration, Migrator, sql } from "kysely";
import { acquireFileLease } from "./file-lease.js";
import type { IndexTables } from "./schema.js";
import {
  BYTES_COLUMN_TYPE,
  createKysely,
  enableWriteAheadLog,
  IndexUnavailableError,
  type SqliteConnection,
} from "./sqlite.js";

const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "2026-07-transfers": {
    // Every step may have been done already by a process that was killed before it recorded the migration.
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable("sends")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addColumn("log_index", "integer", (column) => column.notNull())
        .addColumn("transaction_hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("kind", "text", (column) => column.notNull())
        .addColumn("token", "text", (column) => column.notNull())
        .addColumn("arrival_key", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("destination_chain_id", "bigint", (column) => column.notNull())
        .addColumn("recipient", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("amount", "text", (column) => column.notNull())
        .addColumn("amount_out_min", "text", (column) => column.notNull())
        .addColumn("deadline", "text", (column) => column.notNull())
        .addColumn("bonder_fee", "text", (column) => column.notNull())
        .addColumn("relayer", BYTES_COLUMN_TYPE)
        .addColumn("account", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("timestamp", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("sends_place", ["chain_id", "block_number", "log_index"])
        .execute();
      await db.schema
        .createTable("deliveries")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addColumn("log_index", "integer", (column) => column.notNull())
        .addColumn("transaction_hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("token", "text", (column) => column.notNull())
        .addColumn("arrival_key", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("bonder", BYTES_COLUMN_TYPE)
        .addColumn("timestamp", "bigint")
        .addPrimaryKeyConstraint("deliveries_place", ["chain_id", "block_number", "log_index"])
        .execute();
      await db.schema
        .createTable("blocks")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("number", "bigint", (column) => column.notNull())
        .addColumn("hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("timestamp", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("blocks_place", ["chain_id", "number"])
        .execute();
      await db.schema
        .createTable("cursors")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull().primaryKey())
        .addColumn("from_block", "bigint", (column) => column.notNull())
        .addColumn("from_timestamp", "bigint", (column) => column.notNull())
        .addColumn("to_block", "bigint", (column) => column.notNull())
        .addColumn("final_to", "bigint", (column) => column.notNull())
        .addColumn("observed_at", "bigint", (column) => column.notNull())
        .execute();
      for (const table of ["sends", "deliveries"]) {
        for (const column of ["transaction_hash", "arrival_key"]) {
          await db.schema.createIndex(`${table}_${column}`).ifNotExists().on(table).column(column).execute();
        }
      }
    },
  },
  "2026-11-changes": {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable("changes")
        .ifNotExists()
        .addColumn("sequence", "bigint", (column) => column.notNull().primaryKey())
        .addColumn("arrival_key", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("transaction_hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("kind", "text")
        .addColumn("account", BYTES_COLUMN_TYPE)
        .addColumn("recipient", BYTES_COLUMN_TYPE)
        .execute();
      await db.schema
        .createTable("change_counter")
        .ifNotExists()
        .addColumn("id", "integer", (column) => column.notNull().primaryKey())
        .addColumn("value", "bigint", (column) => column.notNull())
        .execute();
      await sql`insert into change_counter (id, value) values (1, 0) on conflict do nothing`.execute(db);
    },
  },
  "2026-11-lists": {
    async up(db: Kysely<unknown>) {
      if (!(await hasColumn(db, "sends", "first_timestamp")))
        await db.schema.alterTable("sends").addColumn("first_timestamp", "bigint").execute();
      await db.schema
        .createTable("removed_sends")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("transaction_hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("arrival_key", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("first_timestamp", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("removed_sends_key", ["chain_id", "transaction_hash", "arrival_key"])
        .execute();
      for (const column of ["account", "recipient"])
        await db.schema
          .createIndex(`sends_${column}_time`)
          .ifNotExists()
          .on("sends")
          .column(column)
          .expression(sql`coalesce(first_timestamp, timestamp)`)
          .execute();
    },
  },
};

async function hasColumn(db: Kysely<unknown>, table: string, column: string): Promise<boolean> {
  const tables = await db.introspection.getTables();
  return tables.some(({ name, columns }) => name === table && columns.some((other) => other.name === column));
}

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
    const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
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
