import { type CompiledQuery, type Kysely, sql } from "kysely";
import type { SqlDialect } from "./database/index-database.js";
import type { IndexTables } from "./database/schema.js";
import { type ListedRow, selectPage } from "./list/page-statement.js";
import {
  type ChangedSendRow,
  type DeliveredRow,
  selectChanges,
  selectCoverages,
  selectDelivered,
  selectDeliveries,
  selectEqualL1Sends,
  selectTransfers,
  type TransferRow,
} from "./statements.js";
import { selectTree } from "./transfer-tree.js";

/** Compiles the statements of a database once, because building their SQL takes longer than running them. */
export function compileStatements(db: Kysely<IndexTables>, dialect: SqlDialect) {
  const bytes = new Uint8Array();
  return {
    /** Reads sends by their correlation keys, as many as the statement takes, each once per delivery, in no order. */
    transfersByKeys: compileByCount((keys) =>
      selectTransfers(db, dialect).where("s.arrival_key", "in", keys).compile(),
    ),
    /** Reads sends by their transactions, as `transfersByKeys`. */
    transfersByHashes: compileByCount((hashes) =>
      selectTransfers(db, dialect).where("s.transaction_hash", "in", hashes).compile(),
    ),
    /** Reads the deliveries of a transaction in log order. */
    deliveriesByHash: selectDeliveries(db, dialect).where("transaction_hash", "=", bytes).compile(),
    /** Reads deliveries by their correlation key in the order of their chains. */
    deliveriesByKey: selectDeliveries(db, dialect).where("arrival_key", "=", bytes).compile(),
    /** Reads equal sends from L1 in the order of the chain. */
    equalL1Sends: selectEqualL1Sends(db).where("arrival_key", "=", bytes).compile(),
    /** Reads the sends of an account that may match, and the last one that was considered; each once per delivery, in no order. */
    page: selectPage(db, dialect).$castTo<ListedRow>().compile(),
    cursors: selectCoverages(db).compile(),
    changes: selectChanges(db, dialect).$castTo<ChangedSendRow>().compile(),
    /** Reads the sequences of the newest change, and of the oldest one that is kept; null: there are none. */
    changeBounds: db
      .selectFrom("change_counter")
      .select((eb) => [
        "value as newest",
        eb
          .selectFrom("changes")
          .select(({ fn }) => fn.min("sequence").as("s"))
          .as("oldest"),
      ])
      .where("id", "=", sql.lit(1))
      .$castTo<{ readonly newest: number; readonly oldest: number | null }>()
      .compile(),
    /** Reads deliveries of a chain before a position with their sends, newest first. */
    delivered: selectDelivered(db).$castTo<DeliveredRow>().compile(),
    /** Reads the transfers of one root in their order. */
    tree: selectTree(dialect).compile(db),
  };
}

export type IndexStatements = ReturnType<typeof compileStatements>;

/** Returns a function that compiles the statement for a number of values, each once. */
function compileByCount(
  compile: (values: readonly Uint8Array[]) => CompiledQuery<TransferRow>,
): (count: number) => CompiledQuery<TransferRow> {
  const statements = new Map<number, CompiledQuery<TransferRow>>();
  return (count) => {
    const statement = statements.get(count) ?? compile(Array.from({ length: count }, () => new Uint8Array()));
    statements.set(count, statement);
    return statement;
  };
}
