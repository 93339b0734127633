import { type Kysely, type Migration, sql } from "kysely";
import { IndexUnavailableError } from "../index-unavailable-error.js";
import { createMigrations } from "../migrations.js";
import { toPostgresFailure } from "./connection/failures.js";

/** Tables that only processes on several machines need. */
const POSTGRES_MIGRATIONS: Readonly<Record<string, Migration>> = {
  "2026-11-leases": {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable("leases")
        .ifNotExists()
        .addColumn("name", "text", (column) => column.notNull().primaryKey())
        .addColumn("holder", "text", (column) => column.notNull())
        .addColumn("host", "text", (column) => column.notNull())
        .addColumn("pid", "integer", (column) => column.notNull())
        .addColumn("fence", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "timestamptz", (column) => column.notNull())
        .execute();
    },
  },
};

/** All migrations in their order. */
export const MIGRATIONS: readonly (readonly [string, Migration])[] = Object.entries({
  ...createMigrations("bytea"),
  ...POSTGRES_MIGRATIONS,
}).toSorted(([a], [b]) => (a < b ? -1 : 1));

/**
 * The first migration whose version of this service still works with the tables. Raised when a migration removes what older
 * versions use: those then refuse to start, instead of failing later.
 */
const OLDEST_COMPATIBLE = "2026-07-transfers";
/** Any number that nothing else locks in this database. */
const LOCK_KEY = 7_166_823_345_101n;
/** Indexes of ten million rows take half a minute; others wait as long. */
const STATEMENT_TIMEOUT_MS = 600_000;

interface MigrationTables {
  readonly index_migrations: { readonly name: string; readonly oldest_compatible: string };
}

/**
 * Migrates the tables of a database to the latest version; several processes may call this at the same time, and versions
 * that are older than the tables may run beside it. One transaction with a lock of its own, so that it works behind a pooler.
 * @throws IndexUnavailableError when a newer version has removed what this one uses, or when PostgreSQL fails
 */
export async function migrateDatabase<T>(
  db: Kysely<T>,
  migrations: readonly (readonly [string, Migration])[] = MIGRATIONS,
  oldestCompatible: string = OLDEST_COMPATIBLE,
): Promise<void> {
  const tables = db as unknown as Kysely<MigrationTables>;
  try {
    // A server that is up to date is not written to: it may be read-only, and starts are frequent.
    if ((await listMissing(tables, migrations)).length === 0) return;
    await tables.transaction().execute(async (transaction) => {
      await sql`set local statement_timeout = ${sql.lit(STATEMENT_TIMEOUT_MS)}`.execute(transaction);
      await sql`select pg_advisory_xact_lock(${sql.lit(String(LOCK_KEY))}::bigint)`.execute(transaction);
      await transaction.schema
        .createTable("index_migrations")
        .ifNotExists()
        .addColumn("name", "text", (column) => column.notNull().primaryKey())
        .addColumn("oldest_compatible", "text", (column) => column.notNull())
        .execute();
      for (const [name, migration] of await listMissing(transaction, migrations)) {
        await migration.up(transaction as unknown as Kysely<unknown>);
        await transaction
          .insertInto("index_migrations")
          .values({ name, oldest_compatible: oldestCompatible })
          .execute();
      }
    });
  } catch (error) {
    throw error instanceof IndexUnavailableError ? error : toPostgresFailure(error);
  }
}

/** @throws IndexUnavailableError when the tables are too new for this version */
async function listMissing(
  db: Kysely<MigrationTables>,
  migrations: readonly (readonly [string, Migration])[],
): Promise<readonly (readonly [string, Migration])[]> {
  const { rows } = await sql<{ exists: boolean }>`select to_regclass('index_migrations') is not null as exists`.execute(
    db,
  );
  if (rows[0]?.exists !== true) return migrations;
  const done = await db.selectFrom("index_migrations").select(["name", "oldest_compatible"]).execute();
  const newest = migrations.at(-1)?.[0] ?? "";
  if (done.some(({ oldest_compatible }) => oldest_compatible > newest))
    throw new IndexUnavailableError(
      "the index in PostgreSQL belongs to a newer version that this one cannot work with",
    );
  const names = new Set(done.map(({ name }) => name));
  return migrations.filter(([name]) => !names.has(name));
}
