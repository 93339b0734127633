import type { Network } from "../../../../hop/networks.js";
import { createTransferIndex, type TransferIndexReader } from "../transfer-index.js";
import type { PostgresConnection, PostgresPool } from "./connection/connection.js";
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
/** As many as it takes to find the transfer that a transaction delivered. */
const MAX_SINGLE_STATEMENTS = 3;

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
          // Nothing is prepared in a transaction, which would not survive the loss of a prepared statement.
          const unprepared: PostgresConnection = { query: (text, values) => connection.query(text, values) };
          return await readInRounds(createRun(network, query), runMissing, unprepared);
        } finally {
          await connection.query("commit").catch(() => {});
        }
      });
    },
  };
}

/**
 * Answers a query without a transaction around its statements, as long as the reader does not ask for one state; undefined: it
 * does, or it takes more statements.
 */
async function readAtOnce<T>(run: Run<T>, runMissing: RunMissing, pool: PostgresPool): Promise<Outcome<T> | undefined> {
  for (let statements = 0; ; statements++) {
    const { outcome, missing, isOneState } = run.next();
    const isDone = isNothingMissing(missing);
    if (isOneState && statements > (isDone ? 1 : 0)) return undefined;
    if (isDone) return outcome;
    const first = statements < MAX_SINGLE_STATEMENTS ? selectFirst(missing, statements) : undefined;
    if (first === undefined) return undefined;
    await pool.withConnection((connection) => runMissing(connection, first, run.recorded));
  }
}

/** Selects one of the missing statements: the others may only have been asked for because that one had no result. */
function selectFirst({ keyed, pages, cursors }: MissingReads, statements: number): MissingReads | undefined {
  const [first] = keyed;
  if (first !== undefined) return { keyed: new Map([first]), pages: new Map(), cursors: false };
  const [page] = pages;
  if (page !== undefined) return { keyed: new Map(), pages: new Map([page]), cursors: false };
  // What is covered says what the absence of a transfer means: both have to be of one state.
  return cursors && statements === 0 ? { keyed: new Map(), pages: new Map(), cursors } : undefined;
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
  next(): {
    readonly outcome: Outcome<T>;
    readonly missing: MissingReads;
    /** Whether the reader has asked for statements of one state, not only because a statement was missing before. */
    readonly isOneState: boolean;
  };
}

/** What a query returned or threw: neither counts while a statement was missing. */
interface Outcome<T> {
  unwrap(): T;
}

function createRun<T>(network: Network, query: (reader: TransferIndexReader) => T): Run<T> {
  const recorded = createRecordedStatements();
  let isOneState = false;
  const reader = createTransferIndex(
    {
      statements: recorded.statements,
      inSnapshot:
        (read) =>
        (...args) => {
          isOneState ||= !recorded.hasMissing();
          return read(...args);
        },
      close: () => {},
    },
    network,
  );
  return {
    recorded,
    next() {
      isOneState = false;
      const outcome = runQuery(query, reader);
      return { outcome, missing: recorded.takeMissing(), isOneState };
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
