import { type Kysely, sql } from "kysely";
import { toTransferId } from "../row-mapping.js";
import type { IndexTables, SendRow } from "../schema.js";
import type { ToHexText } from "../transfer-statements.js";
import type { ChangedTransfer, IndexChanges } from "./index-changes.js";

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

/** What a feed reads of one state of the index. */
export interface ChangeReads {
  /** Sequence of the newest change. */
  readonly newest: number;
  /** Sequence of the oldest change that is kept; undefined: there are none. */
  readonly oldest: number | undefined;
  readonly rows: readonly ChangedSendRow[];
}

/** Selects the changes after a sequence; its values are the sequence and the maximum number of changes. */
export function selectChanges(db: Kysely<IndexTables>, toHexText: ToHexText) {
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

export function toIndexChanges(afterSequence: number, { newest, oldest, rows }: ChangeReads): IndexChanges {
  // The sequences have no gaps: the oldest one tells whether any is missing. A sequence that was never reached is of another
  // index: nothing is known of what has changed since.
  const isComplete =
    afterSequence <= newest && (afterSequence === newest || (oldest !== undefined && oldest <= afterSequence + 1));
  const sequence = rows.at(-1)?.sequence ?? newest;
  return { sequence, changed: rows.flatMap(toChangedTransfer), hasMore: sequence < newest, isComplete };
}

function toChangedTransfer(row: ChangedSendRow): ChangedTransfer[] {
  const { sequence, nonce, kind, arrival_key, transaction_hash, delivery_hash, account, recipient } = row;
  if (kind === null || transaction_hash === null || account === null || recipient === null) return [];
  const transferId = toTransferId({ kind, arrival_key, transaction_hash });
  const hashes = { transactionHash: transaction_hash, deliveryHash: delivery_hash ?? undefined };
  return [{ sequence, nonce: nonce ?? 0, transferId, ...hashes, account, recipient }];
}
