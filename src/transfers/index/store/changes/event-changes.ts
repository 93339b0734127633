import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import type { BlockRange } from "../../../../chain/read/chain-reads.js";
import type { EventRows, IndexTables, SendRow } from "../schema.js";
import { type Change, getEventKey } from "./change-log.js";

/** A reorg removes a few rows. */
const REMOVED_ROWS_PER_STATEMENT = 100;

const SEND_CHANGE_COLUMNS = ["arrival_key", "transaction_hash", "kind", "account", "recipient"] as const;
const DELIVERY_CHANGE_COLUMNS = ["arrival_key", "transaction_hash"] as const;
const NO_SEND = { kind: null, account: null, recipient: null } as const;

/**
 * Inserts the events of a chain; existing ones stay as they are.
 * @returns the changes that this makes
 */
export async function insertEvents(
  transaction: Kysely<IndexTables>,
  chainId: number,
  { sends, deliveries }: EventRows,
  rowsPerStatement: number,
): Promise<readonly Change[]> {
  const changes: Change[] = [];
  const firstTimestamps = sends.length > 0 ? await readFirstTimestamps(transaction, chainId) : undefined;
  for await (const chunk of chunkRows(sends, rowsPerStatement)) {
    const inserted = await transaction
      .insertInto("sends")
      .values(chunk.map((row) => ({ ...row, first_timestamp: getFirstTimestamp(row, firstTimestamps) })))
      .onConflict((conflict) => conflict.doNothing())
      .returning(SEND_CHANGE_COLUMNS)
      .execute();
    for (const row of inserted) changes.push(row);
  }
  for await (const chunk of chunkRows(deliveries, rowsPerStatement)) {
    const inserted = await transaction
      .insertInto("deliveries")
      .values(chunk)
      .onConflict((conflict) => conflict.doNothing())
      .returning(DELIVERY_CHANGE_COLUMNS)
      .execute();
    for (const row of inserted) changes.push({ ...row, ...NO_SEND });
  }
  return changes;
}

/**
 * Deletes the events of a range of blocks that is not final, and remembers when their transfers were first sent.
 * @returns the changes that this makes
 */
export async function deleteEvents(
  transaction: Kysely<IndexTables>,
  chainId: number,
  { from, to }: BlockRange,
): Promise<readonly Change[]> {
  const sends = await transaction
    .deleteFrom("sends")
    .where("chain_id", "=", chainId)
    .where("block_number", ">=", from)
    .where("block_number", "<=", to)
    .returning([...SEND_CHANGE_COLUMNS, "chain_id", "block_number", "timestamp", "first_timestamp"])
    .execute();
  const removed = sends.map(
    ({ chain_id, transaction_hash, arrival_key, block_number, timestamp, first_timestamp }) => ({
      ...{ chain_id, transaction_hash, arrival_key, block_number },
      first_timestamp: first_timestamp ?? timestamp,
    }),
  );
  for await (const chunk of chunkRows(removed, REMOVED_ROWS_PER_STATEMENT))
    await transaction
      .insertInto("removed_sends")
      .values(chunk)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  const deliveries = await transaction
    .deleteFrom("deliveries")
    .where("chain_id", "=", chainId)
    .where("block_number", ">=", from)
    .where("block_number", "<=", to)
    .returning(DELIVERY_CHANGE_COLUMNS)
    .execute();
  return [
    ...sends.map(({ arrival_key, transaction_hash, kind, account, recipient }) => ({
      ...{ arrival_key, transaction_hash, kind, account, recipient },
    })),
    ...deliveries.map((row) => ({ ...row, ...NO_SEND })),
  ];
}

/** Reads when the sends that a reorg has removed were first sent, by their keys; undefined for none. */
async function readFirstTimestamps(
  transaction: Kysely<IndexTables>,
  chainId: number,
): Promise<ReadonlyMap<string, number> | undefined> {
  const rows = await transaction.selectFrom("removed_sends").selectAll().where("chain_id", "=", chainId).execute();
  if (rows.length === 0) return undefined;
  return new Map(rows.map((row) => [getEventKey(row), Number(row.first_timestamp)]));
}

function getFirstTimestamp(row: SendRow, firstTimestamps: ReadonlyMap<string, number> | undefined): number | null {
  const timestamp = firstTimestamps?.get(getEventKey(row));
  return timestamp === undefined || timestamp === row.timestamp ? null : timestamp;
}

async function* chunkRows<Row>(rows: readonly Row[], size: number): AsyncGenerator<Row[]> {
  for (let start = 0; start < rows.length; start += size) {
    // Yields between chunks only: the transaction locks out other processes, so it should end soon.
    if (start > 0) await setImmediate();
    yield rows.slice(start, start + size);
  }
}
