import { readFileSync } from "node:fs";
import type { PoolClient, PoolConfig, QueryConfig } from "pg";
import { POOL_EXHAUSTED, PostgresFailure, toPostgresFailure } from "./failures.js";
import type { PostgresLocation } from "./location.js";
import { createSessions, type QueryResult } from "./sessions.js";

/** Connections to a database. Works behind a pooler that assigns servers per transaction: no state outlives one. */
export interface PostgresPool {
  /**
   * Runs one statement, or several without values as one transaction.
   * @throws PostgresFailure
   */
  query<Row>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * Runs statements on one connection.
   * @throws PostgresFailure, or what the work throws
   */
  withConnection<T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T>;
  /** Connections in use and at rest, and callers that wait for one. */
  usage(): { readonly active: number; readonly idle: number; readonly waiting: number };
  /** Closes the connections as soon as they are not in use. */
  end(): Promise<void>;
}

export interface PostgresConnection {
  /**
   * Runs a statement.
   * @param name the connection may keep the statement prepared under this name: all with it must have the same SQL. Only
   *   outside of transactions
   */
  query<Row>(sql: string, values?: readonly unknown[], name?: string): Promise<QueryResult<Row>>;
}

export interface PoolOptions {
  readonly maxConnections: number;
  /** After this time without a response a connection counts as lost, in milliseconds. */
  readonly responseTimeoutMs: number;
  /** Called for each failed statement or connection. */
  readonly onFailure?: (failure: PostgresFailure) => void;
}

/** How long a caller waits for a connection, new or free. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Callers that may wait for a connection at once; each waits for as long as it takes to connect at most. */
const MAX_WAITING = 1_000;
/** Idle connections are closed after this time. */
const IDLE_TIMEOUT_MS = 60_000;
/** Connections are replaced at this age: a plan that suited the tables as they were does not outlive it. */
const MAX_LIFETIME_S = 300;
/** SQLSTATE-like code of a response that did not come. */
const TIMEOUT_CODE = "ETIMEDOUT";
const INT8_OID = 20;

/** Creates a pool; it connects on demand. Loads the driver, which only an index in PostgreSQL needs. */
export async function createPostgresPool(location: PostgresLocation, options: PoolOptions): Promise<PostgresPool> {
  const { maxConnections, responseTimeoutMs, onFailure = () => {} } = options;
  const pg = (await import("pg")).default;
  const pool = new pg.Pool({
    ...toDriverOptions(location),
    max: maxConnections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    maxLifetimeSeconds: MAX_LIFETIME_S,
    keepAlive: true,
    types: {
      // The numbers of this schema are block numbers, chain IDs, times and counters: far below 2^53.
      getTypeParser: ((oid: number, format?: "text") =>
        oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
    },
  });
  // An idle connection that breaks is replaced at the next use; without a listener the process would end.
  pool.on("error", () => {});
  // So would it for one in use that breaks between two statements, or in the read that completed it: not after the connect.
  pool.on("connect", (client) => client.on("error", () => {}));
  const sessions = createSessions();

  async function withConnection<T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    if (pool.waitingCount >= MAX_WAITING) throw new PostgresFailure(POOL_EXHAUSTED);
    const client = await pool.connect().catch((error: unknown) => {
      const failure = toPostgresFailure(error);
      onFailure(failure);
      throw failure;
    });
    let isBroken = false;
    const connection: PostgresConnection = {
      async query<Row>(text: string, values: readonly unknown[] = [], name?: string) {
        const run = <Result>(query: QueryConfig): Promise<QueryResult<Result>> =>
          queryWithin(client, responseTimeoutMs, query);
        try {
          const query = { text, values: [...values] };
          return await (name === undefined ? run<Row>(query) : sessions.query<Row>(client, run, { ...query, name }));
        } catch (error) {
          const failure = toPostgresFailure(error);
          isBroken ||= failure.isUnavailable;
          onFailure(failure);
          throw failure;
        }
      },
    };
    try {
      return await work(connection);
    } finally {
      client.release(isBroken);
    }
  }

  return {
    withConnection,
    query: (sql, values) => withConnection(async (connection) => (await connection.query<never>(sql, values)).rows),
    usage: () => ({
      active: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    end: () => pool.end(),
  };
}

function queryWithin<Row>(client: PoolClient, timeoutMs: number, query: QueryConfig): Promise<QueryResult<Row>> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new PostgresFailure(TIMEOUT_CODE)), timeoutMs);
    // With a promise of the driver, the rows of most answers outlive the collections of young objects, which then take twice to ten
    // times as long.
    client.query(query, (error: Error | null, result) => {
      clearTimeout(timer);
      if (error) return reject(error);
      const { command, rowCount, rows } = result;
      resolve({ command, rowCount: rowCount ?? 0, rows });
    });
  });
}

/** Returns the driver's options for a location. No option depends on the environment, such as PGHOST or ~/.pgpass. */
export function toDriverOptions(location: PostgresLocation): PoolConfig {
  const { host, port, database, user, password, sslMode, sslRootCertificate } = location;
  const ca = sslRootCertificate === undefined ? {} : { ca: readFileSync(sslRootCertificate, "utf8") };
  const ssl = {
    disable: false,
    require: { rejectUnauthorized: false },
    "verify-ca": { ...ca, checkServerIdentity: () => undefined },
    "verify-full": ca,
  }[sslMode];
  return { host, port, database, user, password: password ?? "", ssl, application_name: "hop-gateway" };
}
