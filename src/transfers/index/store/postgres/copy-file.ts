import type { Network } from "../../../../hop/networks.js";
import { IndexUnavailableError } from "../index-unavailable-error.js";
import type { Lease } from "../lease.js";
import { openIndex } from "../open-index.js";
import type { IndexTables } from "../schema.js";
import { openSqlite, type SqliteConnection } from "../sqlite/sqlite.js";
import type { PostgresPool } from "./connection/connection.js";
import type { PostgresIndex } from "./postgres-index.js";

/** The tables with their keys, in the order in which they are copied. What says that the copy is complete comes last. */
const TABLES: readonly (readonly [table: keyof IndexTables, ...key: string[]])[] = [
  ["sends", "chain_id", "block_number", "log_index"],
  ["deliveries", "chain_id", "block_number", "log_index"],
  ["removed_sends", "chain_id", "transaction_hash", "arrival_key"],
  ["blocks", "chain_id", "number"],
  ["changes", "sequence"],
];
const ROWS_PER_STATEMENT = 2_000;

export interface CopyOptions {
  readonly file: string;
  readonly index: Pick<PostgresIndex, "leases" | "pools">;
  readonly network: Network;
  /** Called after each part. */
  readonly onProgress: (table: string, rows: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Copies an index file to an empty index in PostgreSQL, in one state of the file, which may be in use. Holds all leases, so that
 * no replica follows the chains meanwhile. A copy that is interrupted is begun again from the start: until its end, the index
 * in PostgreSQL counts as empty.
 * @returns false if the signal has interrupted it
 * @throws IndexUnavailableError when the index in PostgreSQL is not empty or in use, or either cannot be read or written
 */
export async function copyIndexFile(options: CopyOptions): Promise<boolean> {
  const { file, index, network, onProgress, signal } = options;
  // Migrates a file of an older version.
  (await openIndex(file, network)).close();
  const source = await openSqlite(file, { readonly: true });
  const leases: Lease[] = [];
  try {
    for (const name of ["follow", ...Array.from(network.chains.keys(), (slug) => `history.${slug}`)])
      leases.push(await acquireLease(index, name));
    const { write } = index.pools;
    await clearEmptyIndex(write);
    // One state of the file for all tables.
    source.exec("begin");
    for (const [table, ...key] of TABLES) {
      let rows = 0;
      for (const part of readTable(source, table, key)) {
        if (signal.aborted) return false;
        if (leases.some(({ lost }) => lost.aborted)) throw inUseError();
        await insertRows(write, table, part);
        rows += part.length;
        onProgress(table, rows);
      }
    }
    await finish(write, source);
    return true;
  } finally {
    source.close();
    for (const lease of leases) await lease.release();
  }
}

async function acquireLease({ leases }: Pick<PostgresIndex, "leases">, name: string): Promise<Lease> {
  const lease = await leases.acquire(name);
  if ("release" in lease) return lease;
  const place = lease.host === undefined ? "" : ` on ${lease.host}`;
  throw new IndexUnavailableError(
    `process ${lease.pid}${place} is filling the index in PostgreSQL: stop it, copy, and start it again`,
  );
}

function inUseError(): IndexUnavailableError {
  return new IndexUnavailableError("another process has begun to fill the index in PostgreSQL; the copy was given up");
}

/** Removes what an interrupted copy has left. An index without cursors knows nothing. */
async function clearEmptyIndex(pool: PostgresPool): Promise<void> {
  const cursors = await pool.query("select 1 from cursors limit 1");
  if (cursors.length > 0) throw new IndexUnavailableError("the index in PostgreSQL is not empty");
  await pool.query(`truncate ${TABLES.map(([table]) => table).join(", ")}`);
}

function* readTable(
  source: SqliteConnection,
  table: string,
  key: readonly string[],
): Generator<readonly Readonly<Record<string, unknown>>[]> {
  let part: Readonly<Record<string, unknown>>[] = [];
  const rows = source.prepare<[], Record<string, unknown>>(`select * from ${table} order by ${key.join(", ")}`);
  for (const row of rows.iterate()) {
    part.push(row);
    if (part.length < ROWS_PER_STATEMENT) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}

/** Inserts rows with one value for all of them: their number does not depend on that of the columns. */
async function insertRows(
  connection: Pick<PostgresPool, "query">,
  table: string,
  rows: readonly Readonly<Record<string, unknown>>[],
): Promise<void> {
  const json = JSON.stringify(rows.map(toJsonRow));
  await connection.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1::json)`, [
    json,
  ]);
}

function toJsonRow(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const toJson = (value: unknown): unknown =>
    value instanceof Uint8Array ? `\\x${Buffer.from(value).toString("hex")}` : value;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, toJson(value)]));
}

/** Writes what makes the index usable, in one transaction. */
async function finish(pool: PostgresPool, source: SqliteConnection): Promise<void> {
  const cursors = source.prepare<[], Record<string, unknown>>("select * from cursors").all();
  const counter = source.prepare<[], { value: number }>("select value from change_counter").get();
  await pool.withConnection(async (connection) => {
    const query = async <Row>(text: string, values?: readonly unknown[]): Promise<Row[]> =>
      (await connection.query<Row>(text, values)).rows;
    await query("begin");
    try {
      // Fails if another process has created one.
      await insertRows({ query }, "cursors", cursors);
      await query("update change_counter set value = $1 where id = 1", [counter?.value ?? 0]);
      await query("commit");
    } catch (error) {
      await query("rollback").catch(() => {});
      throw error;
    }
  });
  // Without statistics, the first look-ups would read whole tables.
  await pool.query("analyze sends").catch(() => {});
  await pool.query("analyze deliveries").catch(() => {});
}
