import { setImmediate } from "node:timers/promises";
import type { Kysely } from "kysely";
import type { BlockHeader, BlockRange } from "../../../chain/read/chain-reads.js";
import { bytesToHex, hexToBytes } from "./hex.js";
import type { CursorRow, DeliveryRow, IndexTables, SendRow } from "./schema.js";

/** Events with all that is kept of them. */
export interface EventRows {
  readonly sends: readonly SendRow[];
  readonly deliveries: readonly DeliveryRow[];
}

/**
 * Writes the index. Each method is one transaction that changes events and cursor together, so that what a process did
 * when it was killed is there as a whole or not at all. Each begins with a write that fails when another process has
 * moved the cursor meanwhile.
 */
export interface IndexStore {
  /** How much of a chain is there. */
  readCursor(chainId: number): Promise<CursorRow | undefined>;
  /** The blocks of a chain that were the last one once, newest first, or as many of them. */
  readRecentBlocks(chainId: number, most?: number): Promise<readonly BlockHeader[]>;
  /** Begins with an empty range behind a block that nothing can undo; nothing happens where a range is there. */
  initializeCursor(chainId: number, block: BlockHeader): Promise<void>;
  /**
   * Adds what follows the last block, and what was missing before it.
   * @param options.to the new last block, or the same
   * @param options.isFinal whether nothing can undo what is added
   * @param options.observedAt when it was the chain's latest, in milliseconds since 1970
   */
  advance(cursor: CursorRow, rows: EventRows, options: AdvanceOptions): Promise<void>;
  /** Forgets everything above one of the blocks that were the last one. */
  rollBack(cursor: CursorRow, to: BlockHeader): Promise<void>;
  /** Puts what was read again, when nothing could undo it any more, in the place of what was there. */
  finalize(cursor: CursorRow, to: BlockHeader, rows: EventRows): Promise<void>;
  /**
   * Adds what precedes the first block.
   * @param from the new first block
   * @param fromTimestamp its time, Unix seconds
   */
  prepend(cursor: CursorRow, from: number, fromTimestamp: number, rows: EventRows): Promise<void>;
}

export interface AdvanceOptions {
  readonly to: BlockHeader;
  readonly isFinal: boolean;
  readonly observedAtMs: number;
}

/** Rows of one statement: few enough that requests are answered in between. */
const ROWS_PER_STATEMENT = 100;

/** @param transact runs its argument in one transaction */
export function createIndexStore(
  db: Kysely<IndexTables>,
  transact: (work: (transaction: Kysely<IndexTables>) => Promise<void>) => Promise<void>,
): IndexStore {
  /** Changes the cursor as long as it is what it was, and with it what `work` does. */
  async function move(
    { chain_id, from_block, to_block, final_to }: CursorRow,
    part: "beginning" | "end",
    change: Partial<Omit<CursorRow, "chain_id">>,
    work: (transaction: Kysely<IndexTables>) => Promise<void>,
  ): Promise<void> {
    await transact(async (transaction) => {
      const update = transaction.updateTable("cursors").set(change).where("chain_id", "=", chain_id);
      // Beginning and end move without each other.
      const { numUpdatedRows } = await (part === "beginning"
        ? update.where("from_block", "=", from_block)
        : update.where("to_block", "=", to_block).where("final_to", "=", final_to)
      ).executeTakeFirst();
      if (numUpdatedRows !== 1n) throw new Error("another process writes the index as well");
      await work(transaction);
    });
  }

  return {
    readCursor: (chainId) => db.selectFrom("cursors").selectAll().where("chain_id", "=", chainId).executeTakeFirst(),
    async readRecentBlocks(chainId, most) {
      const rows = await db
        .selectFrom("blocks")
        .selectAll()
        .where("chain_id", "=", chainId)
        .orderBy("number", "desc")
        .$if(most !== undefined, (query) => query.limit(most ?? 0))
        .execute();
      return rows.map(({ number, hash, timestamp }) => ({
        number,
        hash: bytesToHex(hash),
        timestamp,
      }));
    },
    initializeCursor: (chainId, block) =>
      transact(async (transaction) => {
        const cursor: CursorRow = {
          chain_id: chainId,
          from_block: block.number + 1,
          from_timestamp: block.timestamp,
          to_block: block.number,
          final_to: block.number,
          observed_at: block.timestamp * 1_000,
        };
        const { numInsertedOrUpdatedRows } = await transaction
          .insertInto("cursors")
          .values(cursor)
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst();
        if (numInsertedOrUpdatedRows === 1n) await upsertBlock(transaction, chainId, block);
      }),
    advance: (cursor, rows, { to, isFinal, observedAtMs }) =>
      move(
        cursor,
        "end",
        { to_block: to.number, observed_at: observedAtMs, ...(isFinal ? { final_to: to.number } : {}) },
        async (transaction) => {
          await insertRows(transaction, rows);
          await upsertBlock(transaction, cursor.chain_id, to);
          if (isFinal) await deleteBlocks(transaction, cursor.chain_id, "<", to.number);
        },
      ),
    // What came after it is not known any more, until it is read again.
    rollBack: (cursor, { number, timestamp }) =>
      move(cursor, "end", { to_block: number, observed_at: timestamp * 1_000 }, async (transaction) => {
        await deleteRows(transaction, cursor.chain_id, { from: number + 1, to: cursor.to_block });
        await deleteBlocks(transaction, cursor.chain_id, ">", number);
      }),
    finalize: (cursor, to, rows) =>
      move(cursor, "end", { final_to: to.number }, async (transaction) => {
        await deleteRows(transaction, cursor.chain_id, { from: cursor.final_to + 1, to: to.number });
        await insertRows(transaction, rows);
        await upsertBlock(transaction, cursor.chain_id, to);
        await deleteBlocks(transaction, cursor.chain_id, "<", to.number);
      }),
    prepend: (cursor, from, fromTimestamp, rows) =>
      move(cursor, "beginning", { from_block: from, from_timestamp: fromTimestamp }, (transaction) =>
        insertRows(transaction, rows),
      ),
  };
}

/** What is there already stays as it is. */
async function insertRows(transaction: Kysely<IndexTables>, { sends, deliveries }: EventRows): Promise<void> {
  for await (const some of chunkRows(sends)) {
    await transaction
      .insertInto("sends")
      .values(some)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  for await (const some of chunkRows(deliveries)) {
    await transaction
      .insertInto("deliveries")
      .values(some)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

async function* chunkRows<Row>(rows: readonly Row[]): AsyncGenerator<Row[]> {
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT) {
    // Only between two: no other process can write meanwhile.
    if (start > 0) await setImmediate();
    yield rows.slice(start, start + ROWS_PER_STATEMENT);
  }
}

async function deleteRows(transaction: Kysely<IndexTables>, chainId: number, { from, to }: BlockRange): Promise<void> {
  for (const table of ["sends", "deliveries"] as const) {
    await transaction
      .deleteFrom(table)
      .where("chain_id", "=", chainId)
      .where("block_number", ">=", from)
      .where("block_number", "<=", to)
      .execute();
  }
}

/** A block that is read again may have another hash. */
async function upsertBlock(transaction: Kysely<IndexTables>, chainId: number, block: BlockHeader): Promise<void> {
  const known = { hash: hexToBytes(block.hash), timestamp: block.timestamp };
  await transaction
    .insertInto("blocks")
    .values({ chain_id: chainId, number: block.number, ...known })
    .onConflict((conflict) => conflict.columns(["chain_id", "number"]).doUpdateSet(known))
    .execute();
}

async function deleteBlocks(
  transaction: Kysely<IndexTables>,
  chainId: number,
  operator: "<" | ">",
  number: number,
): Promise<void> {
  await transaction.deleteFrom("blocks").where("chain_id", "=", chainId).where("number", operator, number).execute();
}
