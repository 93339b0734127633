import type { SentTransfer, TransferDelivery } from "./transfer.js";

export type TransferState = "PENDING" | "BONDED" | "UNBONDABLE";

/** Who knew of a transfer. */
export type TransferSourceName = "chain" | "index" | "explorer";

/** What is known beside the transfer itself and its arrival. */
export interface StatusDetails {
  /** IDs of the other transfers of the same transaction, in log order. */
  readonly otherTransferIds: readonly string[];
  /** Who says all this. */
  readonly source: TransferSourceName;
  /** When it was so, in milliseconds since 1970. */
  readonly observedAtMs: number;
  /** Whether neither the sending nor the delivering block can be undone any more. */
  readonly isFinal: boolean;
  /** Price of the token when it was sent, in USD; undefined: not known. */
  readonly priceUsd: number | undefined;
}

/** A transfer with what became of it. */
export interface TransferStatus extends StatusDetails {
  readonly sent: SentTransfer;
  readonly delivery: TransferDelivery | undefined;
  readonly state: TransferState;
}

/** What each state may turn into, blocks that are undone aside. */
const STATE_TRANSITIONS: Readonly<Record<TransferState, readonly TransferState[]>> = {
  PENDING: ["BONDED"],
  // After settlement anyone may withdraw what no bonder could deliver.
  UNBONDABLE: ["BONDED"],
  BONDED: [],
};

/** The status of a transfer that has been received so, or not at all. */
export function buildTransferStatus(
  sent: SentTransfer,
  received: TransferDelivery | undefined,
  facts: StatusDetails,
): TransferStatus {
  return { ...facts, sent, delivery: received, state: deriveState(sent, received) };
}

function deriveState(sent: SentTransfer, received: TransferDelivery | undefined): TransferState {
  if (received !== undefined) return "BONDED";
  const { amountOutMin, deadline } = sent.event;
  // A bonder cannot swap on L1: what asks for it can only be withdrawn after settlement.
  const wantsSwapOnL1 = sent.destination.isL1 && sent.kind === "l2" && (amountOutMin > 0n || deadline > 0n);
  return wantsSwapOnL1 ? "UNBONDABLE" : "PENDING";
}

/** Whether nothing of a status will ever change: an end state in blocks that stay, with all that is to know of it. */
export function isImmutableStatus({ state, isFinal, delivery }: TransferStatus): boolean {
  return isFinal && STATE_TRANSITIONS[state].length === 0 && delivery?.transactionHash !== undefined;
}
