import { randomBytes } from "node:crypto";
import { totalmem } from "node:os";
import { sql } from "kysely";
import { merkleSiblings } from "../src/hop/merkle-tree.js";
import { getNetwork } from "../src/hop/networks.js";
import type { MaybePromise } from "../src/resilience/maybe-async.js";
import { openPostgresDatabase } from "../src/transfers/index/database/postgres-database.js";
import { parsePostgresUrl } from "../src/transfers/index/database/postgres-location.js";
import type { IndexReader } from "../src/transfers/index/index-reader.js";
import { LIST_START } from "../src/transfers/index/list/transfer-lister.js";
import { TransferIndex } from "../src/transfers/index/transfer-index.js";
import type { TreeQuery } from "../src/transfers/index/transfer-tree.js";
import { startPostgres } from "../test/replicas/support/postgres-server.js";
import { ACCOUNT_SQL, fillIndex, KEY_SQL } from "./support/postgres-fill.js";
import { measureWrites, printSizes } from "./support/postgres-writes.js";

// Measures look-ups, pages, delivery times and the trees of withdrawals of an index in PostgreSQL, which it fills first, and what writing a day's
// events takes and leaves behind. PARTS=reads or PARTS=writes leaves the other out. The server is its own, and its data are removed at the end, or
// kept for the next run: DATA_DIRECTORY=<folder>. Or it uses an empty database of another server:
//   INDEX=postgres://... TRANSFERS=10000000 npm run bench:index-postgres

const TRANSFERS = Number(process.env.TRANSFERS ?? 1_000_000);
const PARTS = (process.env.PARTS ?? "reads,writes").split(",");
const LOOKUPS = 5_000;
const PAGES = 1_000;
const PAGE_SIZE = 50;
/** One more, as the service reads it. */
const PAGE = { after: LIST_START, rows: PAGE_SIZE + 1, limit: PAGE_SIZE + 1, filter: {} };

const server = process.env.INDEX === undefined ? await startOwnServer() : undefined;
const primary = parsePostgresUrl(process.env.INDEX ?? (await server?.openDatabase()) ?? "");
if (primary === undefined) throw new Error("INDEX is not postgres://...");
const network = getNetwork("mainnet");
const chainIds = [...network.chains.values()].map(({ chainId }) => chainId);
const location = { primary, read: undefined, listen: undefined, poolSize: 10, statementTimeoutMs: 600_000 };
const database = await openPostgresDatabase(location, () => {});
const index = new TransferIndex(database, network);
const run = async (text: string): Promise<Record<string, unknown>[]> =>
  (await sql.raw<Record<string, unknown>>(text).execute(database.builder)).rows;

/** Starts a server that may use half of the memory, as one on a machine of its own would. */
async function startOwnServer() {
  const megabytes = Math.floor(totalmem() / 2 / 2 ** 20);
  const settings = [`shared_buffers=${megabytes}MB`, "max_wal_size=8GB", "maintenance_work_mem=512MB"];
  const server = await startPostgres(settings, process.env.DATA_DIRECTORY);
  return {
    close: server.close,
    /** Returns the URL of the database of this number of transfers. */
    async openDatabase() {
      const name = `transfers_${TRANSFERS}`;
      const existing = await server.query(`select 1 from pg_database where datname = '${name}'`);
      if (existing.length === 0) await server.query(`create database ${name}`);
      return server.url(name);
    },
  };
}

/** Loads the tables into the memory of the server, if this user may do so. */
async function loadIntoMemory(): Promise<void> {
  const startedAt = performance.now();
  try {
    await run("create extension if not exists pg_prewarm");
    await run("select pg_prewarm(oid) from pg_class where relname ~ '^(sends|deliveries)'");
    console.log(`loaded into memory in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  } catch {
    console.log("not loaded into memory: this user may not create the extension pg_prewarm");
  }
}

/** Measures times, and the CPU of this process, which excludes that of the server. */
async function measure(name: string, count: number, work: (number: number) => Promise<number>): Promise<void> {
  const times: number[] = [];
  let found = 0;
  const cpuBefore = process.cpuUsage();
  for (let done = 0; done < count; done++) {
    const number = 1 + Math.floor(Math.random() * TRANSFERS);
    const began = performance.now();
    found += await work(number);
    times.push(performance.now() - began);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  times.sort((a, b) => a - b);
  const quantile = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(2);
  console.log(
    `  ${name}: ${quantile(0.5)} ms (median), ${quantile(0.99)} ms (p99), ${found} found in ${count}, CPU ${((user + system) / count / 1_000).toFixed(2)} ms`,
  );
}

/** Keys of transfers, computed by the database outside the measurement. */
async function listKeys(expression: (number: string) => string): Promise<(number: number) => string> {
  const numbers = Array.from({ length: 2_000 }, () => 1 + Math.floor(Math.random() * TRANSFERS));
  const rows = await run(`select encode(${expression("n")}, 'hex') as key from unnest(array[${numbers}]) as n`);
  return (number) => `0x${String(rows[number % rows.length]?.key)}`;
}

const find = async (query: (reader: IndexReader) => MaybePromise<readonly unknown[]>) =>
  (await query(index.reader)).length;

async function measureLookups(): Promise<void> {
  const ids = await listKeys(KEY_SQL.transferId);
  const sent = await listKeys(KEY_SQL.send);
  const delivered = await listKeys(KEY_SQL.delivery);
  await measure("by transfer ID", LOOKUPS, (n) => find((reader) => reader.findByTransferId(ids(n))));
  await measure("by sending transaction", LOOKUPS, (n) => find((reader) => reader.findByTransactionHash(sent(n))));
  await measure("by delivering transaction", LOOKUPS, (n) =>
    find((reader) => reader.findByTransactionHash(delivered(n))),
  );
  await measure("by an unknown transaction hash", LOOKUPS, () => {
    const unknown = `0x${randomBytes(32).toString("hex")}`;
    return find((reader) => reader.findByTransactionHash(unknown));
  });
  const newest = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER };
  await measure("500 deliveries for delivery times", 500, async (n) => {
    const rows = await index.reader.readDelivered(chainIds[n % chainIds.length] ?? 1, newest, 500);
    return rows.length;
  });
}

async function measurePages(): Promise<void> {
  const accounts = {
    "1 transfer": await listKeys((number) => ACCOUNT_SQL.single(`(${number} / 10 * 10 + 1)`)),
    "100 transfers": await listKeys((number) => ACCOUNT_SQL.ordinary(`(${number} / 10 * 10 + 5)`, TRANSFERS)),
    "a tenth of all transfers": await listKeys(ACCOUNT_SQL.frequent),
  };
  for (const [name, account] of Object.entries(accounts))
    await measure(`page of ${PAGE_SIZE}, account with ${name}`, PAGES, (n) =>
      find(async (reader) => (await reader.readPage({ ...PAGE, account: account(n) })).entries),
    );
  const largest = accounts["a tenth of all transfers"];
  for (const [name, filter] of Object.entries({
    "a token without transfers": { token: "HOP" },
    pending: { isDelivered: false },
  }))
    await measure(`1,000 transfers of the largest account, filtered by ${name}`, PAGES / 5, (n) =>
      find(async (reader) => (await reader.readPage({ ...PAGE, account: largest(n), rows: 1_000, filter })).entries),
    );
}

/** Measures trees, and the proofs that are made of them. */
async function measureTrees(): Promise<void> {
  const ids = await listKeys(KEY_SQL.transferId);
  const queries: TreeQuery[] = [];
  for (let number = 0; number < PAGES; number++) {
    const sent = (await index.reader.findByTransferId(ids(number)))[0]?.sent;
    if (sent?.kind === "l2") queries.push(sent);
  }
  const readLeaves = async (n: number): Promise<readonly { readonly transferId: string }[]> => {
    const query = queries[n % queries.length];
    return (query && (await index.reader.readTree(query))?.leaves) ?? [];
  };
  await measure("tree of 1,000 transfers, by one of them", PAGES, async (n) => (await readLeaves(n)).length);
  await measure("the same, and its proof", PAGES, async (n) => {
    const leaves = await readLeaves(n);
    const hashes = leaves.map(({ transferId }) => transferId);
    return hashes.length === 0 ? 0 : merkleSiblings(hashes, n % hashes.length).length;
  });
}

try {
  await index.migrate();
  const startedAt = performance.now();
  const [existing] = await run("select count(*)::int as count from cursors");
  if (existing?.count === 0) {
    await fillIndex({ pool: database.pools.write, chainIds, transfers: TRANSFERS });
    console.log(`${TRANSFERS} transfers, filled in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  }
  await printSizes(run, TRANSFERS);
  if (PARTS.includes("reads")) {
    await loadIntoMemory();
    await measureLookups();
    await measurePages();
    await measureTrees();
  }
  if (PARTS.includes("writes")) await measureWrites(index.store, run, chainIds);
} finally {
  await index.close();
  await server?.close();
}
