import { getCctpDomain } from "../../../../hop/cctp/cctp.js";
import type { Network } from "../../../../hop/networks.js";
import { type DeliveredReader, type DeliveredRow, selectDelivered } from "../pages/delivered-statement.js";
import { selectPage, toPageParameters } from "../pages/page-statement.js";
import type { CursorRow, IndexTables } from "../schema.js";
import {
  type DeliverySummary,
  type EqualSend,
  type IndexSource,
  type ListedRow,
  selectDeliveries,
  selectEqualL1Sends,
  selectTransfers,
  type TransferRow,
  type TransferStatements,
} from "../transfer-statements.js";
import { createKysely, prepareQuery, type SqliteConnection, toHexText } from "./sqlite.js";

/** Creates the source of a reader that has a connection of its own: it sees committed changes only. */
export function createSqliteSource(connection: SqliteConnection, network: Network): IndexSource {
  const domains = [...network.chains.values()].filter((chain) => getCctpDomain(chain) !== undefined);
  return {
    statements: prepareTransferStatements(connection, [...new Set([1, domains.length])]),
    inSnapshot: (read) => connection.transaction(read),
    close: () => void connection.close(),
  };
}

/** Prepares the read of what chains have delivered. */
export function createDeliveredReader(connection: SqliteConnection): DeliveredReader {
  const db = createKysely<IndexTables>(connection);
  const read = prepareQuery<DeliveredRow>(connection, selectDelivered(db).compile().sql);
  return (chainId, { block, logIndex }, limit) => read(chainId, block, block, logIndex, limit);
}

/**
 * Prepares the statements once, because building their SQL takes longer than running them.
 * @param keysPerQuery numbers of keys that `transfersByKeys` can be called with
 */
function prepareTransferStatements(connection: SqliteConnection, keysPerQuery: readonly number[]): TransferStatements {
  const db = createKysely<IndexTables>(connection);
  const placeholder = new Uint8Array();
  const prepare = <Row>(query: { compile(): { readonly sql: string } }) =>
    prepareQuery<Row>(connection, query.compile().sql);
  const byKeys = new Map(
    keysPerQuery.map((count) => {
      const keys = Array.from({ length: count }, () => placeholder);
      return [count, prepare<TransferRow>(selectTransfers(db, toHexText).where("s.arrival_key", "in", keys))];
    }),
  );
  const byHash = prepare<TransferRow>(selectTransfers(db, toHexText).where("s.transaction_hash", "=", placeholder));
  const deliveriesByHash = prepare<DeliverySummary>(
    selectDeliveries(db, toHexText).where("transaction_hash", "=", placeholder),
  );
  const deliveriesByKey = prepare<DeliverySummary>(
    selectDeliveries(db, toHexText).where("arrival_key", "=", placeholder),
  );
  const equalL1Sends = prepare<EqualSend>(selectEqualL1Sends(db).where("arrival_key", "=", placeholder));
  const page = prepare<ListedRow>(selectPage(db, toHexText, "rowid"));
  const cursor = prepare<CursorRow>(db.selectFrom("cursors").selectAll().where("chain_id", "=", 0));
  return {
    transfersByKeys(keys) {
      const query = byKeys.get(keys.length);
      if (query === undefined) throw new Error(`no statement takes ${keys.length} keys`);
      return query(...keys);
    },
    transfersByHash: byHash,
    deliveriesByHash,
    deliveriesByKey,
    equalL1Sends,
    page: (request) => page(...toPageParameters(request)),
    cursor: (chainId) => cursor(chainId)[0],
  };
}
