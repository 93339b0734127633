import { type Kysely, sql } from "kysely";
import type { SqlDialect } from "./database/index-database.js";
import type { EventPosition, IndexTables, SendRow } from "./database/schema.js";

/** Everything that a status needs of a send, of one of its deliveries and of both chains. Bytes are hex with 0x. */
export interface TransferRow
  extends Omit<
    SendRow,
    "transaction_hash" | "arrival_key" | "recipient" | "relayer" | "account" | "transfer_nonce" | "tree_index"
  > {
  readonly transaction_hash: string;
  readonly arrival_key: string;
  readonly recipient: string;
  readonly relayer: string | null;
  readonly account: string;
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

/** A delivery that belongs to a certain send. */
export type FoundDelivery = EventPosition & Pick<DeliverySummary, "transaction_hash" | "bonder" | "timestamp">;

/** What decides which of several equal sends from L1 a completion belongs to. */
export interface EqualSend extends EventPosition {
  readonly timestamp: number;
  readonly deadline: string;
}

/** A change with the send that it is about. Bytes are hex with 0x. */
export interface ChangedSendRow {
  readonly sequence: number;
  readonly arrival_key: string;
  /** null for a delivery whose send is not indexed. */
  readonly kind: SendRow["kind"] | null;
  readonly transaction_hash: string | null;
  readonly delivery_hash: string | null;
  readonly account: string | null;
  readonly recipient: string | null;
  readonly nonce: number | null;
}

/** A delivery and the send that it certainly belongs to. */
export interface DeliveredRow extends EventPosition {
  /** Unix seconds; null for a delivery of older versions. */
  readonly delivered_at: number | null;
  readonly token: string;
  /** null where the send is not indexed, or where equal transfers make it uncertain. */
  readonly source_chain_id: number | null;
  readonly sent_at: number | null;
}

/** Whether a send `s` is alone, as in TransferRow. In the usual case it stops at the first row that decides. */
const IS_ALONE = sql<0 | 1>`case when s.kind <> ${sql.lit("l1")} then 1
  when exists (select 1 from sends as o where o.arrival_key = s.arrival_key and
    (o.chain_id <> s.chain_id or o.block_number <> s.block_number or o.log_index <> s.log_index)) then 0
  when (select count(*) from deliveries as e where e.arrival_key = s.arrival_key) > 1 then 0
  else 1 end`;

/** Selects sends `s` with their deliveries and what is known of both chains, once per delivery. */
export function selectTransfers(db: Kysely<IndexTables>, { toHexText }: SqlDialect) {
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

/** Selects the indexed ranges of all chains, as IndexCoverage. */
export function selectCoverages(db: Kysely<IndexTables>) {
  return (
    db
      .selectFrom("cursors as c")
      .leftJoin("blocks as b", (join) =>
        join.onRef("b.chain_id", "=", "c.chain_id").onRef("b.number", "=", "c.to_block"),
      )
      .select(["c.chain_id as chainId", "c.from_block as fromBlock", "c.from_timestamp as fromTimestamp"])
      .select(["c.to_block as toBlock", "c.observed_at as observedAtMs", "c.final_to as finalizedBlock"])
      // A last block that is not stored has no time; the sync cannot go on then.
      .select(({ fn }) => fn.coalesce("b.timestamp", "c.from_timestamp").as("toTimestamp"))
  );
}

/** Selects deliveries in the order of the chains and their logs. */
export function selectDeliveries(db: Kysely<IndexTables>, { toHexText }: SqlDialect) {
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

/** Selects the changes after a sequence; its values are the sequence and the maximum number of changes. */
export function selectChanges(db: Kysely<IndexTables>, { toHexText }: SqlDialect) {
  /** A value of the send that the change tells itself, unless it is about a delivery. */
  const ofSend = (column: "account" | "recipient" | "transaction_hash") =>
    sql<string>`case when c.kind is null then ${toHexText(`s.${column}`)} else ${toHexText(`c.${column}`)} end`;
  return db
    .selectFrom((eb) =>
      eb.selectFrom("changes").selectAll().where("sequence", ">", 0).orderBy("sequence").limit(1).as("c"),
    )
    .leftJoin("sends as s", (join) => join.onRef("s.arrival_key", "=", "c.arrival_key").on("c.kind", "is", null))
    .select(["c.sequence", "c.nonce"])
    .select(({ fn }) => fn.coalesce("c.kind", "s.kind").as("kind"))
    .select([
      toHexText("c.arrival_key").as("arrival_key"),
      ofSend("transaction_hash").as("transaction_hash"),
      sql<string>`case when c.kind is null then ${toHexText("c.transaction_hash")} end`.as("delivery_hash"),
      ofSend("account").as("account"),
      ofSend("recipient").as("recipient"),
    ])
    .orderBy("c.sequence");
}

/**
 * Selects the deliveries of a chain before a position, newest first, with their sends. Its parameters are the chain ID, the block
 * number twice, the log index and the maximum number of rows.
 */
export function selectDelivered(db: Kysely<IndexTables>) {
  const page = sql<{
    readonly chain_id: number;
    readonly block_number: number;
    readonly log_index: number;
    readonly token: string;
    readonly timestamp: number | null;
    readonly arrival_key: Uint8Array;
  }>`(select chain_id, block_number, log_index, token, timestamp, arrival_key from deliveries
    where chain_id = ${0} and block_number <= ${0} and (block_number < ${0} or log_index < ${0})
    order by block_number desc, log_index desc limit ${0})`.as<"d">(sql.ref("d"));
  return db
    .selectFrom(page)
    .leftJoin("sends as s", (join) =>
      join
        .onRef("s.arrival_key", "=", "d.arrival_key")
        .onRef("s.token", "=", "d.token")
        // The sum keeps planners without statistics from using other indexes.
        .on(sql`s.destination_chain_id + 0`, "=", sql.ref("d.chain_id"))
        // Equal transfers from L1 have one key: which was delivered when takes more reads than a measurement is worth.
        .on(
          sql<boolean>`(s.kind <> 'l1' or (
            (select count(*) from sends as o where o.arrival_key = d.arrival_key) = 1 and
            (select count(*) from deliveries as e where e.arrival_key = d.arrival_key) = 1))`,
        ),
    )
    .select(["d.chain_id", "d.block_number", "d.log_index", "d.token", "d.timestamp as delivered_at"])
    .select(["s.chain_id as source_chain_id", "s.timestamp as sent_at"])
    .orderBy("d.block_number", "desc")
    .orderBy("d.log_index", "desc");
}
