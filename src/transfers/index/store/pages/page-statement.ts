import { type Kysely, type RawBuilder, sql } from "kysely";
import { hexToBytes } from "../hex.js";
import type { IndexTables } from "../schema.js";
import { selectTransfers, type ToHexText } from "../transfer-statements.js";
import type { PageRequest } from "./transfer-page.js";

interface PageRow {
  readonly row_id: unknown;
  readonly listed_at: number;
  readonly place: number;
}

/** A database's name for where a row is, which is the fastest way to it within one statement. */
export type RowId = "rowid" | "ctid";

const NO_BYTES = new Uint8Array();
const ORDER = sql`listed_at desc, transaction_hash desc, arrival_key desc, log_index desc`;

/**
 * Selects sends of an account after a position, each once per delivery, in no order. It walks two indexes, of senders and of
 * recipients, and reads everything else only of the sends that it returns. Of the sends that it considers it returns those that
 * may match, and the last one, so that the next page goes on there. Its parameters are those of `toPageParameters`.
 */
export function selectPage(db: Kysely<IndexTables>, toHexText: ToHexText, rowId: RowId) {
  const page = sql<PageRow>`(select row_id, listed_at, place from (
    select u.*, row_number() over (order by ${ORDER}) as place from (
      select * from ${selectPositions("account", rowId)} as a union select * from ${selectPositions("recipient", rowId)} as r
    ) as u
  ) as v where place <= ${0} and (place = ${0} or (${mayMatch()})) order by place limit ${0})`.as<"p">(sql.ref("p"));
  return selectTransfers(db, toHexText)
    .innerJoin(page, (join) => join.on(sql`${sql.ref(`s.${rowId}`)}`, "=", sql.ref("p.row_id")))
    .select(["p.listed_at", "p.place"]);
}

/** Returns the parameters of the statement that `selectPage` builds. */
export function toPageParameters({
  account,
  after: { timestamp, transactionHash, correlationKey, logIndex },
  rows,
  limit,
  filter: { token, sourceChainId, destinationChainId, isDelivered },
}: PageRequest): readonly (Uint8Array | number | string | null)[] {
  const [hash, key] = [hexToBytes(transactionHash), hexToBytes(correlationKey)];
  const branch = [hexToBytes(account), timestamp, timestamp, hash, key, hash, key, logIndex, rows];
  const delivered = isDelivered === undefined ? null : Number(isDelivered);
  const filter = [token ?? null, sourceChainId ?? null, destinationChainId ?? null, delivered];
  return [...branch, ...branch, rows, rows, ...filter, limit];
}

/** Selects the positions of the sends that have an address in one column. */
function selectPositions(column: "account" | "recipient", rowId: RowId): RawBuilder<unknown> {
  // The first comparison alone decides where the walk of the index begins. Only transfers from L1 can share their transaction
  // and key; for others the log, which a reorg may move, must not count.
  return sql`(select ${sql.ref(rowId)} as row_id, chain_id, log_index, transaction_hash, kind, token, arrival_key,
    destination_chain_id, coalesce(first_timestamp, timestamp) as listed_at from sends
    where ${sql.ref(column)} = ${NO_BYTES} and coalesce(first_timestamp, timestamp) <= ${0}
    and (coalesce(first_timestamp, timestamp) < ${0} or (transaction_hash, arrival_key) < (${NO_BYTES}, ${NO_BYTES})
      or (transaction_hash = ${NO_BYTES} and arrival_key = ${NO_BYTES} and kind = ${sql.lit("l1")} and log_index < ${0}))
    order by ${ORDER} limit ${0})`;
}

/** Whether a position `v` may match a filter; a parameter that is null matches any. Which delivery a transfer from L1 has, it cannot tell. */
function mayMatch(): RawBuilder<unknown> {
  return sql`token = coalesce(cast(${""} as text), token) and chain_id = coalesce(cast(${0} as bigint), chain_id)
    and destination_chain_id = coalesce(cast(${0} as bigint), destination_chain_id)
    and case cast(${0} as integer)
      when 1 then exists (select 1 from deliveries as e where e.arrival_key = v.arrival_key)
      when 0 then kind = ${sql.lit("l1")} or not exists (select 1 from deliveries as e where
        e.arrival_key = v.arrival_key and e.token = v.token and e.chain_id + 0 = v.destination_chain_id)
      else true end`;
}
