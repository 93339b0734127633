import { type Kysely, sql } from "kysely";
import { getErrorMessage } from "../../../errors.js";
import { type IndexDatabase, IndexUnavailableError, type SqlDialect } from "./index-database.js";
import type { IndexTables } from "./schema.js";

/** Changes tables; every step may have been done already, by an earlier version that has recorded it elsewhere. */
export type Migrate = (db: Kysely<IndexTables>, dialect: SqlDialect) => Promise<void>;

/** Migrations by name, in their order. */
export type Migrations = readonly (readonly [name: string, migrate: Migrate])[];

/**
 * The versions of the tables, for all databases. Versions of this service that are older than a migration may still
 * run: it only adds tables, columns that may be null or have a default, and indexes. What nothing uses any more is removed by a later version.
 */
export const MIGRATIONS: Migrations = [
  ["2026-07-transfers", createTransferTables],
  ["2026-11-changes", createChangeTables],
  ["2026-11-leases", createLeaseTable],
  ["2026-11-lists", addListColumns],
  ["2026-11-nonces", addNonces],
  ["2026-12-commits", addCommits],
];

/**
 * The first migration whose version of this service still works with the tables. Raised when a migration removes what older
 * versions use: those then refuse to start, instead of failing later.
 */
const OLDEST_COMPATIBLE = "2026-07-transfers";

/**
 * Migrates the tables to the latest version; several processes may call this at the same time, and versions that are older than
 * the tables may run beside it.
 * @throws IndexUnavailableError when a newer version has removed what this one uses, or when the database fails
 */
export async function migrateIndex(
  database: IndexDatabase,
  migrations: Migrations = MIGRATIONS,
  oldestCompatible: string = OLDEST_COMPATIBLE,
): Promise<void> {
  try {
    // A database that is up to date is not written to: it may be read-only, and starts are frequent.
    if ((await listMissing(database.builder, database.name, migrations)).length === 0) return;
    await database.migrate(async (transaction) => {
      await transaction.schema
        .createTable("index_migrations")
        .ifNotExists()
        .addColumn("name", "text", (column) => column.notNull().primaryKey())
        .addColumn("oldest_compatible", "text", (column) => column.notNull())
        .execute();
      for (const [name, migrate] of await listMissing(transaction, database.name, migrations)) {
        await migrate(transaction, database.dialect);
        await transaction
          .insertInto("index_migrations")
          .values({ name, oldest_compatible: oldestCompatible })
          .execute();
      }
    });
  } catch (cause) {
    if (cause instanceof IndexUnavailableError) throw cause;
    throw new IndexUnavailableError(`${database.name} cannot be used: ${getErrorMessage(cause)}`, { cause });
  }
}

/** @throws IndexUnavailableError when the tables are too new for this version */
async function listMissing(db: Kysely<IndexTables>, name: string, migrations: Migrations): Promise<Migrations> {
  const tables = await db.introspection.getTables();
  if (!tables.some((table) => table.name === "index_migrations")) return migrations;
  const done = await db.selectFrom("index_migrations").selectAll().execute();
  const newest = migrations.at(-1)?.[0] ?? "";
  if (done.some(({ oldest_compatible }) => oldest_compatible > newest))
    throw new IndexUnavailableError(`${name} belongs to a newer version that this one cannot work with`);
  const names = new Set(done.map((row) => row.name));
  return migrations.filter(([migration]) => !names.has(migration));
}

async function createTransferTables(db: Kysely<IndexTables>, { bytesType }: SqlDialect): Promise<void> {
  const bytes = sql.raw(bytesType);
  await sql`create table if not exists sends (
    chain_id bigint not null, block_number bigint not null, log_index integer not null,
    transaction_hash ${bytes} not null, kind text not null, token text not null, arrival_key ${bytes} not null,
    destination_chain_id bigint not null, recipient ${bytes} not null, amount text not null,
    amount_out_min text not null, deadline text not null, bonder_fee text not null, relayer ${bytes},
    account ${bytes} not null, timestamp bigint not null,
    constraint sends_place primary key (chain_id, block_number, log_index))`.execute(db);
  await sql`create table if not exists deliveries (
    chain_id bigint not null, block_number bigint not null, log_index integer not null,
    transaction_hash ${bytes} not null, token text not null, arrival_key ${bytes} not null, bonder ${bytes},
    timestamp bigint, constraint deliveries_place primary key (chain_id, block_number, log_index))`.execute(db);
  await sql`create table if not exists blocks (
    chain_id bigint not null, number bigint not null, hash ${bytes} not null, timestamp bigint not null,
    constraint blocks_place primary key (chain_id, number))`.execute(db);
  await sql`create table if not exists cursors (
    chain_id bigint not null primary key, from_block bigint not null, from_timestamp bigint not null,
    to_block bigint not null, final_to bigint not null, observed_at bigint not null)`.execute(db);
  for (const table of ["sends", "deliveries"])
    for (const column of ["transaction_hash", "arrival_key"])
      await db.schema.createIndex(`${table}_${column}`).ifNotExists().on(table).column(column).execute();
}

async function createChangeTables(db: Kysely<IndexTables>, { bytesType }: SqlDialect): Promise<void> {
  const bytes = sql.raw(bytesType);
  await sql`create table if not exists changes (
    sequence bigint not null primary key, arrival_key ${bytes} not null, transaction_hash ${bytes} not null,
    kind text, account ${bytes}, recipient ${bytes})`.execute(db);
  await sql`create table if not exists change_counter (
    id integer not null primary key, value bigint not null)`.execute(db);
  await sql`insert into change_counter (id, value) values (1, 0) on conflict do nothing`.execute(db);
}

async function createLeaseTable(db: Kysely<IndexTables>, { timeType }: SqlDialect): Promise<void> {
  await sql`create table if not exists leases (
    name text not null primary key, holder text not null, host text not null, pid integer not null,
    fence bigint not null, expires_at ${sql.raw(timeType)} not null)`.execute(db);
}

async function addListColumns(db: Kysely<IndexTables>, { bytesType }: SqlDialect): Promise<void> {
  const bytes = sql.raw(bytesType);
  if (!(await hasColumn(db, "sends", "first_timestamp")))
    await sql`alter table sends add column first_timestamp bigint`.execute(db);
  await sql`create table if not exists removed_sends (
    chain_id bigint not null, transaction_hash ${bytes} not null, arrival_key ${bytes} not null,
    first_timestamp bigint not null, block_number bigint not null,
    constraint removed_sends_key primary key (chain_id, transaction_hash, arrival_key))`.execute(db);
  await sql`create index if not exists sends_account_time
    on sends (account, (coalesce(first_timestamp, timestamp)))`.execute(db);
  await sql`create index if not exists sends_recipient_time
    on sends (recipient, (coalesce(first_timestamp, timestamp)))`.execute(db);
}

async function addNonces(db: Kysely<IndexTables>): Promise<void> {
  if (!(await hasColumn(db, "changes", "nonce"))) await sql`alter table changes add column nonce bigint`.execute(db);
}

async function addCommits(db: Kysely<IndexTables>, { bytesType }: SqlDialect): Promise<void> {
  const bytes = sql.raw(bytesType);
  await sql`create table if not exists commits (
    chain_id bigint not null, block_number bigint not null, log_index integer not null,
    transaction_hash ${bytes} not null, token text not null, destination_chain_id bigint not null,
    root_hash ${bytes} not null, total_amount text not null, committed_at bigint not null,
    constraint commits_place primary key (chain_id, block_number, log_index))`.execute(db);
  if (!(await hasColumn(db, "sends", "tree_index"))) {
    await sql`alter table sends add column transfer_nonce ${bytes}`.execute(db);
    await sql`alter table sends add column tree_index integer`.execute(db);
  }
  // Blocks before the first: nothing is indexed.
  if (!(await hasColumn(db, "cursors", "commits_to_block"))) {
    await sql`alter table cursors add column commits_from_block bigint not null default 0`.execute(db);
    await sql`alter table cursors add column commits_to_block bigint not null default -1`.execute(db);
  }
  await sql`create index if not exists commits_bridge
    on commits (chain_id, token, destination_chain_id, block_number, log_index)`.execute(db);
  await sql`create index if not exists sends_bridge
    on sends (chain_id, token, destination_chain_id, block_number, log_index) where kind = 'l2'`.execute(db);
}

async function hasColumn(db: Kysely<IndexTables>, table: string, column: string): Promise<boolean> {
  const tables = await db.introspection.getTables();
  return tables.some(({ name, columns }) => name === table && columns.some((other) => other.name === column));
}
