import { randomInt } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { type Kysely, type RawBuilder, type SqlBool, sql, type UpdateObject } from "kysely";
import { bytesToHex, hexToBytes } from "../../chain/hex.js";
import type { BlockHeader, BlockRange } from "../../chain/read/chain-reads.js";
import type { IndexDatabase, SqlDialect } from "./database/index-database.js";
import type {
  ChangeRow,
  CommitRow,
  CursorRow,
  EventPosition,
  EventRows,
  IndexTables,
  SendRow,
} from "./database/schema.js";

type Transaction = Kysely<IndexTables>;

/** A change that has no place in the log yet. */
type Change = Omit<ChangeRow, "sequence" | "nonce">;

/** A reorg removes a few rows. */
const REMOVED_ROWS_PER_STATEMENT = 100;
const SEND_CHANGE_COLUMNS = ["arrival_key", "transaction_hash", "kind", "account", "recipient"] as const;
const DELIVERY_CHANGE_COLUMNS = ["arrival_key", "transaction_hash"] as const;
const NO_SEND = { kind: null, account: null, recipient: null } as const;
/** Changes that are kept for readers; 130 bytes each. Who was away for longer reads all states again. */
const MAX_CHANGES = 100_000;
const MAX_NONCE = 2 ** 48 - 1;

/** What an index without commits lacks of a send. */
type LeafPlace = EventPosition & Pick<SendRow, "arrival_key" | "transfer_nonce" | "tree_index">;

/**
 * Writes the index. Each method is one transaction that changes events and cursor together, so that a process can be killed
 * at any time. Each fails when another process has moved the cursor meanwhile.
 */
export class IndexStore {
  readonly #db: Kysely<IndexTables>;
  readonly #transact: IndexDatabase["transact"];
  readonly #onChange: () => void;
  readonly #rowsPerStatement: number;
  readonly #bytesType: SqlDialect["bytesType"];

  /**
   * @param transact runs its argument in one transaction, which fails if another process has taken over
   * @param onChange called after a transaction that has changed transfers
   */
  constructor(
    { builder, dialect }: Pick<IndexDatabase, "builder" | "dialect">,
    transact: IndexDatabase["transact"],
    onChange: () => void,
  ) {
    this.#db = builder;
    this.#transact = transact;
    this.#onChange = onChange;
    this.#rowsPerStatement = dialect.rowsPerStatement;
    this.#bytesType = dialect.bytesType;
  }

  /** Reads the indexed range of a chain; undefined when it is not indexed yet. */
  readCursor(chainId: number): Promise<CursorRow | undefined> {
    return this.#db.selectFrom("cursors").selectAll().where("chain_id", "=", chainId).executeTakeFirst();
  }

  /**
   * Reads the blocks of a chain that were once the last one of the index, newest first.
   * @param limit maximum number of blocks
   */
  async readRecentBlocks(chainId: number, limit?: number): Promise<readonly BlockHeader[]> {
    const rows = await this.#db
      .selectFrom("blocks")
      .selectAll()
      .where("chain_id", "=", chainId)
      .orderBy("number", "desc")
      .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
      .execute();
    return rows.map(({ number, hash, timestamp }) => ({ number, hash: bytesToHex(hash), timestamp }));
  }

  /** Creates a cursor with an empty range after a final block; does nothing when there is a cursor. */
  initializeCursor(chainId: number, block: BlockHeader): Promise<void> {
    const cursor: CursorRow = {
      chain_id: chainId,
      from_block: block.number + 1,
      from_timestamp: block.timestamp,
      to_block: block.number,
      final_to: block.number,
      observed_at: block.timestamp * 1_000,
      commits_from_block: block.number + 1,
      commits_to_block: block.number,
    };
    return this.#transact(async (transaction) => {
      const { numInsertedOrUpdatedRows } = await transaction
        .insertInto("cursors")
        .values(cursor)
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      if (numInsertedOrUpdatedRows === 1n) await upsertBlock(transaction, chainId, block);
    });
  }

  /**
   * Adds events that follow the last block, and late events of earlier blocks.
   * @param options `to`: the new last block, or the same one again; `isFinal`: whether the added blocks are final;
   *   `observedAtMs`: when `to` was observed as the chain's latest block, in milliseconds since 1970
   */
  advance(
    cursor: CursorRow,
    rows: EventRows,
    {
      to,
      isFinal,
      observedAtMs,
    }: { readonly to: BlockHeader; readonly isFinal: boolean; readonly observedAtMs: number },
  ): Promise<void> {
    const final = isFinal ? { final_to: to.number } : {};
    const change = { ...moveLastBlock(to.number), observed_at: observedAtMs, ...final };
    return this.#moveCursor(cursor, "to", change, async (transaction) => {
      const changes = await this.#insertEvents(transaction, cursor.chain_id, rows);
      await upsertBlock(transaction, cursor.chain_id, to);
      if (isFinal) await discardBefore(transaction, cursor.chain_id, to.number);
      return changes;
    });
  }

  /** Removes everything above one of the blocks of `readRecentBlocks`. */
  rollBack(cursor: CursorRow, { number, timestamp }: BlockHeader): Promise<void> {
    // The blocks above are unknown until they are read again.
    const change = { ...moveLastBlock(number), observed_at: timestamp * 1_000 };
    return this.#moveCursor(cursor, "to", change, async (transaction) => {
      const range = { from: number + 1, to: cursor.to_block };
      const changes = await deleteEvents(transaction, cursor.chain_id, range);
      await deleteBlocks(transaction, cursor.chain_id, ">", number);
      return changes;
    });
  }

  /** Replaces the rows up to a block by those that were read again after the block had become final. */
  finalize(cursor: CursorRow, to: BlockHeader, rows: EventRows): Promise<void> {
    return this.#moveCursor(cursor, "to", { final_to: to.number }, async (transaction) => {
      const range = { from: cursor.final_to + 1, to: to.number };
      const removed = await deleteEvents(transaction, cursor.chain_id, range);
      const added = await this.#insertEvents(transaction, cursor.chain_id, rows);
      await upsertBlock(transaction, cursor.chain_id, to);
      await discardBefore(transaction, cursor.chain_id, to.number);
      return [...removed, ...added];
    });
  }

  /**
   * Adds events that precede the first block.
   * @param from the new first block: its number, and its time in Unix seconds
   */
  prepend(cursor: CursorRow, from: Omit<BlockHeader, "hash">, rows: EventRows): Promise<void> {
    const change = {
      from_block: from.number,
      from_timestamp: from.timestamp,
      commits_from_block: sql<number>`case when commits_from_block = from_block then ${from.number}
        else commits_from_block end`,
    };
    return this.#moveCursor(cursor, "from", change, (transaction) =>
      this.#insertEvents(transaction, cursor.chain_id, rows),
    );
  }

  /** Begins to fill in the commits of an index that processes of versions without commits have written. */
  beginCommits(chainId: number): Promise<void> {
    return this.#transact(async (transaction) => {
      await transaction
        .updateTable("cursors")
        .set({ commits_from_block: sql`to_block + 1`, commits_to_block: sql`to_block` })
        .where("chain_id", "=", chainId)
        .whereRef("commits_to_block", "<>", "to_block")
        .execute();
    });
  }

  /**
   * Fills in the commits of the blocks before the first one that has them.
   * @param from the new first block that has them
   * @param leaves sends of these blocks; those that the index does not have are left out
   */
  fillCommits(
    cursor: CursorRow,
    from: number,
    leaves: readonly LeafPlace[],
    commits: readonly CommitRow[],
  ): Promise<void> {
    const { chain_id, commits_from_block } = cursor;
    return this.#transact(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable("cursors")
        .set({ commits_from_block: from })
        .where("chain_id", "=", chain_id)
        .where("commits_from_block", "=", commits_from_block)
        .whereRef("commits_to_block", "=", "to_block")
        .executeTakeFirst();
      if (numUpdatedRows !== 1n) throw new Error("another process has moved the cursor of the index");
      // From an earlier attempt, before a process without commits has written the index again.
      const range = { from, to: commits_from_block - 1 };
      await transaction.deleteFrom("commits").where(isInRange(chain_id, range)).execute();
      await this.#insertCommits(transaction, commits);
      for await (const chunk of chunkRows(leaves, this.#rowsPerStatement))
        await updateLeaves(transaction, chain_id, chunk, this.#bytesType);
    });
  }

  /**
   * Moves one end of a cursor that no other process has moved, and runs `work` in the same transaction, which records the
   * changes that it returns.
   */
  async #moveCursor(
    { chain_id, from_block, to_block, final_to }: CursorRow,
    end: "from" | "to",
    change: UpdateObject<IndexTables, "cursors">,
    work: (transaction: Transaction) => Promise<readonly Change[]>,
  ): Promise<void> {
    const hasChanged = await this.#transact(async (transaction) => {
      const update = transaction.updateTable("cursors").set(change).where("chain_id", "=", chain_id);
      // The two ends move independently: the backfill moves one, the realtime sync the other.
      const { numUpdatedRows } = await (end === "from"
        ? update.where("from_block", "=", from_block)
        : update.where("to_block", "=", to_block).where("final_to", "=", final_to)
      ).executeTakeFirst();
      if (numUpdatedRows !== 1n) throw new Error("another process has moved the cursor of the index");
      const changes = await work(transaction);
      await this.#recordChanges(transaction, changes);
      return changes.length > 0;
    });
    if (hasChanged) this.#onChange();
  }

  /**
   * Inserts the events of a chain; existing ones stay as they are.
   * @returns the changes that this makes
   */
  async #insertEvents(
    transaction: Transaction,
    chainId: number,
    { sends, deliveries, commits }: EventRows,
  ): Promise<readonly Change[]> {
    const changes: Change[] = [];
    await this.#insertCommits(transaction, commits);
    const firstTimestamps = sends.length > 0 ? await readFirstTimestamps(transaction, chainId) : undefined;
    for await (const chunk of chunkRows(sends, this.#rowsPerStatement)) {
      const inserted = await transaction
        .insertInto("sends")
        .values(chunk.map((row) => ({ ...row, first_timestamp: getFirstTimestamp(row, firstTimestamps) })))
        .onConflict((conflict) => conflict.doNothing())
        .returning(SEND_CHANGE_COLUMNS)
        .execute();
      for (const row of inserted) changes.push(row);
    }
    for await (const chunk of chunkRows(deliveries, this.#rowsPerStatement)) {
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

  async #insertCommits(transaction: Transaction, commits: readonly CommitRow[]): Promise<void> {
    for await (const chunk of chunkRows(commits, this.#rowsPerStatement))
      await transaction
        .insertInto("commits")
        .values(chunk)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
  }

  /**
   * Appends changes to the change log, and removes the oldest ones. Call it last in a transaction: it takes the lock of the
   * counter, which makes transactions commit in the order of their sequences, so that no reader misses one.
   * @param changes an event that was removed and added again is one change
   */
  async #recordChanges(transaction: Transaction, changes: readonly Change[]): Promise<void> {
    const unique = new Map(changes.map((change) => [getEventKey(change), change]));
    if (unique.size === 0) return;
    const { value } = await transaction
      .updateTable("change_counter")
      .set({ value: sql`value + ${unique.size}` })
      .where("id", "=", 1)
      .returning("value")
      .executeTakeFirstOrThrow();
    const first = Number(value) - unique.size + 1;
    const nonce = randomInt(1, MAX_NONCE);
    const rows = Array.from(unique.values(), (change, index) => ({ ...change, sequence: first + index, nonce }));
    // Of more changes than are kept, those that would be removed at once are not written.
    for (let start = Math.max(0, rows.length - MAX_CHANGES); start < rows.length; start += this.#rowsPerStatement)
      await transaction
        .insertInto("changes")
        .values(rows.slice(start, start + this.#rowsPerStatement))
        .execute();
    await transaction
      .deleteFrom("changes")
      .where("sequence", "<=", Number(value) - MAX_CHANGES)
      .execute();
  }
}

/**
 * Deletes the events of a range of blocks that is not final, and remembers when their transfers were first sent.
 * @returns the changes that this makes
 */
async function deleteEvents(transaction: Transaction, chainId: number, range: BlockRange): Promise<readonly Change[]> {
  const sends = await transaction
    .deleteFrom("sends")
    .where(isInRange(chainId, range))
    .returning([...SEND_CHANGE_COLUMNS, "chain_id", "block_number", "timestamp", "first_timestamp"])
    .execute();
  const removed = sends.map(({ chain_id, transaction_hash, arrival_key, block_number, timestamp, first_timestamp }) => {
    return { chain_id, transaction_hash, arrival_key, block_number, first_timestamp: first_timestamp ?? timestamp };
  });
  for await (const chunk of chunkRows(removed, REMOVED_ROWS_PER_STATEMENT))
    await transaction
      .insertInto("removed_sends")
      .values(chunk)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  const deliveries = await transaction
    .deleteFrom("deliveries")
    .where(isInRange(chainId, range))
    .returning(DELIVERY_CHANGE_COLUMNS)
    .execute();
  await transaction.deleteFrom("commits").where(isInRange(chainId, range)).execute();
  return [
    ...sends.map(({ arrival_key, transaction_hash, kind, account, recipient }) => {
      return { arrival_key, transaction_hash, kind, account, recipient };
    }),
    ...deliveries.map((row) => ({ ...row, ...NO_SEND })),
  ];
}

/** Selects the events of a range of blocks. */
function isInRange(chainId: number, { from, to }: BlockRange): RawBuilder<SqlBool> {
  return sql`chain_id = ${chainId} and block_number between ${from} and ${to}`;
}

/** Adds nonce and place to sends that an older version has written. */
async function updateLeaves(
  transaction: Transaction,
  chainId: number,
  leaves: readonly LeafPlace[],
  bytesType: SqlDialect["bytesType"],
): Promise<void> {
  const bytes = sql.raw(bytesType);
  const rows = leaves.map(
    ({ block_number, log_index, arrival_key, transfer_nonce, tree_index }) =>
      sql`(cast(${block_number} as bigint), cast(${log_index} as integer), cast(${arrival_key} as ${bytes}),
        cast(${transfer_nonce} as ${bytes}), cast(${tree_index} as integer))`,
  );
  await sql`update sends set transfer_nonce = leaf.column4, tree_index = leaf.column5
    from (values ${sql.join(rows)}) as leaf
    where sends.chain_id = ${chainId} and sends.block_number = leaf.column1 and sends.log_index = leaf.column2
      and sends.arrival_key = leaf.column3`.execute(transaction);
}

/**
 * Returns the change of a cursor whose last block moves. The events of the blocks that are added are complete; if an older
 * version has added some before, commits are indexed from here on only.
 */
function moveLastBlock(number: number): UpdateObject<IndexTables, "cursors"> {
  return {
    to_block: number,
    commits_to_block: number,
    commits_from_block: sql<number>`case when commits_to_block = to_block then commits_from_block else to_block + 1 end`,
  };
}

/** Reads when the sends that a reorg has removed were first sent, by their keys; undefined for none. */
async function readFirstTimestamps(
  transaction: Transaction,
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

/** Returns a key that is the same for an event before and after a reorg. */
function getEventKey(event: Pick<Change, "transaction_hash" | "arrival_key">): string {
  return `${Buffer.from(event.transaction_hash).toString("latin1")} ${Buffer.from(event.arrival_key).toString("latin1")}`;
}

/** Removes what only blocks that are not final need, below a block. */
async function discardBefore(transaction: Transaction, chainId: number, number: number): Promise<void> {
  await deleteBlocks(transaction, chainId, "<", number);
  await transaction
    .deleteFrom("removed_sends")
    .where("chain_id", "=", chainId)
    .where("block_number", "<=", number)
    .execute();
}

/** Inserts a block, or replaces the one with its number: after a reorg it has another hash. */
async function upsertBlock(transaction: Transaction, chainId: number, block: BlockHeader): Promise<void> {
  const values = { hash: hexToBytes(block.hash), timestamp: block.timestamp };
  await transaction
    .insertInto("blocks")
    .values({ chain_id: chainId, number: block.number, ...values })
    .onConflict((conflict) => conflict.columns(["chain_id", "number"]).doUpdateSet(values))
    .execute();
}

async function deleteBlocks(
  transaction: Transaction,
  chainId: number,
  operator: "<" | ">",
  number: number,
): Promise<void> {
  await transaction.deleteFrom("blocks").where("chain_id", "=", chainId).where("number", operator, number).execute();
}
