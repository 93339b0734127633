import type { Kysely } from "kysely";
import type { BlockHeader } from "../../../chain/read/chain-reads.js";
import { type Change, recordChanges } from "./changes/change-log.js";
import { deleteEvents, insertEvents } from "./changes/event-changes.js";
import { bytesToHex, hexToBytes } from "./hex.js";
import type { CursorRow, EventRows, IndexTables } from "./schema.js";

/**
 * Writes the index. Each method is one transaction that changes events and cursor together, so that a process can be killed
 * at any time. Each fails when another process has moved the cursor meanwhile.
 */
export interface IndexStore {
  /** Reads the indexed range of a chain; undefined when it is not indexed yet. */
  readCursor(chainId: number): Promise<CursorRow | undefined>;
  /**
   * Reads the blocks of a chain that were once the last one of the index, newest first.
   * @param limit maximum number of blocks
   */
  readRecentBlocks(chainId: number, limit?: number): Promise<readonly BlockHeader[]>;
  /** Creates a cursor with an empty range after a final block; does nothing when there is a cursor. */
  initializeCursor(chainId: number, block: BlockHeader): Promise<void>;
  /**
   * Adds events that follow the last block, and late events of earlier blocks.
   */
  advance(cursor: CursorRow, rows: EventRows, options: AdvanceOptions): Promise<void>;
  /** Removes everything above one of the blocks of `readRecentBlocks`. */
  rollBack(cursor: CursorRow, to: BlockHeader): Promise<void>;
  /** Replaces the rows up to a block by those that were read again after the block had become final. */
  finalize(cursor: CursorRow, to: BlockHeader, rows: EventRows): Promise<void>;
  /**
   * Adds events that precede the first block.
   * @param from number of the new first block
   * @param fromTimestamp time of that block, Unix seconds
   */
  prepend(cursor: CursorRow, from: number, fromTimestamp: number, rows: EventRows): Promise<void>;
}

export interface AdvanceOptions {
  /** The new last block, or the same one again. */
  readonly to: BlockHeader;
  /** Whether the added blocks are final. */
  readonly isFinal: boolean;
  /** When `to` was observed as the chain's latest block, in milliseconds since 1970. */
  readonly observedAtMs: number;
}

/** SQLite's statements run synchronously: small ones let the event loop serve requests in between. */
const SYNCHRONOUS_ROWS_PER_STATEMENT = 100;

/**
 * @param transact runs its argument in one transaction
 * @param onChange called after a transaction that has changed transfers
 * @param rowsPerStatement more of them take less time in all
 */
export function createIndexStore(
  db: Kysely<IndexTables>,
  transact: (work: (transaction: Kysely<IndexTables>) => Promise<void>) => Promise<void>,
  onChange: () => void,
  rowsPerStatement: number = SYNCHRONOUS_ROWS_PER_STATEMENT,
): IndexStore {
  /**
   * Moves one end of a cursor that no other process has moved, and runs `work` in the same transaction, which records the
   * changes that it returns.
   */
  async function moveCursor(
    { chain_id, from_block, to_block, final_to }: CursorRow,
    end: "from" | "to",
    change: Partial<Omit<CursorRow, "chain_id">>,
    work: (transaction: Kysely<IndexTables>) => Promise<readonly Change[]>,
  ): Promise<void> {
    let hasChanged = false;
    await transact(async (transaction) => {
      const update = transaction.updateTable("cursors").set(change).where("chain_id", "=", chain_id);
      // The two ends move independently: the backfill moves one, the realtime sync the other.
      const { numUpdatedRows } = await (end === "from"
        ? update.where("from_block", "=", from_block)
        : update.where("to_block", "=", to_block).where("final_to", "=", final_to)
      ).executeTakeFirst();
      if (numUpdatedRows !== 1n) throw new Error("another process has moved the cursor of the index");
      const changes = await work(transaction);
      hasChanged = changes.length > 0;
      await recordChanges(transaction, changes, rowsPerStatement);
    });
    if (hasChanged) onChange();
  }

  return {
    readCursor: (chainId) => db.selectFrom("cursors").selectAll().where("chain_id", "=", chainId).executeTakeFirst(),
    async readRecentBlocks(chainId, limit) {
      const rows = await db
        .selectFrom("blocks")
        .selectAll()
        .where("chain_id", "=", chainId)
        .orderBy("number", "desc")
        .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
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
      moveCursor(
        cursor,
        "to",
        { to_block: to.number, observed_at: observedAtMs, ...(isFinal ? { final_to: to.number } : {}) },
        async (transaction) => {
          const changes = await insertEvents(transaction, cursor.chain_id, rows, rowsPerStatement);
          await upsertBlock(transaction, cursor.chain_id, to);
          if (isFinal) await discardBefore(transaction, cursor.chain_id, to.number);
          return changes;
        },
      ),
    // The blocks above are unknown until they are read again.
    rollBack: (cursor, { number, timestamp }) =>
      moveCursor(cursor, "to", { to_block: number, observed_at: timestamp * 1_000 }, async (transaction) => {
        const range = { from: number + 1, to: cursor.to_block };
        const changes = await deleteEvents(transaction, cursor.chain_id, range);
        await deleteBlocks(transaction, cursor.chain_id, ">", number);
        return changes;
      }),
    finalize: (cursor, to, rows) =>
      moveCursor(cursor, "to", { final_to: to.number }, async (transaction) => {
        const range = { from: cursor.final_to + 1, to: to.number };
        const removed = await deleteEvents(transaction, cursor.chain_id, range);
        const added = await insertEvents(transaction, cursor.chain_id, rows, rowsPerStatement);
        await upsertBlock(transaction, cursor.chain_id, to);
        await discardBefore(transaction, cursor.chain_id, to.number);
        return [...removed, ...added];
      }),
    prepend: (cursor, from, fromTimestamp, rows) =>
      moveCursor(cursor, "from", { from_block: from, from_timestamp: fromTimestamp }, (transaction) =>
        insertEvents(transaction, cursor.chain_id, rows, rowsPerStatement),
      ),
  };
}

/** Removes what only blocks that are not final need, below a block. */
async function discardBefore(transaction: Kysely<IndexTables>, chainId: number, number: number): Promise<void> {
  await deleteBlocks(transaction, chainId, "<", number);
  await transaction
    .deleteFrom("removed_sends")
    .where("chain_id", "=", chainId)
    .where("block_number", "<=", number)
    .execute();
}

/** Inserts a block, or replaces the one with its number: after a reorg it has another hash. */
async function upsertBlock(transaction: Kysely<IndexTables>, chainId: number, block: BlockHeader): Promise<void> {
  const values = { hash: hexToBytes(block.hash), timestamp: block.timestamp };
  await transaction
    .insertInto("blocks")
    .values({ chain_id: chainId, number: block.number, ...values })
    .onConflict((conflict) => conflict.columns(["chain_id", "number"]).doUpdateSet(values))
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
