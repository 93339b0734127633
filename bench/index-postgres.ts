import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { getNetwork } from "../src/hop/networks.js";
import { monotonicNow } from "../src/resilience/clock.js";
import { LIST_START } from "../src/transfers/index/store/pages/transfer-page.js";
import { parsePostgresUrl } from "../src/transfers/index/store/postgres/connection/location.js";
import { openPostgresIndex } from "../src/transfers/index/store/postgres/postgres-index.js";
import type { TransferIndexReader } from "../src/transfers/index/store/transfer-index.js";
import { ACCOUNT_SQL, fillIndex, KEY_SQL } from "./support/postgres-fill.js";

// Measures look-ups, pages and delivery times of an index in PostgreSQL. Fills an empty database first:
//   INDEX=postgres://... TRANSFERS=10000000 npm run bench:index-postgres

const TRANSFERS = Number(process.env.TRANSFERS ?? 1_000_000);
const LOOKUPS = 5_000;
const PAGES = 2_000;
const PAGE_SIZE = 50;

const primary = parsePostgresUrl(process.env.INDEX ?? "");
if (primary === undefined) throw new Error("INDEX is not postgres://...");
const network = getNetwork("mainnet");
const chainIds = [...network.chains.values()].map(({ chainId }) => chainId);
const stopping = new AbortController();
const index = await openPostgresIndex({
  location: { primary, read: undefined, listen: undefined, poolSize: 10, statementTimeoutMs: 600_000 },
  network,
  now: monotonicNow,
  sleep: (ms, signal) => delay(ms, undefined, { signal }).catch(() => {}),
  onAvailability: () => {},
  signal: stopping.signal,
});
const run = async (text: string): Promise<Record<string, unknown>[]> =>
  (await sql.raw<Record<string, unknown>>(text).execute(index.db)).rows;

async function measure(name: string, count: number, work: (number: number) => Promise<number>): Promise<void> {
  const times: number[] = [];
  let found = 0;
  for (let done = 0; done < count; done++) {
    const number = 1 + Math.floor(Math.random() * TRANSFERS);
    const began = performance.now();
    found += await work(number);
    times.push(performance.now() - began);
  }
  times.sort((a, b) => a - b);
  const quantile = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(2);
  console.log(`  ${name}: ${quantile(0.5)} ms (median), ${quantile(0.99)} ms (p99), ${found} found in ${count}`);
}

/** Keys of transfers, computed by the database outside the measurement. */
async function listKeys(expression: (number: string) => string): Promise<(number: number) => string> {
  const numbers = Array.from({ length: 2_000 }, () => 1 + Math.floor(Math.random() * TRANSFERS));
  const rows = await run(`select encode(${expression("n")}, 'hex') as key from unnest(array[${numbers}]) as n`);
  return (number) => `0x${String(rows[number % rows.length]?.key)}`;
}

try {
  await index.migrate();
  const startedAt = performance.now();
  const [existing] = await run("select count(*)::int as count from cursors");
  if (existing?.count === 0) {
    await fillIndex({ pool: index.pools.write, chainIds, transfers: TRANSFERS });
    console.log(`${TRANSFERS} transfers, filled in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  }
  const [size] = await run("select pg_database_size(current_database()) as bytes");
  console.log(
    `${(Number(size?.bytes) / 1e9).toFixed(1)} GB, ${Math.round(Number(size?.bytes) / TRANSFERS)} bytes a transfer`,
  );
  const find = (query: (reader: TransferIndexReader) => readonly unknown[]) =>
    index.reader.read(query).then((transfers) => transfers.length);
  const ids = await listKeys(KEY_SQL.transferId);
  const sent = await listKeys(KEY_SQL.send);
  const delivered = await listKeys(KEY_SQL.delivery);
  const accounts = {
    "1 transfer": await listKeys((number) => ACCOUNT_SQL.single(`(${number} / 10 * 10 + 1)`)),
    "100 transfers": await listKeys((number) => ACCOUNT_SQL.ordinary(`(${number} / 10 * 10 + 5)`, TRANSFERS)),
    [`${TRANSFERS / 10} transfers`]: await listKeys(ACCOUNT_SQL.frequent),
  };
  for (const pass of ["first pass", "second pass"]) {
    await measure(`by transfer ID, ${pass}`, LOOKUPS, (n) => find((reader) => reader.findByTransferId(ids(n))));
    await measure(`by sending transaction, ${pass}`, LOOKUPS, (n) =>
      find((reader) => reader.findByTransactionHash(sent(n))),
    );
    await measure(`by delivering transaction, ${pass}`, LOOKUPS, (n) =>
      find((reader) => reader.findByTransactionHash(delivered(n))),
    );
    for (const [name, account] of Object.entries(accounts))
      await measure(`page of ${PAGE_SIZE}, account with ${name}, ${pass}`, PAGES, (n) =>
        find((reader) => reader.readPage(account(n), LIST_START, PAGE_SIZE).entries),
      );
  }
  await measure("by an unknown transaction hash", LOOKUPS, () => {
    const unknown = `0x${randomBytes(32).toString("hex")}`;
    return find((reader) => reader.findByTransactionHash(unknown));
  });
  const newest = { block: Number.MAX_SAFE_INTEGER, logIndex: Number.MAX_SAFE_INTEGER };
  await measure("500 deliveries for delivery times", 500, async (n) => {
    const rows = await index.readDelivered(chainIds[n % chainIds.length] ?? 1, newest, 500);
    return rows.length;
  });
} finally {
  stopping.abort();
  await index.close();
}
