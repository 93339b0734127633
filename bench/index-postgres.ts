import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { getNetwork } from "../src/hop/networks.js";
import { monotonicNow } from "../src/resilience/clock.js";
import { LIST_START } from "../src/transfers/index/store/pages/transfer-page.js";
import { parsePostgresUrl } from "../src/transfers/index/store/postgres/connection/location.js";
import { openPostgresIndex } from "../src/transfers/index/store/postgres/postgres-index.js";
import type { TransferIndexReader } from "../src/transfers/index/store/transfer-index.js";

// Measures look-ups, pages and delivery times of an index in PostgreSQL. Fills an empty database first:
//   INDEX=postgres://... TRANSFERS=10000000 npm run bench:index-postgres

const TRANSFERS = Number(process.env.TRANSFERS ?? 1_000_000);
const ACCOUNTS = Math.ceil(TRANSFERS / 100);
const LOOKUPS = 5_000;
const PAGES = 2_000;
const PAGE_SIZE = 50;
const ROWS_PER_STATEMENT = 500_000;
const START_SECONDS = 1_700_000_000;

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

/** Hash of 32 bytes that follows from a number. */
const hash = (kind: string, number: string): string => `sha256(('${kind}' || ${number})::bytea)`;
const address = (number: string): string => `substr(${hash("account", number)}, 1, 20)`;
const chain = (number: string): string => `(array[${chainIds}])[1 + (${number}) % ${chainIds.length}]`;

async function fill(): Promise<void> {
  // Building the indexes at the end takes a fraction of the time.
  const definitions = await run(
    `select indexname, indexdef from pg_indexes where schemaname = current_schema()
     and tablename in ('sends', 'deliveries') and indexname not like '%_place'`,
  );
  for (const { indexname } of definitions) await run(`drop index ${indexname}`);
  for (let from = 1; from <= TRANSFERS; from += ROWS_PER_STATEMENT) {
    const series = `generate_series(${from}, ${Math.min(TRANSFERS, from + ROWS_PER_STATEMENT - 1)}) as i`;
    await run(`insert into sends (chain_id, block_number, log_index, transaction_hash, kind, token, arrival_key,
        destination_chain_id, recipient, amount, amount_out_min, deadline, bonder_fee, relayer, account, timestamp)
      select ${chain("i")}, 2 + i / 100, i % 100, ${hash("send", "i")}, 'l2', 'USDC.e', ${hash("key", "i")},
        ${chain("i + 1")}, ${address(`i % ${ACCOUNTS}`)}, '1234567890123456789', '1234567890123456', '${START_SECONDS}',
        '123456789012345', null, ${address(`i % ${ACCOUNTS}`)}, ${START_SECONDS} + i / 10 from ${series}`);
    await run(`insert into deliveries (chain_id, block_number, log_index, transaction_hash, token, arrival_key, bonder, timestamp)
      select ${chain("i + 1")}, 2 + i / 100, i % 100, ${hash("delivery", "i")}, 'USDC.e', ${hash("key", "i")},
        ${address(`i % ${ACCOUNTS}`)}, ${START_SECONDS} + i / 10 + 60 from ${series}`);
  }
  for (const { indexdef } of definitions) await run(String(indexdef));
  for (const chainId of chainIds)
    await run(`insert into cursors values (${chainId}, 0, 0, ${TRANSFERS}, ${TRANSFERS}, ${Date.now()})`);
  await run("vacuum analyze sends");
  await run("vacuum analyze deliveries");
}

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
async function listKeys(kind: string, expression: (number: string) => string): Promise<(number: number) => string> {
  const numbers = Array.from({ length: 2_000 }, () => 1 + Math.floor(Math.random() * TRANSFERS));
  const rows = await run(`select encode(${expression("n")}, 'hex') as ${kind} from unnest(array[${numbers}]) as n`);
  return (number) => `0x${String(rows[number % rows.length]?.[kind])}`;
}

try {
  await index.migrate();
  const startedAt = performance.now();
  const [existing] = await run("select count(*)::int as count from cursors");
  if (existing?.count === 0) {
    await fill();
    console.log(`${TRANSFERS} transfers, filled in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  }
  const [size] = await run("select pg_database_size(current_database()) as bytes");
  console.log(
    `${(Number(size?.bytes) / 1e9).toFixed(1)} GB, ${Math.round(Number(size?.bytes) / TRANSFERS)} bytes a transfer`,
  );
  const find = (query: (reader: TransferIndexReader) => readonly unknown[]) =>
    index.reader.read(query).then((transfers) => transfers.length);
  const ids = await listKeys("key", (number) => hash("key", number));
  const sent = await listKeys("send", (number) => hash("send", number));
  const delivered = await listKeys("delivery", (number) => hash("delivery", number));
  const accounts = await listKeys("account", (number) => address(`n % ${ACCOUNTS}`.replace("n", number)));
  for (const pass of ["first pass", "second pass"]) {
    await measure(`by transfer ID, ${pass}`, LOOKUPS, (n) => find((reader) => reader.findByTransferId(ids(n))));
    await measure(`by sending transaction, ${pass}`, LOOKUPS, (n) =>
      find((reader) => reader.findByTransactionHash(sent(n))),
    );
    await measure(`by delivering transaction, ${pass}`, LOOKUPS, (n) =>
      find((reader) => reader.findByTransactionHash(delivered(n))),
    );
    await measure(`page of ${PAGE_SIZE} by account, ${pass}`, PAGES, (n) =>
      find((reader) => reader.readPage(accounts(n), LIST_START, PAGE_SIZE).entries),
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
