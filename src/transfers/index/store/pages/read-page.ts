import { isSamePosition, toSends } from "../row-mapping.js";
import type { IndexSource, ListedRow, TransferRow } from "../transfer-statements.js";
import type { IndexedTransfer, ListPosition, TransferPage } from "./transfer-page.js";

/** Reads a part of the list of an account; at most `limit` sends. */
export type PageReader = (account: string, after: ListPosition, limit: number) => TransferPage;

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
  return inSnapshot((account: string, after: ListPosition, limit: number): TransferPage => {
    const sends = toSends(statements.page(account, after, limit)).toSorted(compareNewestFirst);
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
    const last = sends.length < limit ? undefined : sends.at(-1);
    return { entries, next: last && toListPosition(last) };
  });
}

/** Compares by listed time, transaction, key and log; hex of one length has the order of its bytes. */
function compareNewestFirst(a: ListedRow, b: ListedRow): number {
  return (
    b.listed_at - a.listed_at ||
    compareText(b.transaction_hash, a.transaction_hash) ||
    compareText(b.arrival_key, a.arrival_key) ||
    b.log_index - a.log_index ||
    (isSamePosition(a, b) ? 0 : b.chain_id - a.chain_id)
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function toListPosition({ listed_at, transaction_hash, arrival_key, log_index }: ListedRow): ListPosition {
  return {
    timestamp: listed_at,
    transactionHash: transaction_hash,
    correlationKey: arrival_key,
    logIndex: log_index,
  };
}
