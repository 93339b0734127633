import { randomBytes } from "node:crypto";
import type { CursorRow, DeliveryRow, SendRow } from "../../src/transfers/index/database/schema.js";
import type { IndexStore } from "../../src/transfers/index/index-store.js";

// Measures what writing an index in PostgreSQL takes, and what it leaves to the vacuum.

type Run = (sql: string) => Promise<Record<string, unknown>[]>;

/** Transfers of the backfill, and of one of its pages. */
const BACKFILL_TRANSFERS = 50_000;
const PAGE_TRANSFERS = 2_000;
/** Transfers of a day on which all are written twice: when they are seen, and when their blocks are final. */
const DAY_TRANSFERS = 30_000;
const POLL_TRANSFERS = 15;
/** Polls that find nothing. */
const IDLE_POLLS = 5_000;
const TABLES = ["sends", "deliveries", "changes", "cursors", "blocks"];

/** Prints the size of the database, its tables and their indexes. */
export async function printSizes(run: Run, transfers: number): Promise<void> {
  const [size] = await run("select pg_database_size(current_database()) as bytes");
  const bytes = Number(size?.bytes);
  console.log(`${(bytes / 1e9).toFixed(1)} GB, ${Math.round(bytes / transfers)} bytes a transfer`);
  const rows = await run(`select relname as name, pg_relation_size(oid) as bytes from pg_class
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'i') and pg_relation_size(oid) > 10e6 order by 2 desc`);
  console.log(rows.map(({ name, bytes: each }) => `  ${name}: ${(Number(each) / 1e6).toFixed(0)} MB`).join("\n"));
}

/** Writes transfers from the first chain to the second one as the backfill does, then a day's as the realtime sync does. */
export async function measureWrites(store: IndexStore, run: Run, [from = 0, to = 0]: readonly number[]): Promise<void> {
  const setAutovacuum = async (isOn: boolean): Promise<void> => {
    for (const table of TABLES) await run(`alter table ${table} set (autovacuum_enabled = ${isOn})`);
  };
  await setAutovacuum(false);
  await vacuum(run, "vacuum before", "vacuum");
  await measureRate("backfill", 2 * BACKFILL_TRANSFERS, "rows", async () => {
    for (let done = 0; done < BACKFILL_TRANSFERS; done += PAGE_TRANSFERS)
      await addTransfers(store, { from, to, count: PAGE_TRANSFERS, isFinal: true });
  });
  await vacuum(run, "vacuum after it", "vacuum");
  await measureRate("a day's transfers, each written twice", DAY_TRANSFERS, "transfers", async () => {
    for (let done = 0; done < DAY_TRANSFERS; done += POLL_TRANSFERS)
      await addTransfers(store, { from, to, count: POLL_TRANSFERS, isFinal: false });
  });
  await measureRate("polls that find nothing", IDLE_POLLS, "polls", async () => {
    for (let done = 0; done < IDLE_POLLS; done++) await addEvents(store, from, () => [], true);
  });
  await vacuum(run, "vacuum after a day", "vacuum (analyze)");
  await vacuum(run, "vacuum that reads all, as against wraparound", "vacuum (freeze, disable_page_skipping)");
  await setAutovacuum(true);
}

async function measureRate(name: string, count: number, unit: string, work: () => Promise<void>): Promise<void> {
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(cpuBefore);
  console.log(
    `  ${name}: ${Math.round(count / seconds)} ${unit}/s, CPU of this process ${((user + system) / count).toFixed(0)} us each`,
  );
}

async function vacuum(run: Run, name: string, command: string): Promise<void> {
  const dead = await run(`select relname as name, n_dead_tup as dead, n_live_tup as live from pg_stat_user_tables
    where schemaname = current_schema() and n_dead_tup > 0 order by 2 desc`);
  const startedAt = performance.now();
  for (const table of TABLES) await run(`${command} ${table}`);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  const rows = dead.map((row) => `${row.name} ${row.dead} of ${row.live}`).join(", ");
  console.log(`  ${name}: ${seconds} s; dead rows: ${rows || "none"}`);
}

/** Adds transfers that a chain sends to another one, which delivers them at once. */
async function addTransfers(
  store: IndexStore,
  { from, to, count, isFinal }: { from: number; to: number; count: number; isFinal: boolean },
): Promise<void> {
  const keys = Array.from({ length: count }, () => randomBytes(32));
  const toSend = (block: number) => keys.map((key, index) => createSend({ from, to, block, key, index }));
  await addEvents(store, from, toSend, isFinal);
  const toDelivery = (block: number) => keys.map((key, index) => createDelivery(to, block, key, index));
  await addEvents(store, to, toDelivery, isFinal);
}

/** Adds the events of one more block; those of one that is not final are then written once more. */
async function addEvents(
  store: IndexStore,
  chainId: number,
  create: (block: number) => SendRow[] | DeliveryRow[],
  isFinal: boolean,
): Promise<void> {
  const cursor = await readCursor(store, chainId);
  const block = { number: cursor.to_block + 1, hash: `0x${randomBytes(32).toString("hex")}`, timestamp: 1_800_000_000 };
  const events = create(block.number);
  const isSends = events.every((event): event is SendRow => "kind" in event);
  const rows = isSends
    ? { sends: events, deliveries: [], commits: [] }
    : { sends: [], deliveries: events as DeliveryRow[], commits: [] };
  await store.advance(cursor, rows, { to: block, isFinal, observedAtMs: Date.now() });
  if (!isFinal) await store.finalize(await readCursor(store, chainId), block, rows);
}

async function readCursor(store: IndexStore, chainId: number): Promise<CursorRow> {
  const cursor = await store.readCursor(chainId);
  if (cursor === undefined) throw new Error(`chain ${chainId} is not indexed`);
  return cursor;
}

interface SendOptions {
  readonly from: number;
  readonly to: number;
  readonly block: number;
  readonly key: Buffer;
  readonly index: number;
}

function createSend({ from, to, block, key, index }: SendOptions): SendRow {
  return {
    chain_id: from,
    block_number: block,
    log_index: 2 * index,
    transaction_hash: randomBytes(32),
    kind: "l2",
    token: "USDC.e",
    arrival_key: key,
    destination_chain_id: to,
    recipient: randomBytes(20),
    amount: "1234567890123456789",
    amount_out_min: "1234567890123456",
    deadline: "1800000000",
    bonder_fee: "123456789012345",
    relayer: null,
    account: randomBytes(20),
    timestamp: 1_800_000_000,
    transfer_nonce: randomBytes(32),
    tree_index: index,
  };
}

function createDelivery(chainId: number, block: number, key: Buffer, index: number): DeliveryRow {
  return {
    chain_id: chainId,
    block_number: block,
    log_index: 2 * index + 1,
    transaction_hash: randomBytes(32),
    token: "USDC.e",
    arrival_key: key,
    bonder: randomBytes(20),
    timestamp: 1_800_000_060,
  };
}
