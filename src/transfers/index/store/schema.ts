import { type Kysely, type Migration, Migrator } from "kysely";
import { acquireLease } from "./lease.js";
import {
  BYTES_COLUMN_TYPE,
  createQueryBuilder,
  enableWriteAheadLog,
  IndexUnavailableError,
  type SqliteConnection,
} from "./sqlite.js";

/** A place among a chain's logs: no two events have the same. */
export interface EventPosition {
  readonly chain_id: number;
  readonly block_number: number;
  readonly log_index: number;
}

/** An event by which a transfer left. Hashes, addresses and keys are bytes: half the size of hex. */
export interface SendRow extends EventPosition {
  readonly transaction_hash: Uint8Array;
  readonly kind: "l1" | "l2" | "cctp";
  readonly token: string;
  /** What this transfer's arrival has as well: see arrival-key.ts. */
  readonly arrival_key: Uint8Array;
  readonly destination_chain_id: number;
  readonly recipient: Uint8Array;
  /** Values of 256 bits as decimal text. */
  readonly amount: string;
  readonly amount_out_min: string;
  readonly deadline: string;
  readonly bonder_fee: string;
  readonly relayer: Uint8Array | null;
  /** Sender of the transaction. */
  readonly account: Uint8Array;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** An event by which a transfer arrived. */
export interface DeliveryRow extends EventPosition {
  readonly transaction_hash: Uint8Array;
  readonly token: string;
  readonly arrival_key: Uint8Array;
  /** Sender of a bonding transaction. */
  readonly bonder: Uint8Array | null;
  /** Unix seconds; of completions from L1 only. */
  readonly timestamp: number | null;
}

/** A block that was the last one in the index once, kept until nothing can undo it. */
export interface BlockRow {
  readonly chain_id: number;
  readonly number: number;
  readonly hash: Uint8Array;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** How much of a chain is in the index. */
export interface CursorRow {
  readonly chain_id: number;
  readonly from_block: number;
  /** Time of that block, Unix seconds. */
  readonly from_timestamp: number;
  readonly to_block: number;
  /** The last block that was read when nothing could undo it any more. */
  readonly final_to: number;
  /** Milliseconds since 1970. */
  readonly observed_at: number;
}

export interface IndexTables {
  readonly sends: SendRow;
  readonly deliveries: DeliveryRow;
  readonly blocks: BlockRow;
  readonly cursors: CursorRow;
}

const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "2026-07-transfers": {
    // Each step may have been done by a process that was killed before it could say so.
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable("sends")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addColumn("log_index", "integer", (column) => column.notNull())
        .addColumn("transaction_hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("kind", "text", (column) => column.notNull())
        .addColumn("token", "text", (column) => column.notNull())
        .addColumn("arrival_key", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("destination_chain_id", "bigint", (column) => column.notNull())
        .addColumn("recipient", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("amount", "text", (column) => column.notNull())
        .addColumn("amount_out_min", "text", (column) => column.notNull())
        .addColumn("deadline", "text", (column) => column.notNull())
        .addColumn("bonder_fee", "text", (column) => column.notNull())
        .addColumn("relayer", BYTES_COLUMN_TYPE)
        .addColumn("account", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("timestamp", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("sends_place", ["chain_id", "block_number", "log_index"])
        .execute();
      await db.schema
        .createTable("deliveries")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("block_number", "bigint", (column) => column.notNull())
        .addColumn("log_index", "integer", (column) => column.notNull())
        .addColumn("transaction_hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("token", "text", (column) => column.notNull())
        .addColumn("arrival_key", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("bonder", BYTES_COLUMN_TYPE)
        .addColumn("timestamp", "bigint")
        .addPrimaryKeyConstraint("deliveries_place", ["chain_id", "block_number", "log_index"])
        .execute();
      await db.schema
        .createTable("blocks")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull())
        .addColumn("number", "bigint", (column) => column.notNull())
        .addColumn("hash", BYTES_COLUMN_TYPE, (column) => column.notNull())
        .addColumn("timestamp", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("blocks_place", ["chain_id", "number"])
        .execute();
      await db.schema
        .createTable("cursors")
        .ifNotExists()
        .addColumn("chain_id", "bigint", (column) => column.notNull().primaryKey())
        .addColumn("from_block", "bigint", (column) => column.notNull())
        .addColumn("from_timestamp", "bigint", (column) => column.notNull())
        .addColumn("to_block", "bigint", (column) => column.notNull())
        .addColumn("final_to", "bigint", (column) => column.notNull())
        .addColumn("observed_at", "bigint", (column) => column.notNull())
        .execute();
      for (const table of ["sends", "deliveries"]) {
        for (const column of ["transaction_hash", "arrival_key"]) {
          await db.schema.createIndex(`${table}_${column}`).ifNotExists().on(table).column(column).execute();
        }
      }
    },
  },
};

/** How long another process may take to bring the file up to date. */
const MIGRATION_TIMEOUT_MS = 30_000;
const RETRY_INTERVAL_MS = 50;

/**
 * Brings a file's tables up to date; several processes may do so at a time.
 * @throws IndexUnavailable when they cannot be: another version of this service made the file, or it cannot be written
 */
export async function migrateIndex(
  connection: SqliteConnection,
  file: string,
  pid: number,
  sleep: (ms: number) => Promise<void>,
): Promise<void> {
  let lease = await acquireLease(`${file}.migration`, pid);
  for (let waited = 0; !("release" in lease); waited += RETRY_INTERVAL_MS) {
    if (waited > MIGRATION_TIMEOUT_MS)
      throw new IndexUnavailableError(`process ${lease.pid} keeps the index's file ${file} locked`);
    await sleep(RETRY_INTERVAL_MS);
    lease = await acquireLease(`${file}.migration`, pid);
  }
  try {
    enableWriteAheadLog(connection);
    const db = createQueryBuilder<IndexTables>(connection);
    const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw unusableIndexError(file, error);
  } finally {
    lease.release();
  }
}

function unusableIndexError(file: string, cause: unknown): IndexUnavailableError {
  const message = cause instanceof Error ? cause.message : String(cause);
  // So does Kysely say that the file has had steps which this version does not have.
  const why = message.startsWith("corrupted migrations") ? "it is of another version" : message;
  return new IndexUnavailableError(`the index's file ${file} cannot be used: ${why}`, { cause });
}
