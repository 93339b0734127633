import { type Kysely, sql } from "kysely";
import type { MaybePromise } from "../../../../resilience/maybe-async.js";
import type { EventPosition, IndexTables } from "../schema.js";

/** A delivery and the send that it certainly belongs to. */
export interface DeliveredRow extends EventPosition {
  /** Unix seconds; null for a delivery of older versions. */
  readonly delivered_at: number | null;
  readonly token: string;
  /** null where the send is not indexed, or where equal transfers make it uncertain. */
  readonly source_chain_id: number | null;
  readonly sent_at: number | null;
}

/** Reads deliveries of a chain before a position, newest first; fewer than `limit` at the end. */
export type DeliveredReader = (
  chainId: number,
  before: { readonly block: number; readonly logIndex: number },
  limit: number,
) => MaybePromise<readonly DeliveredRow[]>;

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
