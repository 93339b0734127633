import { type PostgresPool as DialectPool, Kysely, PostgresDialect, sql } from "kysely";
import type { IndexTables } from "../../schema.js";
import type { PostgresPool } from "./connection.js";
import { PostgresFailure } from "./failures.js";

// The query builder on a pool of connections, and the transactions of the writer.

/** Waits for a server that does not accept connections. */
export interface ServerWait {
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Ends the waits. */
  readonly signal: AbortSignal;
}

/** How long a writer waits for a server that does not accept connections, before it fails. */
const MAX_WAIT_MS = 30_000;
const RETRY_INTERVAL_MS = 250;
/** A writer whose process hangs must not keep its locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;

/**
 * Creates a query builder; destroying it is not necessary, the pool is closed by its owner.
 * @param wait undefined: a statement fails at once when the server does not accept connections
 */
export function createPostgresKysely<Tables>(pool: PostgresPool, wait?: ServerWait): Kysely<Tables> {
  const dialectPool: DialectPool = {
    connect: () => (wait === undefined ? connect(pool) : waitForServer(wait, () => connect(pool))),
    end: async () => {},
  };
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: dialectPool }) });
}

/** Takes a connection from a pool until its `release` is called. */
function connect(pool: PostgresPool): ReturnType<DialectPool["connect"]> {
  return new Promise((resolve, reject) => {
    const useConnection = pool.withConnection(
      ({ query }) =>
        new Promise<void>((release) => {
          resolve({ query: query as never, release });
        }),
    );
    useConnection.catch(reject);
  });
}

/** Repeats an attempt that fails because the server does not accept connections. */
async function waitForServer<T>({ sleep, signal }: ServerWait, attempt: () => Promise<T>): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += RETRY_INTERVAL_MS) {
    try {
      return await attempt();
    } catch (error) {
      const isWorthWaiting = error instanceof PostgresFailure && error.isTemporary && !signal.aborted;
      if (!isWorthWaiting || waitedMs >= MAX_WAIT_MS) throw error;
    }
    await sleep(RETRY_INTERVAL_MS, signal);
  }
}

/**
 * Creates a function that runs its argument in one transaction and rethrows its errors. A transaction that has begun is not
 * repeated, since it may have been committed.
 * @param assertLeases throws if another process has taken over the work of this one
 */
export function createPostgresTransactionRunner(
  db: Kysely<IndexTables>,
  statementTimeoutMs: number,
  assertLeases: (transaction: Kysely<IndexTables>) => Promise<void>,
): (work: (transaction: Kysely<IndexTables>) => Promise<void>) => Promise<void> {
  // One message to the server, and no setting outlives the transaction: a pooler may give the connection to others.
  const begin = [
    "begin",
    `set local statement_timeout = ${statementTimeoutMs}`,
    `set local lock_timeout = ${statementTimeoutMs}`,
    `set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_TIMEOUT_MS}`,
  ].join("; ");
  return (work) =>
    db.connection().execute(async (connection) => {
      await sql.raw(begin).execute(connection);
      try {
        await assertLeases(connection);
        await work(connection);
        await sql`commit`.execute(connection);
      } catch (error) {
        // The connection may be lost; the first error is the one to report.
        await sql`rollback`.execute(connection).catch(() => {});
        throw error;
      }
    });
}
