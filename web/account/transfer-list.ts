import type { TransferStatusResponse } from "../shared/api/api-types.js";

/** Returns text that identifies a transfer. The id of a CCTP transfer alone is unique on its chain only. */
export function getTransferKey({ transferId, transactionHash }: TransferStatusResponse): string {
  return `${transferId} ${transactionHash}`;
}

/** Appends a page to a list, without the transfers that a watch has inserted meanwhile. */
export function appendPage(
  list: readonly TransferStatusResponse[],
  page: readonly TransferStatusResponse[],
): readonly TransferStatusResponse[] {
  const known = new Set(list.map(getTransferKey));
  return [...list, ...page.filter((transfer) => !known.has(getTransferKey(transfer)))];
}

/**
 * Applies the present state of a transfer to a list, newest first. A listed transfer keeps its place, also if it passes the
 * filters no more: it would vanish from under the reader. Returns the same list if nothing changes.
 * @param options `isAccepted`: whether the transfer passes the filters; `isComplete`: whether the list has no further pages,
 * on one of which an older transfer would be
 */
export function applyTransfer(
  list: readonly TransferStatusResponse[],
  transfer: TransferStatusResponse,
  options: { readonly isAccepted: boolean; readonly isComplete: boolean },
): readonly TransferStatusResponse[] {
  const key = getTransferKey(transfer);
  const index = list.findIndex((listed) => getTransferKey(listed) === key);
  const listed = list[index];
  if (listed !== undefined) return isSameState(listed, transfer) ? list : list.with(index, transfer);
  if (!options.isAccepted) return list;
  const position = list.findIndex(({ timestamp }) => timestamp <= transfer.timestamp);
  if (position >= 0) return list.toSpliced(position, 0, transfer);
  return options.isComplete ? [...list, transfer] : list;
}

function isSameState(a: TransferStatusResponse, b: TransferStatusResponse): boolean {
  return a.state === b.state && a.bondTransactionHash === b.bondTransactionHash && a.timestamp === b.timestamp;
}
