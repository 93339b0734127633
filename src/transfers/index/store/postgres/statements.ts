import { type CompiledQuery, Kysely, PostgresDialect, sql } from "kysely";
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
  readonly text: string;
  /** Name of the column with the key, as hex. */
  readonly keyColumn: string;
}

export const toHexText: ToHexText = (column) => sql<string>`'0x' || encode(${sql.ref(column)}, 'hex')`;

/** Compiles the statements once, because building their SQL takes longer than running them. */
export function compileStatements(): RunMissing {
  const db = createCompiler();
  const compile = (query: { compile(): CompiledQuery }, keyColumn: string): CompiledStatement => ({
    text: query.compile().sql,
    keyColumn,
  });
  const isOneOf = (column: string) => sql<boolean>`${sql.ref(column)} = any(${[]}::bytea[])`;
  const keyed: Readonly<Record<KeyedStatement, CompiledStatement>> = {
    transfersByKeys: compile(selectTransfers(db, toHexText).where(isOneOf("s.arrival_key")), "arrival_key"),
    transfersByHash: compile(selectTransfers(db, toHexText).where(isOneOf("s.transaction_hash")), "transaction_hash"),
    deliveriesByHash: compile(selectDeliveries(db, toHexText).where(isOneOf("transaction_hash")), "transaction_hash"),
    deliveriesByKey: compile(selectDeliveries(db, toHexText).where(isOneOf("arrival_key")), "arrival_key"),
    equalL1Sends: compile(
      selectEqualL1Sends(db).select(toHexText("arrival_key").as("arrival_key")).where(isOneOf("arrival_key")),
      "arrival_key",
    ),
  };
  const page = selectPage(db, toHexText, "ctid").compile().sql;
  const cursors = db.selectFrom("cursors").selectAll().compile().sql;

  return async (connection, missing, recorded) => {
    for (const [statement, keys] of missing.keyed) {
      const { text, keyColumn } = keyed[statement];
      const { rows } = await connection.query<Readonly<Record<string, string>>>(text, [toKeyValues(keys)]);
      const byKey = new Map<string, (typeof rows)[number][]>(Array.from(keys, (key) => [key, []]));
      for (const row of rows) byKey.get(row[keyColumn] ?? "")?.push(row);
      for (const [key, keyRows] of byKey) recorded.addRows(statement, key, keyRows as never);
    }
    for (const [key, request] of missing.pages)
      recorded.addPage(key, (await connection.query<ListedRow>(page, toPageParameters(request))).rows);
    if (missing.cursors) recorded.addCursors((await connection.query<CursorRow>(cursors)).rows);
  };
}

/** A query builder that only compiles. */
export function createCompiler(): Kysely<IndexTables> {
  const pool = { connect: () => Promise.reject(new Error("compiles only")), end: async () => {} };
  return new Kysely<IndexTables>({ dialect: new PostgresDialect({ pool: pool as never }) });
}
