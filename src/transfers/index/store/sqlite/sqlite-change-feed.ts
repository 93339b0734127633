import { type ChangedSendRow, selectChanges, toIndexChanges } from "../changes/changed-sends.js";
import type { IndexChangeFeed } from "../changes/index-changes.js";
import type { IndexTables } from "../schema.js";
import { createKysely, prepareQuery, type SqliteConnection, toHexText } from "./sqlite.js";

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
  const readRows = prepareQuery<ChangedSendRow>(connection, selectChanges(db, toHexText).compile().sql);
  const readSequence = (): number => readCounter()[0]?.value ?? 0;

  const readInSnapshot = connection.transaction((afterSequence: number, limit: number) => ({
    newest: readSequence(),
    oldest: readOldest(1)[0]?.sequence,
    rows: readRows(afterSequence, limit),
  }));

  return {
    readSequence,
    readChanges: (afterSequence, limit) => toIndexChanges(afterSequence, readInSnapshot(afterSequence, limit)),
    subscribe,
  };
}
