import { type ColumnDataType, type Kysely, type Migration, sql } from "kysely";

/**
 * The versions of the tables, for SQLite and PostgreSQL. Versions of this service that are older than a migration may still
 * run: it only adds tables, columns that may be null, and indexes. What nothing uses any more is removed by a later version.
 * @param bytes the database's type for bytes
 */
export const createMigrations = (bytes: ColumnDataType): Readonly<Record<string, Migration>> => ({
  "2026-07-transfers": {
    // Every step may have been done already by a process that was killed before it recorded the migration.
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable("sends")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addColumn("log_index", "integer", (column) => column.notNull())
        .addColumn("transaction_hash", bytes, (column) => column.notNull())
        .addColumn("kind", "text", (column) => column.notNull())
        .addColumn("token", "text", (column) => column.notNull())
        .addColumn("arrival_key", bytes, (column) => column.notNull())
        .addColumn("destination_chain_id", "bigint", (column) => column.notNull())
        .addColumn("recipient", bytes, (column) => column.notNull())
        .addColumn("amount", "text", (column) => column.notNull())
        .addColumn("amount_out_min", "text", (column) => column.notNull())
        .addColumn("deadline", "text", (column) => column.notNull())
        .addColumn("bonder_fee", "text", (column) => column.notNull())
        .addColumn("relayer", bytes)
        .addColumn("account", bytes, (column) => column.notNull())
        .addColumn("timestamp", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("sends_place", ["chain_id", "block_number", "log_index"])
        .execute();
      await db.schema
        .createTable("deliveries")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addColumn("log_index", "integer", (column) => column.notNull())
        .addColumn("transaction_hash", bytes, (column) => column.notNull())
        .addColumn("token", "text", (column) => column.notNull())
        .addColumn("arrival_key", bytes, (column) => column.notNull())
        .addColumn("bonder", bytes)
        .addColumn("timestamp", "bigint")
        .addPrimaryKeyConstraint("deliveries_place", ["chain_id", "block_number", "log_index"])
        .execute();
      await db.schema
        .createTable("blocks")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("number", "bigint", (column) => column.notNull())
        .addColumn("hash", bytes, (column) => column.notNull())
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
        .addColumn("arrival_key", bytes, (column) => column.notNull())
        .addColumn("transaction_hash", bytes, (column) => column.notNull())
        .addColumn("kind", "text")
        .addColumn("account", bytes)
        .addColumn("recipient", bytes)
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
        .addColumn("transaction_hash", bytes, (column) => column.notNull())
        .addColumn("arrival_key", bytes, (column) => column.notNull())
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
  "2026-11-nonces": {
    async up(db: Kysely<unknown>) {
      if (!(await hasColumn(db, "changes", "nonce")))
        await db.schema.alterTable("changes").addColumn("nonce", "bigint").execute();
    },
  },
});

async function hasColumn(db: Kysely<unknown>, table: string, column: string): Promise<boolean> {
  const tables = await db.introspection.getTables();
  return tables.some(({ name, columns }) => name === table && columns.some((other) => other.name === column));
}
