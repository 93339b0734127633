import { type CompiledQuery, Kysely, PostgresDialect, type RawBuilder, sql } from "kysely";
import { selectPage, toPageParameters } from "../pages/page-statement.js";
import type { CursorRow, IndexTables } from "../schema.js";
import {
  type ListedRow,
  selectDeliveries,
  selectEqualL1Sends,
  selectTransfers,
  type ToHexText,
} from "../transfer-statements.js";
import type { PostgresConnection } from "./connection/connection.js";
import { type KeyedStatement, type MissingReads, type RecordedStatements, toKeyValues } from "./recorded-statements.js";

/** Runs what a run of the reader was missing, on one connection. */
export type RunMissing = (
  connection: PostgresConnection,
  missing: MissingReads,
  recorded: RecordedStatements,
) => Promise<void>;

/** Rows of a statement by keys, each with the key that it belongs to. */
interface CompiledStatement {
  /** Takes one key, and is prepared. A plan for any number of keys would be one for ten, which seems to cost ten times as much. */
  readonly ofOne: string;
  /** Takes an array of keys. */
  readonly ofSeveral: string;
  /** Name of the column with the key, as hex. */
  readonly keyColumn: string;
}

type Condition = (column: string) => RawBuilder<boolean>;

const NO_BYTES = new Uint8Array();

export const toHexText: ToHexText = (column) => sql<string>`'0x' || encode(${sql.ref(column)}, 'hex')`;

/** Compiles the statements once, because building their SQL takes longer than running them. */
export function compileStatements(): RunMissing {
  const db = createCompiler();
  const compile = (
    keyColumn: string,
    select: (isKey: Condition) => { compile(): CompiledQuery },
  ): CompiledStatement => {
    const { sql: ofOne } = select((column) => sql<boolean>`${sql.ref(column)} = ${NO_BYTES}`).compile();
    const { sql: ofSeveral } = select((column) => sql<boolean>`${sql.ref(column)} = any(${[]}::bytea[])`).compile();
    return { ofOne, ofSeveral, keyColumn };
  };
  const keyed: Readonly<Record<KeyedStatement, CompiledStatement>> = {
    transfersByKeys: compile("arrival_key", (isKey) => selectTransfers(db, toHexText).where(isKey("s.arrival_key"))),
    transfersByHash: compile("transaction_hash", (isKey) =>
      selectTransfers(db, toHexText).where(isKey("s.transaction_hash")),
    ),
    deliveriesByHash: compile("transaction_hash", (isKey) =>
      selectDeliveries(db, toHexText).where(isKey("transaction_hash")),
    ),
    deliveriesByKey: compile("arrival_key", (isKey) => selectDeliveries(db, toHexText).where(isKey("arrival_key"))),
    equalL1Sends: compile("arrival_key", (isKey) =>
      selectEqualL1Sends(db).select(toHexText("arrival_key").as("arrival_key")).where(isKey("arrival_key")),
    ),
  };
  const page = selectPage(db, toHexText, "ctid").compile().sql;
  const cursors = db.selectFrom("cursors").selectAll().compile().sql;

  return async (connection, missing, recorded) => {
    for (const [statement, keys] of missing.keyed) {
      const { ofOne, ofSeveral, keyColumn } = keyed[statement];
      const values = toKeyValues(keys);
      const { rows } = await (values.length === 1
        ? connection.query<Readonly<Record<string, string>>>(ofOne, values, statement)
        : connection.query<Readonly<Record<string, string>>>(ofSeveral, [values]));
      const byKey = new Map<string, (typeof rows)[number][]>(Array.from(keys, (key) => [key, []]));
      for (const row of rows) byKey.get(row[keyColumn] ?? "")?.push(row);
      for (const [key, keyRows] of byKey) recorded.addRows(statement, key, keyRows as never);
    }
    for (const [key, request] of missing.pages)
      recorded.addPage(key, (await connection.query<ListedRow>(page, toPageParameters(request), "page")).rows);
    if (missing.cursors) recorded.addCursors((await connection.query<CursorRow>(cursors)).rows);
  };
}

/** A query builder that only compiles. */
export function createCompiler(): Kysely<IndexTables> {
  const pool = { connect: () => Promise.reject(new Error("compiles only")), end: async () => {} };
  return new Kysely<IndexTables>({ dialect: new PostgresDialect({ pool: pool as never }) });
}
