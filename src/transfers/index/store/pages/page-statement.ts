import { type Kysely, type RawBuilder, sql } from "kysely";
import { hexToBytes } from "../hex.js";
import type { IndexTables } from "../schema.js";
import { selectTransfers, type ToHexText } from "../transfer-statements.js";
import type { ListPosition } from "./transfer-page.js";

interface PageRow {
  readonly chain_id: number;
  readonly block_number: number;
  readonly log_index: number;
  readonly listed_at: number;
}

/**
 * Selects the sends of an account after a position, each once per delivery, in no order. It walks two indexes, of senders and of
 * recipients, and reads whole rows only of the sends of the page. Its parameters are those of `toPageParameters`.
 */
export function selectPage(db: Kysely<IndexTables>, toHexText: ToHexText) {
  const page = sql<PageRow>`(select chain_id, block_number, log_index, listed_at from (
    select * from ${selectPositions("account")} as a union select * from ${selectPositions("recipient")} as r
  ) as u order by ${ORDER} limit ${0})`.as<"p">(sql.ref("p"));
  return selectTransfers(db, toHexText)
    .innerJoin(page, (join) =>
      join
        .onRef("p.chain_id", "=", "s.chain_id")
        .onRef("p.block_number", "=", "s.block_number")
        .onRef("p.log_index", "=", "s.log_index"),
    )
    .select("p.listed_at");
}

/** Returns the parameters of the statement that `selectPage` builds. */
export function toPageParameters(
  account: string,
  { timestamp, transactionHash, correlationKey, logIndex }: ListPosition,
  limit: number,
): readonly (Uint8Array | number)[] {
  const [hash, key] = [hexToBytes(transactionHash), hexToBytes(correlationKey)];
  const branch = [hexToBytes(account), timestamp, timestamp, hash, key, hash, key, logIndex, limit];
  return [...branch, ...branch, limit];
}

const ORDER = sql`listed_at desc, transaction_hash desc, arrival_key desc, log_index desc`;

/** Selects the positions of the sends that have an address in one column. */
function selectPositions(column: "account" | "recipient"): RawBuilder<unknown> {
  const none = new Uint8Array();
  // The first comparison alone decides where the walk of the index begins. Only transfers from L1 can share their transaction
  // and key; for others the log, which a reorg may move, must not count.
  return sql`(select chain_id, block_number, log_index, transaction_hash, arrival_key,
    coalesce(first_timestamp, timestamp) as listed_at from sends
    where ${sql.ref(column)} = ${none} and coalesce(first_timestamp, timestamp) <= ${0}
    and (coalesce(first_timestamp, timestamp) < ${0} or (transaction_hash, arrival_key) < (${none}, ${none})
      or (transaction_hash = ${none} and arrival_key = ${none} and kind = ${sql.lit("l1")} and log_index < ${0}))
    order by ${ORDER} limit ${0})`;
}
