import { bytesToHex, hexToBytes } from "../hex.js";
import type { PageRequest } from "../pages/transfer-page.js";
import type { CursorRow } from "../schema.js";
import type { DeliverySummary, EqualSend, ListedRow, TransferRow, TransferStatements } from "../transfer-statements.js";

// The reader of the index is synchronous, as SQLite is. For PostgreSQL it runs on the results of statements that were run
// before: a statement without a result returns no rows and is recorded, then all recorded ones are run, and the reader runs
// again, until nothing is missing. A read takes as many rounds as its statements depend on each other, usually one.

/** The statements that read by keys, as many keys as there are. */
export type KeyedStatement =
  | "transfersByKeys"
  | "transfersByHash"
  | "deliveriesByHash"
  | "deliveriesByKey"
  | "equalL1Sends";

/** What a run of the reader was missing. */
export interface MissingReads {
  /** Keys as hex by statement, in the order in which they were asked for. */
  readonly keyed: ReadonlyMap<KeyedStatement, ReadonlySet<string>>;
  /** Pages of the lists of accounts, by their recording keys. */
  readonly pages: ReadonlyMap<string, PageRequest>;
  readonly cursors: boolean;
}

/** The rows of one key. */
type KeyedRow = TransferRow | DeliverySummary | EqualSend;

export interface RecordedStatements {
  readonly statements: TransferStatements;
  /** Returns whether anything was missing since `takeMissing` was called last. */
  hasMissing(): boolean;
  /** Returns what was missing since the last call. */
  takeMissing(): MissingReads;
  /** Adds the rows of a key; they replace nothing, since all are of one state. */
  addRows(statement: KeyedStatement, key: string, rows: readonly KeyedRow[]): void;
  addPage(key: string, rows: readonly ListedRow[]): void;
  addCursors(rows: readonly CursorRow[]): void;
}

export function createRecordedStatements(): RecordedStatements {
  const recorded = new Map<string, readonly KeyedRow[]>();
  let cursors: ReadonlyMap<number, CursorRow> | undefined;
  let missing = new Map<KeyedStatement, Set<string>>();
  let missingPages = new Map<string, PageRequest>();
  const pages = new Map<string, readonly ListedRow[]>();
  let isCursorMissing = false;

  function read<Row extends KeyedRow>(statement: KeyedStatement, bytes: Uint8Array): readonly Row[] {
    const key = bytesToHex(bytes);
    const rows = recorded.get(`${statement} ${key}`);
    if (rows !== undefined) return rows as readonly Row[];
    const keys = missing.get(statement) ?? new Set();
    missing.set(statement, keys.add(key));
    return [];
  }

  return {
    statements: {
      transfersByKeys: (keys) => keys.flatMap((key) => read<TransferRow>("transfersByKeys", key)),
      transfersByHash: (hash) => read("transfersByHash", hash),
      deliveriesByHash: (hash) => read("deliveriesByHash", hash),
      deliveriesByKey: (key) => read("deliveriesByKey", key),
      equalL1Sends: (key) => read("equalL1Sends", key),
      page(page) {
        const key = JSON.stringify(page);
        const rows = pages.get(key);
        if (rows === undefined) missingPages.set(key, page);
        return rows ?? [];
      },
      cursor(chainId) {
        isCursorMissing ||= cursors === undefined;
        return cursors?.get(chainId);
      },
    },
    hasMissing: () => missing.size > 0 || missingPages.size > 0 || isCursorMissing,
    takeMissing() {
      const reads: MissingReads = { keyed: missing, pages: missingPages, cursors: isCursorMissing };
      missing = new Map();
      missingPages = new Map();
      isCursorMissing = false;
      return reads;
    },
    addRows: (statement, key, rows) => void recorded.set(`${statement} ${key}`, rows),
    addPage: (key, rows) => void pages.set(key, rows),
    addCursors(rows) {
      cursors = new Map(rows.map((row) => [row.chain_id, row]));
    },
  };
}

export function isNothingMissing({ keyed, pages, cursors }: MissingReads): boolean {
  return keyed.size === 0 && pages.size === 0 && !cursors;
}

/** Keys as the values of a statement. */
export const toKeyValues = (keys: Iterable<string>): readonly Buffer[] => Array.from(keys, hexToBytes);
