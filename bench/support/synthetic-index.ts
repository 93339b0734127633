import { randomBytes } from "node:crypto";
import { getNetwork } from "../../src/hop/networks.js";
import type { CommitRow, DeliveryRow, SendRow } from "../../src/transfers/index/database/schema.js";
import { openSqlite, type SqliteConnection } from "../../src/transfers/index/database/sqlite-database.js";
import { openTransferIndex } from "../../src/transfers/index/transfer-index.js";

/** Keys of the transfers in a synthetic index. */
export interface SyntheticIndex {
  readonly transferIds: readonly string[];
  /** Hashes of sending and of delivering transactions. */
  readonly transactionHashes: readonly string[];
  /** Addresses that have sent some 1,000 transfers each. */
  readonly accounts: readonly string[];
}

/** Transfers of a block, and of a transaction of the database. */
const BATCH_SIZE = 5_000;
/** A file that is lost when the fill fails. */
const FILL_PRAGMAS = ["journal_mode = off", "synchronous = off", "temp_store = memory", "cache_size = -500000"];
const OPTIMISM_CHAIN_ID = 10;
const ARBITRUM_CHAIN_ID = 42161;
const TRANSFERS_PER_ACCOUNT = 1_000;
/** Bridges commit at most 128 to 1,024 transfers at once; a block has a whole number of commits. */
const TRANSFERS_PER_COMMIT = 1_000;
const START_SECONDS = 1_700_000_000;

/**
 * Fills an index with synthetic transfers from optimism to arbitrum, all delivered: two rows each. The tables are those of the
 * service; their rows are inserted without its checks, and the indexes are built at the end, in a fraction of the time.
 */
export async function createSyntheticIndex(file: string, transfers: number): Promise<SyntheticIndex> {
  await createEmptyIndex(file);
  const transferIds: string[] = [];
  const transactionHashes: string[] = [];
  const accounts = Array.from({ length: Math.ceil(transfers / TRANSFERS_PER_ACCOUNT) }, () => randomBytes(20));
  const connection = await openSqlite(file);
  try {
    for (const pragma of FILL_PRAGMAS) connection.exec(`pragma ${pragma}`);
    const indexes = connection
      .prepare(
        "select name, sql from sqlite_master where type = 'index' and tbl_name in ('sends', 'deliveries', 'commits') and sql is not null",
      )
      .all();
    for (const { name } of indexes) connection.exec(`drop index ${name}`);
    const example = createTransferRows(0, 0, randomBytes(20));
    const insertSend = prepareInsert(connection, "sends", example.send);
    const insertDelivery = prepareInsert(connection, "deliveries", example.delivery);
    const insertCommit = prepareInsert(connection, "commits", example.commit);
    const insertBlock = (block: number, count: number): void => {
      connection.exec("begin");
      for (let log = 0; log < count; log++) {
        const { send, delivery, commit } = createTransferRows(block, log, pickAccount(accounts));
        insertSend.run(send);
        insertDelivery.run(delivery);
        if (send.tree_index === TRANSFERS_PER_COMMIT - 1) insertCommit.run(commit);
        transferIds.push(toHex(send.arrival_key));
        transactionHashes.push(toHex(send.transaction_hash), toHex(delivery.transaction_hash));
      }
      connection.exec("commit");
    };
    const lastBlock = 1 + Math.ceil(transfers / BATCH_SIZE);
    for (let block = 2; block <= lastBlock; block++)
      insertBlock(block, Math.min(BATCH_SIZE, transfers - transferIds.length));
    for (const { sql } of indexes) connection.exec(sql);
    connection
      .prepare("update cursors set to_block = ?, commits_to_block = ?, final_to = ?, observed_at = ?")
      .run(lastBlock, lastBlock, lastBlock, (START_SECONDS + lastBlock) * 1_000);
  } finally {
    connection.close();
  }
  return { transferIds, transactionHashes, accounts: accounts.map(toHex) };
}

async function createEmptyIndex(file: string): Promise<void> {
  const index = await openTransferIndex({ kind: "sqlite", file }, getNetwork("mainnet"));
  const { store } = index;
  try {
    await index.migrate();
    const first = { number: 1, hash: toHex(randomBytes(32)), timestamp: START_SECONDS };
    for (const chainId of [OPTIMISM_CHAIN_ID, ARBITRUM_CHAIN_ID]) await store.initializeCursor(chainId, first);
  } finally {
    await index.close();
  }
}

/** Prepares the insertion of rows with the columns of an example. */
function prepareInsert(connection: SqliteConnection, table: string, example: SendRow | DeliveryRow | CommitRow) {
  const columns = Object.keys(example);
  return connection.prepare(`insert into ${table} (${columns}) values (${columns.map((name) => `@${name}`)})`);
}

function pickAccount(accounts: readonly Buffer[]): Buffer {
  return accounts[Math.floor(Math.random() * accounts.length)] ?? randomBytes(20);
}

/** Creates a transfer, and the commit that would follow it. */
export function createTransferRows(
  block: number,
  log: number,
  account: Buffer,
): { send: SendRow; delivery: DeliveryRow; commit: CommitRow } {
  const shared = { block_number: block, log_index: 2 * log, token: "USDC.e", arrival_key: takeRandomBytes(32) };
  return {
    commit: {
      chain_id: OPTIMISM_CHAIN_ID,
      block_number: block,
      log_index: 2 * log + 1,
      transaction_hash: takeRandomBytes(32),
      token: shared.token,
      destination_chain_id: ARBITRUM_CHAIN_ID,
      root_hash: takeRandomBytes(32),
      total_amount: "1234567890123456789000",
      committed_at: START_SECONDS + block,
    },
    send: {
      ...shared,
      chain_id: OPTIMISM_CHAIN_ID,
      transaction_hash: takeRandomBytes(32),
      kind: "l2",
      destination_chain_id: ARBITRUM_CHAIN_ID,
      recipient: takeRandomBytes(20),
      amount: "1234567890123456789",
      amount_out_min: "1234567890123456",
      deadline: String(START_SECONDS),
      bonder_fee: "123456789012345",
      relayer: null,
      account,
      timestamp: START_SECONDS + block,
      transfer_nonce: takeRandomBytes(32),
      tree_index: log % TRANSFERS_PER_COMMIT,
    },
    delivery: {
      ...shared,
      chain_id: ARBITRUM_CHAIN_ID,
      transaction_hash: takeRandomBytes(32),
      bonder: takeRandomBytes(20),
      timestamp: null,
    },
  };
}

let pool = Buffer.alloc(0);

/** Returns random bytes from a pool: asking for a few at a time takes longer than inserting them. */
function takeRandomBytes(length: number): Buffer {
  if (pool.length < length) pool = randomBytes(1 << 20);
  const bytes = pool.subarray(0, length);
  pool = pool.subarray(length);
  return bytes;
}

function toHex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
