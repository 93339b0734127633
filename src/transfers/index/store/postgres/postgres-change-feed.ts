import { type ChangedSendRow, selectChanges, toIndexChanges } from "../changes/changed-sends.js";
import type { IndexChangeFeed } from "../changes/index-changes.js";
import type { PostgresPool } from "./connection/connection.js";
import { createCompiler, toHexText } from "./statements.js";

const BOUNDS = `select (select value from change_counter where id = 1) as newest, (select min(sequence) from changes) as oldest`;

export function createPostgresChangeFeed(
  pool: PostgresPool,
  statementTimeoutMs: number,
  subscribe: IndexChangeFeed["subscribe"],
): IndexChangeFeed {
  const rowsText = selectChanges(createCompiler(), toHexText).compile().sql;
  const begin = `begin isolation level repeatable read read only; set local statement_timeout = ${statementTimeoutMs}`;
  return {
    async readSequence() {
      const [row] = await pool.query<{ value: number }>("select value from change_counter where id = 1");
      return row?.value ?? 0;
    },
    readChanges: (afterSequence, limit) =>
      pool.withConnection(async (connection) => {
        await connection.query(begin);
        try {
          const [bounds] = (await connection.query<{ newest: number | null; oldest: number | null }>(BOUNDS)).rows;
          const { rows } = await connection.query<ChangedSendRow>(rowsText, [afterSequence, limit]);
          return toIndexChanges(afterSequence, {
            newest: bounds?.newest ?? 0,
            oldest: bounds?.oldest ?? undefined,
            rows,
          });
        } finally {
          await connection.query("commit").catch(() => {});
        }
      }),
    subscribe,
  };
}
