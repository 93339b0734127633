import type { CompiledQuery } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fillIndex } from "../../bench/support/postgres-fill.js";
import { getNetwork } from "../../src/hop/networks.js";
import { compileStatements } from "../../src/transfers/index/compiled-statements.js";
import type { SqlValue } from "../../src/transfers/index/database/index-database.js";
import { type PageRequest, toPageParameters } from "../../src/transfers/index/list/page-statement.js";
import { LIST_START } from "../../src/transfers/index/list/transfer-lister.js";
import { toTreeParameters } from "../../src/transfers/index/transfer-tree.js";
import { type PostgresServer, startPostgres } from "./support/postgres-server.js";
import { openTestPostgresIndex, type ServerIndex } from "./support/postgres-test-index.js";
import { leftOut, postgresPrograms } from "./support/server-programs.js";

// Which indexes the statements of the service use on filled tables, with the values of a call and as prepared statements. A scan of a whole table is as fast as an index here, and takes seconds on ten million rows.

const TRANSFERS = 200_000;
const KEY = new Uint8Array(32);
const network = getNetwork("mainnet");
const chains = [...network.chains.values()];
const [optimism, arbitrum] = ["optimism", "arbitrum"].map((slug) => network.chains.get(slug));
if (optimism === undefined || arbitrum === undefined) throw new Error("the network has changed");
const page: PageRequest = { account: `0x${"00".repeat(20)}`, after: LIST_START, rows: 51, limit: 51, filter: {} };
const tree = { id: "", token: "DAI", source: optimism, destination: arbitrum, blockNumber: 100, logIndex: 2 };
/** What a row of a transfer needs besides the row. */
const OF_TRANSFER = ["cursors", "deliveries_arrival_key", "sends_arrival_key", "sends_transaction_hash"];
const OF_PAGE = [...OF_TRANSFER, "sends by ctid", "sends_account_time", "sends_recipient_time"];

type Statements = ReturnType<typeof compileStatements>;

/** The statements with the indexes that they may use; those of tables of a few rows are named by the table. */
const EXPECTED: readonly (readonly [
  keyof Statements,
  (statements: Statements) => CompiledQuery,
  readonly SqlValue[],
  readonly string[],
])[] = [
  ["transfersByKeys", (s) => s.transfersByKeys(1), [KEY], OF_TRANSFER],
  ["transfersByKeys", (s) => s.transfersByKeys(4), [KEY, KEY, KEY, KEY], OF_TRANSFER],
  ["transfersByHashes", (s) => s.transfersByHashes(1), [KEY], OF_TRANSFER],
  ["deliveriesByHash", (s) => s.deliveriesByHash, [KEY], ["deliveries_transaction_hash"]],
  ["deliveriesByKey", (s) => s.deliveriesByKey, [KEY], ["deliveries_arrival_key"]],
  ["equalL1Sends", (s) => s.equalL1Sends, [KEY], ["sends_arrival_key"]],
  ["page", (s) => s.page, toPageParameters(page), OF_PAGE],
  ["page", (s) => s.page, toPageParameters({ ...page, filter: { token: "DAI", isDelivered: false } }), OF_PAGE],
  ["cursors", (s) => s.cursors, [], ["blocks", "cursors"]],
  ["changes", (s) => s.changes, [1, 100], ["changes", "sends_arrival_key"]],
  ["changeBounds", (s) => s.changeBounds, [], ["change_counter", "changes"]],
  [
    "delivered",
    (s) => s.delivered,
    [10, 150, 150, 2, 500],
    ["deliveries_arrival_key", "deliveries_place", "sends_arrival_key"],
  ],
  ["tree", (s) => s.tree, toTreeParameters(tree), ["commits_bridge", "cursors", "sends_bridge"]],
];

describe.skipIf(postgresPrograms === undefined)(`plans of PostgreSQL${leftOut(postgresPrograms)}`, () => {
  let server: PostgresServer;
  let opened: ServerIndex;

  beforeAll(async () => {
    server = await startPostgres(["autovacuum=off"]);
    opened = await openTestPostgresIndex(await server.createDatabase(), { statementTimeoutMs: 60_000 });
    await opened.index.migrate();
    const chainIds = chains.map(({ chainId }) => chainId);
    await fillIndex({ pool: opened.database.pools.write, chainIds, transfers: TRANSFERS });
    // As many as a large index has: one for a few transfers.
    await opened.database.pools.write.query(`insert into commits
      select c, i * 10 + d, case t when 'ETH' then 1000 else 1001 end, '', t, c + d, '', '', 0 from unnest(array[${chainIds}]) as c, unnest(array['ETH', 'DAI']) as t,
        generate_series(1, 3) as d, generate_series(1, 500) as i
      on conflict do nothing`);
    await opened.database.pools.write.query("analyze commits");
  });
  afterAll(async () => {
    await opened?.index.close();
    await server?.close();
  });

  test("use the indexes of large tables", async () => {
    const { builder, dialect } = opened.database;
    const statements = compileStatements(builder, dialect);
    expect(new Set(EXPECTED.map(([name]) => name))).toEqual(new Set(Object.keys(statements)));
    for (const [name, select, values, expected] of EXPECTED)
      for (const mode of ["force_custom_plan", "force_generic_plan"]) {
        const used = await explain(select(statements).sql, values, mode);
        expect([name, mode, used.filter((index) => !expected.includes(index))]).toEqual([name, mode, []]);
        expect(used.length).toBeGreaterThan(0);
      }
  });

  /** Returns the indexes that the plan of a statement reads, or the tables that it reads without one. */
  async function explain(text: string, values: readonly SqlValue[], mode: string): Promise<readonly string[]> {
    const connection = await opened.database.pools.write.connect();
    try {
      await connection.query(`set plan_cache_mode = ${mode}; prepare explained as ${text}`);
      const parameters = values.length === 0 ? "" : `(${values.map(toLiteral)})`;
      const { rows } = await connection.query<{ readonly "QUERY PLAN": readonly { readonly Plan: PlanNode }[] }>(
        `explain (format json) execute explained${parameters}`,
      );
      return rows.flatMap((row) => row["QUERY PLAN"].flatMap(({ Plan }) => [...new Set(listIndexes(Plan))].toSorted()));
    } finally {
      await connection.query("deallocate all");
      connection.release();
    }
  }
});

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly Plans?: readonly PlanNode[];
}

/** Tables of a few rows, which the planner may scan. */
const SMALL_TABLES = /^(cursors|blocks|changes|change_counter)/;

function listIndexes(node: PlanNode): readonly string[] {
  const { "Node Type": type, "Relation Name": table = "", "Index Name": index } = node;
  const own: string[] = [];
  if (SMALL_TABLES.test(index ?? table)) own.push(SMALL_TABLES.exec(index ?? table)?.[0] ?? "");
  else if (index !== undefined) own.push(index);
  else if (type === "Tid Scan") own.push(`${table} by ctid`);
  // A bitmap's index is a node of its own.
  else if (table !== "" && type !== "Bitmap Heap Scan") own.push(`${table} without an index (${type})`);
  return [...own, ...(node.Plans ?? []).flatMap(listIndexes)];
}

function toLiteral(value: SqlValue): string {
  if (value === null) return "null";
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? `'${value}'` : `'\\x${Buffer.from(value).toString("hex")}'`;
}
