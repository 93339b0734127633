import { type Kysely, type RawBuilder, sql } from "kysely";
import type { PageRequest } from "./pages/transfer-page.js";
import type { CursorRow, EventPosition, IndexTables, SendRow } from "./schema.js";

/** Everything that a status needs of a send, of one of its deliveries and of both chains. Bytes are hex with 0x. */
export interface TransferRow extends EventPosition {
  readonly transaction_hash: string;
  readonly kind: SendRow["kind"];
  readonly token: string;
  readonly arrival_key: string;
  readonly destination_chain_id: number;
  readonly recipient: string;
  readonly amount: string;
  readonly amount_out_min: string;
  readonly deadline: string;
  readonly bonder_fee: string;
  readonly relayer: string | null;
  readonly account: string;
  readonly timestamp: number;
  /** Number of sends of the same transaction, this one included. */
  readonly sends_in_transaction: number;
  /**
   * 0 for a transfer from L1 whose correlation key other sends or several deliveries have: they are matched by their order. 1 for all
   * others.
   */
  readonly is_alone: 0 | 1;
  /** null without a delivery, and always for a transfer that is not alone. */
  readonly delivery_hash: string | null;
  readonly delivery_block: number | null;
  readonly delivery_log_index: number | null;
  /** Unix seconds; null also for deliveries of older versions. */
  readonly delivery_timestamp: number | null;
  readonly bonder: string | null;
  /** The columns of the cursors are null for a chain that is not indexed yet. */
  readonly source_final_to: number | null;
  readonly source_from_block: number | null;
  readonly source_from_timestamp: number | null;
  readonly source_observed_at: number | null;
  readonly destination_final_to: number | null;
  readonly destination_from_block: number | null;
  readonly destination_from_timestamp: number | null;
  readonly destination_observed_at: number | null;
}

/** A delivery without the values that only its key hashes. Bytes are hex with 0x. */
export interface DeliverySummary extends EventPosition {
  readonly transaction_hash: string;
  readonly token: string;
  readonly arrival_key: string;
  readonly bonder: string | null;
  readonly timestamp: number | null;
}

/** What decides which of several equal sends from L1 a completion belongs to. */
export interface EqualSend extends EventPosition {
  readonly timestamp: number;
  readonly deadline: string;
}

/** A send of an account. */
export interface ListedRow extends TransferRow {
  /** Unix seconds; see `first_timestamp` in schema.ts. */
  readonly listed_at: number;
  /** Place among the sends that were considered, from 1, newest first. */
  readonly place: number;
}

/** The statements of a reader of the index. Each reads a consistent state by itself. */
export interface TransferStatements {
  /** Reads sends by their correlation keys, each once per delivery, in no order. */
  transfersByKeys(keys: readonly Uint8Array[]): readonly TransferRow[];
  /** Reads sends by their transaction, each once per delivery, in no order. */
  transfersByHash(hash: Uint8Array): readonly TransferRow[];
  /** Reads the deliveries of a transaction in log order. */
  deliveriesByHash(hash: Uint8Array): readonly DeliverySummary[];
  /** Reads deliveries by their correlation key in the order of their chains. */
  deliveriesByKey(key: Uint8Array): readonly DeliverySummary[];
  /** Reads equal sends from L1 in the order of the chain. */
  equalL1Sends(key: Uint8Array): readonly EqualSend[];
  /** Reads the sends of an account that may match, and the last one that it has considered; each once per delivery, in no order. */
  page(request: PageRequest): readonly ListedRow[];
  cursor(chainId: number): CursorRow | undefined;
}

/** The database as a reader needs it. */
export interface IndexSource {
  readonly statements: TransferStatements;
  /** Wraps a function so that the statements in it read one state. */
  readonly inSnapshot: <Args extends unknown[], Result>(read: (...args: Args) => Result) => (...args: Args) => Result;
  readonly close: () => void;
}

/** Returns a database's expression for the bytes of a column as lower-case hex with 0x, null for null. */
export type ToHexText = (column: string) => RawBuilder<string>;

/** Whether a send `s` is alone, as in TransferRow. In the usual case it stops at the first row that decides. */
const IS_ALONE = sql<0 | 1>`case when s.kind <> ${sql.lit("l1")} then 1
  when exists (select 1 from sends as o where o.arrival_key = s.arrival_key and
    (o.chain_id <> s.chain_id or o.block_number <> s.block_number or o.log_index <> s.log_index)) then 0
  when (select count(*) from deliveries as e where e.arrival_key = s.arrival_key) > 1 then 0
  else 1 end`;

/** Selects sends `s` with their deliveries and what is known of both chains, once per delivery. */
export function selectTransfers(db: Kysely<IndexTables>, toHexText: ToHexText) {
  return db
    .selectFrom("sends as s")
    .leftJoin("deliveries as d", (join) =>
      join
        // The key is computed once for each send: of equal transfers from L1, no pair of a send and a delivery is looked at.
        .on("d.arrival_key", "=", sql<Uint8Array>`case when ${IS_ALONE} = 1 then s.arrival_key end`)
        .onRef("d.token", "=", "s.token")
        // The sum keeps planners without statistics from walking the primary key, which begins with the chain.
        .on(sql`d.chain_id + 0`, "=", sql.ref("s.destination_chain_id")),
    )
    .leftJoin("cursors as sc", "sc.chain_id", "s.chain_id")
    .leftJoin("cursors as dc", "dc.chain_id", "s.destination_chain_id")
    .select(["s.chain_id", "s.block_number", "s.log_index", "s.kind", "s.token", "s.destination_chain_id"])
    .select(["s.amount", "s.amount_out_min", "s.deadline", "s.bonder_fee", "s.timestamp"])
    .select(({ selectFrom, fn }) => [
      toHexText("s.transaction_hash").as("transaction_hash"),
      toHexText("s.arrival_key").as("arrival_key"),
      toHexText("s.recipient").as("recipient"),
      toHexText("s.relayer").as("relayer"),
      toHexText("s.account").as("account"),
      selectFrom("sends as t")
        .whereRef("t.transaction_hash", "=", "s.transaction_hash")
        .select(fn.countAll<number>().as("count"))
        .as("sends_in_transaction"),
      IS_ALONE.as("is_alone"),
      toHexText("d.transaction_hash").as("delivery_hash"),
      toHexText("d.bonder").as("bonder"),
    ])
    .select([
      "d.block_number as delivery_block",
      "d.log_index as delivery_log_index",
      "d.timestamp as delivery_timestamp",
    ])
    .select(["sc.final_to as source_final_to", "sc.from_block as source_from_block"])
    .select(["sc.from_timestamp as source_from_timestamp", "sc.observed_at as source_observed_at"])
    .select(["dc.final_to as destination_final_to", "dc.from_block as destination_from_block"])
    .select(["dc.from_timestamp as destination_from_timestamp", "dc.observed_at as destination_observed_at"]);
}

/** Selects deliveries in the order of the chains and their logs. */
export function selectDeliveries(db: Kysely<IndexTables>, toHexText: ToHexText) {
  return db
    .selectFrom("deliveries")
    .select(["chain_id", "block_number", "log_index", "token", "timestamp"])
    .select([
      toHexText("transaction_hash").as("transaction_hash"),
      toHexText("arrival_key").as("arrival_key"),
      toHexText("bonder").as("bonder"),
    ])
    .orderBy("chain_id")
    .orderBy("block_number")
    .orderBy("log_index");
}

/** Selects sends from L1, whose deliveries are matched by the order of both. */
export function selectEqualL1Sends(db: Kysely<IndexTables>) {
  return db
    .selectFrom("sends")
    .select(["chain_id", "block_number", "log_index", "timestamp", "deadline"])
    .where(sql.ref("kind"), "=", sql.lit("l1"))
    .orderBy("chain_id")
    .orderBy("block_number")
    .orderBy("log_index");
}
