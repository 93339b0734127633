import { type DeliveredReader, type DeliveredRow, selectDelivered } from "../pages/delivered-statement.js";
import type { PostgresPool } from "./connection/connection.js";
import { createCompiler } from "./statements.js";

/** The largest value of the column of log indexes. */
const MAX_INTEGER = 2 ** 31 - 1;

/** Compiles the read of what chains have delivered. */
export function createPostgresDeliveredReader(pool: PostgresPool): DeliveredReader {
  const text = selectDelivered(createCompiler()).compile().sql;
  return (chainId, { block, logIndex }, limit) =>
    pool.query<DeliveredRow>(text, [chainId, block, block, Math.min(logIndex, MAX_INTEGER), limit]);
}
