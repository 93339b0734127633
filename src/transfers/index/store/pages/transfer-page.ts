import type { SentTransfer, TransferDelivery } from "../../../transfer.js";
import type { CoverageTimes } from "../index-coverage.js";

/** An indexed transfer with its delivery. */
export interface IndexedTransfer {
  readonly sent: SentTransfer;
  readonly delivery: TransferDelivery | undefined;
  /** Whether the sending block and, if there is one, the delivering block are final. */
  readonly isFinal: boolean;
  /** False when a delivery may belong to this transfer or to an equal one: `delivery` is undefined then. */
  readonly isUnambiguous: boolean;
  /**
   * IDs of the other transfers of the same transaction, in log order: of the delivering transaction if the transfer was found
   * by its hash, otherwise of the sending one.
   */
  readonly otherTransferIds: readonly string[];
  /** undefined when the source chain is not indexed. */
  readonly sourceCoverage: CoverageTimes | undefined;
  /** undefined when the destination chain is not indexed. */
  readonly destinationCoverage: CoverageTimes | undefined;
}

/**
 * The place of a transfer in the list of its account, newest first. It is the same before and after a reorg: the time is that of
 * the block in which the transfer was indexed first, and the other members tell apart what has the same time.
 */
export interface ListPosition {
  /** Unix seconds. */
  readonly timestamp: number;
  /** 0x-prefixed hex, as are the other hashes and keys. */
  readonly transactionHash: string;
  readonly correlationKey: string;
  /** Tells apart equal transfers of one transaction from L1; not stable across reorgs. */
  readonly logIndex: number;
}

/** The place before the newest transfer. */
export const LIST_START: ListPosition = {
  timestamp: Number.MAX_SAFE_INTEGER,
  transactionHash: "0x",
  correlationKey: "0x",
  logIndex: 0,
};

/** Which transfers of an account to read; undefined: any. */
export interface PageFilter {
  /** Symbol of the token. */
  readonly token?: string | undefined;
  readonly sourceChainId?: number | undefined;
  readonly destinationChainId?: number | undefined;
  /** Whether the index knows of a delivery. */
  readonly isDelivered?: boolean | undefined;
}

/** Which part of the list of an account to read. */
export interface PageRequest {
  /** Address of the sender or the recipient. */
  readonly account: string;
  readonly after: ListPosition;
  /** Maximum number of sends to consider. */
  readonly rows: number;
  /** Maximum number of sends to return. */
  readonly limit: number;
  readonly filter: PageFilter;
}

/** A part of the list of an account. */
export interface TransferPage {
  /** All that match the filter, and perhaps a few others. */
  readonly entries: readonly ListEntry[];
  /** Position of the last send that was considered; undefined at the end of the list. */
  readonly next: ListPosition | undefined;
  /** Number of sends that were considered, if there is a next one. */
  readonly rows: number;
}

export interface ListEntry {
  readonly transfer: IndexedTransfer;
  readonly position: ListPosition;
}
