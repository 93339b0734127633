import type { Network } from "../../../../hop/networks.js";
import { createTransferIndex, type TransferIndexReader } from "../transfer-index.js";
import type { PostgresConnection, PostgresPool } from "./connection.js";
import {
  createRecordedStatements,
  isNothingMissing,
  type MissingReads,
  type RecordedStatements,
} from "./recorded-statements.js";
import { compileStatements, type RunMissing } from "./statements.js";

/** Reads the index in PostgreSQL. */
export interface PostgresReader {
  /**
   * Runs a query of the index and returns its result, which is of one state of the database. The query may run several times.
   * @throws PostgresFailure, or what the query throws
   */
  read<T>(query: (reader: TransferIndexReader) => T): Promise<T>;
}

export interface PostgresReaderOptions {
  readonly pool: PostgresPool;
  readonly network: Network;
  /** Time limit of a statement on the server, in milliseconds. */
  readonly statementTimeoutMs: number;
}

/** Reads of the index depend on each other in a few steps; more are an error of this service. */
const MAX_ROUNDS = 8;

export function createPostgresReader({ pool, network, statementTimeoutMs }: PostgresReaderOptions): PostgresReader {
  const runMissing = compileStatements();
  const begin = `begin isolation level repeatable read read only; set local statement_timeout = ${statementTimeoutMs}`;
  return {
    async read(query) {
      const outcome = await readAtOnce(createRun(network, query), runMissing, pool);
      if (outcome !== undefined) return outcome.unwrap();
      return pool.withConnection(async (connection) => {
        await connection.query(begin);
        try {
          return await readInRounds(createRun(network, query), runMissing, connection);
        } finally {
          await connection.query("commit").catch(() => {});
        }
      });
    },
  };
}

/** Answers a query that takes one statement, without a transaction around it; undefined: it takes several. */
async function readAtOnce<T>(run: Run<T>, runMissing: RunMissing, pool: PostgresPool): Promise<Outcome<T> | undefined> {
  const { outcome, missing } = run.next();
  if (isNothingMissing(missing)) return outcome;
  // The others may only have been asked for because the first one had no result.
  const [first] = missing.keyed;
  if (first === undefined) return undefined;
  await pool.withConnection((connection) =>
    runMissing(connection, { keyed: new Map([first]), pages: new Map(), cursors: false }, run.recorded),
  );
  const second = run.next();
  return isNothingMissing(second.missing) ? second.outcome : undefined;
}

async function readInRounds<T>(run: Run<T>, runMissing: RunMissing, connection: PostgresConnection): Promise<T> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { outcome, missing } = run.next();
    if (isNothingMissing(missing)) return outcome.unwrap();
    await runMissing(connection, missing, run.recorded);
  }
  throw new Error("a read of the index does not end");
}

/** A query that is run again with the results of more statements each time. */
interface Run<T> {
  readonly recorded: RecordedStatements;
  next(): { readonly outcome: Outcome<T>; readonly missing: MissingReads };
}

/** What a query returned or threw: neither counts while a statement was missing. */
interface Outcome<T> {
  unwrap(): T;
}

function createRun<T>(network: Network, query: (reader: TransferIndexReader) => T): Run<T> {
  const recorded = createRecordedStatements();
  const reader = createTransferIndex(
    { statements: recorded.statements, inSnapshot: (read) => read, close: () => {} },
    network,
  );
  return {
    recorded,
    next() {
      const outcome = runQuery(query, reader);
      return { outcome, missing: recorded.takeMissing() };
    },
  };
}

function runQuery<T>(query: (reader: TransferIndexReader) => T, reader: TransferIndexReader): Outcome<T> {
  try {
    const value = query(reader);
    return { unwrap: () => value };
  } catch (error) {
    return {
      unwrap() {
        throw error;
      },
    };
  }
}
