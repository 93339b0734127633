import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import type { IndexStatements } from "./compiled-statements.js";
import type { IndexDatabase } from "./database/index-database.js";
import { toTransferId } from "./row-mapping.js";
import type { ChangedSendRow } from "./statements.js";

/** A transfer that has changed. Hex is lower case. */
export interface ChangedTransfer {
  readonly sequence: number;
  /** Tells apart changes of different indexes that have one sequence; 0: unknown. */
  readonly nonce: number;
  /** The transfer ID; for a transfer from L1 the transaction's hash; for CCTP the decimal nonce. */
  readonly transferId: string;
  /** Hash of the sending transaction. */
  readonly transactionHash: string;
  /** Hash of the delivering transaction, if its delivery was added or removed. */
  readonly deliveryHash: string | undefined;
  /** Sender of the transaction. */
  readonly account: string;
  readonly recipient: string;
}

/** The changes after a sequence. */
export interface IndexChanges {
  /** Sequence of the last of these changes: what follows is read after it. */
  readonly sequence: number;
  /**
   * Transfers that were sent, delivered, or changed back by a reorg, or whose blocks have become final, in the order of the
   * changes; a transfer may occur several times, and may not be in the index any more. What it is now has to be read.
   */
  readonly changed: readonly ChangedTransfer[];
  /** Whether more changes follow. */
  readonly hasMore: boolean;
  /** False when some changes after the sequence are not kept any more: any transfer may have changed. */
  readonly isComplete: boolean;
}

/**
 * How often readers look for changes that nobody announces, in milliseconds: a file cannot tell other processes of them, and
 * reading its sequence takes some microseconds. A server notifies: reading it is for notifications that are lost.
 */
const POLL_MS = { file: 100, server: 1_000 } as const;

/** Tells which transfers of the index change, whichever process writes it. */
export class ChangeFeed {
  /** How often `readSequence` is to be called, in milliseconds. */
  readonly pollMs: number;
  readonly #database: IndexDatabase;
  readonly #statements: IndexStatements;
  readonly #listeners = new Set<{ readonly onWrite: () => void }>();

  constructor(database: IndexDatabase, statements: IndexStatements) {
    this.#database = database;
    this.#statements = statements;
    this.pollMs = database.isLocal ? POLL_MS.file : POLL_MS.server;
  }

  /** Reads the sequence of the newest change; 0 before the first. Cheap enough for polling. */
  readSequence(): MaybePromise<number> {
    return mapMaybeAsync(this.#database.query(this.#statements.changeBounds), ([bounds]) => bounds?.newest ?? 0);
  }

  /**
   * Reads the changes after a sequence, oldest first.
   * @param limit maximum number of changes
   */
  readChanges(afterSequence: number, limit: number): MaybePromise<IndexChanges> {
    return this.#database.snapshot(async (session) => {
      const [bounds] = await session.query(this.#statements.changeBounds);
      const { newest, oldest } = bounds ?? { newest: 0, oldest: null };
      const rows = await session.query(this.#statements.changes, [afterSequence, limit]);
      // The sequences have no gaps: the oldest one tells whether any is missing. A sequence that was never reached is of
      // another index: nothing is known of what has changed since.
      const isComplete =
        afterSequence === newest || (afterSequence < newest && oldest !== null && oldest <= afterSequence + 1);
      const sequence = rows.at(-1)?.sequence ?? newest;
      return { sequence, changed: rows.flatMap(toChangedTransfer), hasMore: sequence < newest, isComplete };
    });
  }

  /**
   * Calls back after this process has written changes, or knows of others. Only the sequence tells of all changes.
   * @returns a function that ends the subscription
   */
  subscribe(onWrite: () => void): () => void {
    const listener = { onWrite };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the subscribers back. */
  announce(): void {
    for (const { onWrite } of this.#listeners) onWrite();
  }
}

/** What readers of the changes need. */
export type IndexChangeFeed = Pick<ChangeFeed, "pollMs" | "readSequence" | "readChanges" | "subscribe">;

function toChangedTransfer(row: ChangedSendRow): ChangedTransfer[] {
  const { sequence, nonce, kind, arrival_key, transaction_hash, delivery_hash, account, recipient } = row;
  if (kind === null || transaction_hash === null || account === null || recipient === null) return [];
  const transferId = toTransferId({ kind, arrival_key, transaction_hash });
  const hashes = { transactionHash: transaction_hash, deliveryHash: delivery_hash ?? undefined };
  return [{ sequence, nonce: nonce ?? 0, transferId, ...hashes, account, recipient }];
}
