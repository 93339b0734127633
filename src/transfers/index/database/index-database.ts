import { type CompiledQuery, type Kysely, type RawBuilder, sql } from "kysely";
import type { MaybePromise } from "../../../resilience/maybe-async.js";
import type { Requester } from "../../../resilience/waiters.js";
import type { IndexTables } from "./schema.js";

// What the index needs of a database. Another database needs an implementation of `IndexDatabase`, its kind in
// `SqlDialect` and `index-options.ts`, and a case in `openTransferIndex`.

/** A value of a statement. */
export type SqlValue = Uint8Array | number | string | null;

/** The expressions in which the SQL of databases differs. */
export interface SqlDialect {
  /** Column type for bytes. */
  readonly bytesType: "blob" | "bytea";
  /** Column type for a time of the database's clock. */
  readonly timeType: "bigint" | "timestamptz";
  /** The database's name for where a row is, which is the fastest way to it within one statement. */
  readonly rowId: "rowid" | "ctid";
  /** Rows per statement that writes. */
  readonly rowsPerStatement: number;
  /** Returns the bytes of a column as lower-case hex with 0x, null for null. As text they reach JavaScript faster than as a buffer. */
  toHexText(column: string): RawBuilder<string>;
  /** Returns the time of the database's clock, some milliseconds from now. */
  timeAfter(ms: number): RawBuilder<unknown>;
}

/** Runs statements that read. */
export interface SqlReadSession {
  /** @param statement compiled once: building its SQL takes longer than running it. Its values are placeholders */
  query<Row>(statement: CompiledQuery<Row>, values?: readonly SqlValue[]): MaybePromise<readonly Row[]>;
}

/** A database that holds an index. Outside of `snapshot` each statement reads a state of its own. */
export interface IndexDatabase extends SqlReadSession {
  /** What messages call it. */
  readonly name: string;
  readonly dialect: SqlDialect;
  /** Whether statements are answered in this process, at once. */
  readonly isLocal: boolean;
  /** Builds statements, and runs those that no other method is for. */
  readonly builder: Kysely<IndexTables>;
  /**
   * Runs a read for those who wait for it. Callers take turns where reads wait.
   * @throws IndexUnavailableError when the database does not answer, at once if that is known
   */
  admit<T>(requester: Requester, read: () => MaybePromise<T>): MaybePromise<T>;
  /** Runs a read that tells whether the database answers. */
  probe<T>(read: () => MaybePromise<T>): MaybePromise<T>;
  /** Runs statements that read one state. */
  snapshot<T>(read: (session: SqlReadSession) => Promise<T>): Promise<T>;
  /** Runs its argument in one transaction and rethrows its errors. */
  transact<T>(work: (transaction: Kysely<IndexTables>) => Promise<T>): Promise<T>;
  /** Like `transact`, for changes of the tables: waits for other processes that change them, and takes as long as it takes. */
  migrate(work: (transaction: Kysely<IndexTables>) => Promise<void>): Promise<void>;
  /** Tells the other processes that there are changes. Who misses it polls. */
  notify(): void;
  /** Calls back for what other processes tell, if they can, until the signal fires. */
  listen(onNotification: () => void, signal: AbortSignal): Promise<void>;
  /** Returns what the metrics show of a server; absent for a file. */
  readonly getServerStatus?: () => DatabaseServerStatus;
  close(): Promise<void>;
}

/** A database server as this process sees it. */
export interface DatabaseServerStatus {
  readonly isAvailable: boolean;
  /** Connections in use and at rest, and callers that wait for one. */
  readonly connections: Readonly<
    Record<"read" | "write", { readonly active: number; readonly idle: number; readonly waiting: number }>
  >;
  /** Failed statements and connections since the start, by code. */
  readonly failures: ReadonlyMap<string, number>;
}

/** The index cannot be opened or read. The message is for the operator. */
export class IndexUnavailableError extends Error {
  override readonly name: string = "IndexUnavailableError";
  /** Whether it may become available without a change of the configuration. */
  readonly isTemporary: boolean = false;
}

/**
 * Runs work in one transaction and rethrows its errors. One that has begun is not repeated, since it may have been committed.
 * @param begin the statements that begin it
 */
export function runInTransaction<T>(
  builder: Kysely<IndexTables>,
  begin: string,
  work: (transaction: Kysely<IndexTables>) => Promise<T>,
): Promise<T> {
  return builder.connection().execute(async (connection) => {
    try {
      await sql.raw(begin).execute(connection);
      const result = await work(connection);
      await sql`commit`.execute(connection);
      return result;
    } catch (error) {
      // Also after a lock that was not granted with the beginning: a pool gives the connection to others. The database may have rolled
      // back by itself, as SQLite on a full disk, or be lost: the first error is the one to report.
      await sql`rollback`.execute(connection).catch(() => {});
      throw error;
    }
  });
}
