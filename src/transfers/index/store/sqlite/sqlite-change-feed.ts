import { sql } from "kysely";
import type { ChangedTransfer, IndexChangeFeed } from "../changes/index-changes.js";
import { toTransferId } from "../row-mapping.js";
import type { IndexTables, SendRow } from "../schema.js";
import { createKysely, prepareQuery, type SqliteConnection, toHexText } from "./sqlite.js";

/** A change with the send that it is about. Bytes are hex with 0x. */
interface ChangedSendRow {
  readonly sequence: number;
  readonly arrival_key: string;
  /** null for a delivery whose send is not indexed. */
  readonly kind: SendRow["kind"] | null;
  readonly transaction_hash: string | null;
  readonly delivery_hash: string | null;
  readonly account: string | null;
  readonly recipient: string | null;
}

/** Creates a feed that reads with a connection of its own state: it sees committed changes only. */
export function createSqliteChangeFeed(
  connection: SqliteConnection,
  subscribe: IndexChangeFeed["subscribe"],
): IndexChangeFeed {
  const db = createKysely<IndexTables>(connection);
  const readCounter = prepareQuery<{ value: number }>(
    connection,
    db.selectFrom("change_counter").select("value").compile().sql,
  );
  const readOldest = prepareQuery<{ sequence: number }>(
    connection,
    db.selectFrom("changes").select("sequence").orderBy("sequence").limit(1).compile().sql,
  );
  const readRows = prepareQuery<ChangedSendRow>(connection, selectChanges(connection));
  const readSequence = (): number => readCounter()[0]?.value ?? 0;

  const readInSnapshot = connection.transaction((afterSequence: number, limit: number) => ({
    newest: readSequence(),
    // The sequences have no gaps: the oldest one tells whether any is missing.
    oldest: readOldest(1)[0]?.sequence,
    rows: readRows(afterSequence, limit),
  }));

  return {
    readSequence,
    readChanges(afterSequence, limit) {
      const { newest, oldest, rows } = readInSnapshot(afterSequence, limit);
      // A sequence that was never reached is of another index: nothing is known of what has changed since.
      const isComplete =
        afterSequence <= newest && (afterSequence === newest || (oldest !== undefined && oldest <= afterSequence + 1));
      const sequence = rows.at(-1)?.sequence ?? newest;
      return { sequence, changed: rows.flatMap(toChangedTransfer), hasMore: sequence < newest, isComplete };
    },
    subscribe,
  };
}

function selectChanges(connection: SqliteConnection): string {
  const db = createKysely<IndexTables>(connection);
  return db
    .selectFrom((eb) =>
      eb.selectFrom("changes").selectAll().where("sequence", ">", 0).orderBy("sequence").limit(1).as("c"),
    )
    .leftJoin("sends as s", (join) => join.onRef("s.arrival_key", "=", "c.arrival_key").on("c.kind", "is", null))
    .select(["c.sequence"])
    .select(({ fn }) => fn.coalesce("c.kind", "s.kind").as("kind"))
    .select([
      toHexText("c.arrival_key").as("arrival_key"),
      sql<string>`case when c.kind is null then ${toHexText("s.transaction_hash")} else ${toHexText("c.transaction_hash")} end`.as(
        "transaction_hash",
      ),
      sql<string>`case when c.kind is null then ${toHexText("c.transaction_hash")} end`.as("delivery_hash"),
      sql<string>`case when c.kind is null then ${toHexText("s.account")} else ${toHexText("c.account")} end`.as(
        "account",
      ),
      sql<string>`case when c.kind is null then ${toHexText("s.recipient")} else ${toHexText("c.recipient")} end`.as(
        "recipient",
      ),
    ])
    .orderBy("c.sequence")
    .compile().sql;
}

function toChangedTransfer(row: ChangedSendRow): ChangedTransfer[] {
  const { kind, arrival_key, transaction_hash, delivery_hash, account, recipient } = row;
  if (kind === null || transaction_hash === null || account === null || recipient === null) return [];
  const transferId = toTransferId({ kind, arrival_key, transaction_hash });
  return [
    { transferId, transactionHash: transaction_hash, deliveryHash: delivery_hash ?? undefined, account, recipient },
  ];
}
