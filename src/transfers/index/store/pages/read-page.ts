import { toSends } from "../row-mapping.js";
import type { IndexSource, ListedRow, TransferRow } from "../transfer-statements.js";
import type { IndexedTransfer, ListPosition, PageRequest, TransferPage } from "./transfer-page.js";

/** Reads a part of the list of an account. */
export type PageReader = (request: PageRequest) => TransferPage;

export interface PageReaderDeps {
  /** Returns a send as a transfer; none if the network does not have its chains. */
  readonly readTransfer: (send: TransferRow, siblings: readonly TransferRow[]) => readonly IndexedTransfer[];
  /** Reads all sends of the transaction of a send. */
  readonly readSiblings: (send: TransferRow) => readonly TransferRow[];
}

/** Creates a reader whose pages are each of one state of the index. */
export function createPageReader(
  { statements, inSnapshot }: Pick<IndexSource, "statements" | "inSnapshot">,
  { readTransfer, readSiblings }: PageReaderDeps,
): PageReader {
  return inSnapshot((request: PageRequest): TransferPage => {
    const sends = toSends(statements.page(request)).toSorted((a, b) => a.place - b.place);
    /** Read once for all sends of a transaction, of which there may be hundreds. */
    const siblingsByHash = new Map<string, readonly TransferRow[]>();
    const getSiblings = (send: TransferRow): readonly TransferRow[] => {
      if (send.sends_in_transaction === 1) return [send];
      const siblings = siblingsByHash.get(send.transaction_hash) ?? readSiblings(send);
      siblingsByHash.set(send.transaction_hash, siblings);
      return siblings;
    };
    const entries = sends.flatMap((send) =>
      readTransfer(send, getSiblings(send)).map((transfer) => ({ transfer, position: toListPosition(send) })),
    );
    const last = sends.at(-1);
    if (last === undefined || (last.place < request.rows && sends.length < request.limit))
      return { entries, next: undefined, rows: request.rows };
    return { entries, next: toListPosition(last), rows: last.place };
  });
}

function toListPosition({ listed_at, transaction_hash, arrival_key, log_index }: ListedRow): ListPosition {
  return {
    timestamp: listed_at,
    transactionHash: transaction_hash,
    correlationKey: arrival_key,
    logIndex: log_index,
  };
}
