import { readFileSync } from "node:fs";
import type { PostgresQueryResult } from "kysely";
import type { Pool, PoolClient, PoolConfig, QueryConfig, QueryResult } from "pg";
import { PostgresFailure, toPostgresFailure } from "./postgres-failures.js";
import type { PostgresLocation } from "./postgres-location.js";

export interface PoolOptions {
  readonly maxConnections: number;
  /** After this time without a response a connection counts as lost, in milliseconds. */
  readonly responseTimeoutMs: number;
  /** Called for each failed statement or connection. */
  readonly onFailure: (failure: PostgresFailure) => void;
}

/** How long a caller waits for a connection, new or free. */
const CONNECT_TIMEOUT_MS = 2_000;
/** Idle connections are closed after this time. */
const IDLE_TIMEOUT_MS = 60_000;
/** Connections are replaced at this age: a plan that suited the tables as they were does not outlive it. */
const MAX_LIFETIME_S = 300;
/** SQLSTATE-like code of a response that did not come. */
const TIMEOUT_CODE = "ETIMEDOUT";
const INT8_OID = 20;
/** SQLSTATEs of a prepared statement that the server does not have, has under this name already, or can no longer plan. */
const LOST_STATEMENT = new Set(["26000", "42P05", "0A000"]);

/** Creates a pool; it connects on demand. Loads the driver, which only an index in PostgreSQL needs. */
export async function openPostgresPool(location: PostgresLocation, options: PoolOptions): Promise<PostgresPool> {
  const pg = (await import("pg")).default;
  const pool = new pg.Pool({
    ...toDriverOptions(location),
    max: options.maxConnections,
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
  return new PostgresPool(pool, options);
}

/** Connections to a database. Works behind a pooler that assigns servers per transaction: no state outlives one. */
export class PostgresPool {
  readonly #pool: Pool;
  readonly #options: PoolOptions;
  /** Whether connections lead to the server itself, and not to a pooler. */
  readonly #isOwnSession = new WeakMap<PoolClient, boolean>();

  constructor(pool: Pool, options: PoolOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /**
   * Runs one statement, or several without values as one transaction.
   * @param name a connection to the server itself may keep the statement prepared under this name: all with it must have the
   *   same SQL
   * @throws PostgresFailure
   */
  async query<Row>(text: string, values?: readonly unknown[], name?: string): Promise<{ readonly rows: Row[] }> {
    const connection = await this.connect();
    try {
      return await connection.query<Row>(text, values, name);
    } finally {
      connection.release();
    }
  }

  /**
   * Takes a connection until its `release` is called.
   * @param responseTimeoutMs default: that of the pool
   * @throws PostgresFailure
   */
  async connect(responseTimeoutMs = this.#options.responseTimeoutMs): Promise<PostgresConnection> {
    try {
      const options = { ...this.#options, responseTimeoutMs };
      return new PostgresConnection(await this.#pool.connect(), options, this.#isOwnSession);
    } catch (error) {
      const failure = toPostgresFailure(error);
      this.#options.onFailure(failure);
      throw failure;
    }
  }

  usage() {
    const { totalCount, idleCount, waitingCount } = this.#pool;
    return { active: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
  }

  /** Closes the connections as soon as they are not in use. */
  end(): Promise<void> {
    return this.#pool.end();
  }
}

/** A connection that somebody uses. */
class PostgresConnection {
  readonly #client: PoolClient;
  readonly #options: PoolOptions;
  readonly #isOwnSession: WeakMap<PoolClient, boolean>;
  #isBroken = false;

  constructor(client: PoolClient, options: PoolOptions, isOwnSession: WeakMap<PoolClient, boolean>) {
    this.#client = client;
    this.#options = options;
    this.#isOwnSession = isOwnSession;
  }

  /**
   * Runs a statement.
   * @param name as in `PostgresPool.query`; not within transactions
   */
  async query<Row>(text: string, values: readonly unknown[] = [], name?: string): Promise<PostgresQueryResult<Row>> {
    const query = { text, values: [...values] };
    try {
      return await (name === undefined ? this.#run(query) : this.#runPrepared({ ...query, name }));
    } catch (error) {
      const failure = toPostgresFailure(error);
      this.#isBroken ||= failure.isUnavailable;
      this.#options.onFailure(failure);
      throw failure;
    }
  }

  release(): void {
    this.#client.release(this.#isBroken);
  }

  /**
   * Planning a statement takes longer than running it, and the server plans a prepared one only a few times. Poolers that assign
   * servers per transaction may lose prepared statements, so these are used only on connections to the server itself.
   */
  async #runPrepared<Row>({
    name,
    ...query
  }: QueryConfig & { readonly name: string }): Promise<PostgresQueryResult<Row>> {
    if (!(await this.#canPrepare())) return this.#run(query);
    try {
      return await this.#run({ ...query, name });
    } catch (error) {
      if (!LOST_STATEMENT.has(String((error as { readonly code?: unknown }).code))) throw error;
      this.#isOwnSession.set(this.#client, false);
      return this.#run(query);
    }
  }

  async #canPrepare(): Promise<boolean> {
    let isOwn = this.#isOwnSession.get(this.#client);
    if (isOwn === undefined) {
      const { rows } = await this.#run<{ pid: number }>({ text: "select pg_backend_pid() as pid" });
      // A pooler tells its clients a process ID of its own, which cancels the statements of whichever server they have then.
      isOwn = rows[0]?.pid === (this.#client as { readonly processID?: number | null }).processID;
      this.#isOwnSession.set(this.#client, isOwn);
    }
    return isOwn;
  }

  #run<Row>(query: QueryConfig): Promise<PostgresQueryResult<Row>> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new PostgresFailure(TIMEOUT_CODE)), this.#options.responseTimeoutMs);
      // With a promise of the driver, the rows of most answers outlive the collections of young objects, which then take twice to
      // ten times as long.
      this.#client.query(query, (error: Error | null, result: QueryResult) => {
        clearTimeout(timer);
        if (error) return reject(error);
        const { command, rowCount, rows } = result;
        resolve({ command, rowCount: rowCount ?? 0, rows } as PostgresQueryResult<Row>);
      });
    });
  }
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
