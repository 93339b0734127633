import type { MaybePromise } from "../../../../resilience/maybe-async.js";

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

/** Tells which transfers of the index change, whichever process writes it. */
export interface IndexChangeFeed {
  /** Reads the sequence of the newest change; 0 before the first. Cheap enough for polling. */
  readSequence(): MaybePromise<number>;
  /**
   * Reads the changes after a sequence, oldest first.
   * @param limit maximum number of changes
   */
  readChanges(afterSequence: number, limit: number): MaybePromise<IndexChanges>;
  /**
   * Calls back after this process has written changes. Other processes write too: only the sequence tells of all changes.
   * @returns a function that ends the subscription
   */
  subscribe(onWrite: () => void): () => void;
}
