import { type Kysely, type RawBuilder, sql } from "kysely";
import { hexToBytes } from "../../../chain/hex.js";
import type { SqlDialect, SqlValue } from "../database/index-database.js";
import type { IndexTables } from "../database/schema.js";
import { type IndexedTransfer, toSends } from "../row-mapping.js";
import { selectTransfers, type TransferRow } from "../statements.js";

/**
 * The place of a transfer in the list of its account, newest first. It is the same before and after a reorg: the time is that of
 * the block in which the transfer was indexed first, and the other members tell apart what has the same time.
 */
export interface ListPosition {
  /** Unix seconds. */
  readonly timestamp: number;
  /** 0x-prefixed hex, as are the other hashes and keys. */
  readonly transactionHash: string;
  readonly correlationKey: string;
  /** Tells apart equal transfers of one transaction from L1; not stable across reorgs. */
  readonly logIndex: number;
}

/** Which part of the list of an account to read. */
export interface PageRequest {
  /** Address of the sender or the recipient. */
  readonly account: string;
  readonly after: ListPosition;
  /** Maximum number of sends to consider. */
  readonly rows: number;
  /** Maximum number of sends to return. */
  readonly limit: number;
  /** Which transfers to read; undefined: any. */
  readonly filter: {
    /** Symbol of the token. */
    readonly token?: string | undefined;
    readonly sourceChainId?: number | undefined;
    readonly destinationChainId?: number | undefined;
    /** Whether the index knows of a delivery. */
    readonly isDelivered?: boolean | undefined;
  };
}

/** A part of the list of an account. */
export interface TransferPage {
  /** All that match the filter, and perhaps a few others. */
  readonly entries: readonly { readonly transfer: IndexedTransfer; readonly position: ListPosition }[];
  /** Position of the last send that was considered; undefined at the end of the list. */
  readonly next: ListPosition | undefined;
  /** Number of sends that were considered, if there is a next one. */
  readonly rows: number;
}

/** A send of an account. */
export interface ListedRow extends TransferRow {
  /** Unix seconds; see `first_timestamp` in schema.ts. */
  readonly listed_at: number;
  /** Place among the sends that were considered, from 1, newest first. */
  readonly place: number;
}

type RowId = SqlDialect["rowId"];

const NO_BYTES = new Uint8Array();
const ORDER = sql`listed_at desc, transaction_hash desc, arrival_key desc, log_index desc`;

/**
 * Selects sends of an account after a position, each once per delivery, in no order. It walks two indexes, of senders and of
 * recipients, and reads everything else only of the sends that it returns. Of the sends that it considers it returns those that
 * may match, and the last one, so that the next page goes on there. Its parameters are those of `toPageParameters`.
 */
export function selectPage(db: Kysely<IndexTables>, dialect: SqlDialect) {
  const { rowId } = dialect;
  const page = sql<{
    readonly row_id: unknown;
    readonly listed_at: number;
    readonly place: number;
  }>`(select row_id, listed_at, place from (
    select u.*, row_number() over (order by ${ORDER}) as place from (
      select * from ${selectPositions("account", rowId)} as a union select * from ${selectPositions("recipient", rowId)} as r
    ) as u
  ) as v where place <= ${0} and (place = ${0} or (${mayMatch()})) order by place limit ${0})`.as<"p">(sql.ref("p"));
  return selectTransfers(db, dialect)
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
}: PageRequest): readonly SqlValue[] {
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

/** Builds a page of the rows of the statement. @param toTransfers returns nothing for a network without the send's chains */
export function buildPage(
  request: PageRequest,
  sends: readonly ListedRow[],
  toTransfers: (send: ListedRow) => readonly IndexedTransfer[],
): TransferPage {
  const entries = sends.flatMap((send) =>
    toTransfers(send).map((transfer) => ({ transfer, position: toListPosition(send) })),
  );
  const last = sends.at(-1);
  if (last === undefined || (last.place < request.rows && sends.length < request.limit))
    return { entries, next: undefined, rows: request.rows };
  return { entries, next: toListPosition(last), rows: last.place };
}

/** Returns each send of a page once, newest first. */
export function toListedSends(rows: readonly ListedRow[]): readonly ListedRow[] {
  return toSends(rows).toSorted((a, b) => a.place - b.place);
}

function toListPosition({ listed_at, transaction_hash, arrival_key, log_index }: ListedRow): ListPosition {
  return { timestamp: listed_at, transactionHash: transaction_hash, correlationKey: arrival_key, logIndex: log_index };
}
