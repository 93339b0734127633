import type { SentTransfer, TransferDelivery } from "./transfer.js";

export type TransferState = "PENDING" | "BONDED" | "UNBONDABLE";

/** Which source supplied a status. */
export type TransferSourceName = "chain" | "index" | "explorer";

/** Everything in a status apart from the transfer itself and its delivery. */
export interface StatusDetails {
  /** IDs of the other transfers of the same transaction, in log order. */
  readonly otherTransferIds: readonly string[];
  readonly source: TransferSourceName;
  /** When the status was observed, in milliseconds since 1970. */
  readonly observedAtMs: number;
  /** Whether both the sending and the delivering block are final. */
  readonly isFinal: boolean;
  /** USD price of the token at the time of sending; undefined when unknown. */
  readonly priceUsd: number | undefined;
}

/** A transfer, its delivery if there is one, and its state. */
export interface TransferStatus extends StatusDetails {
  readonly sent: SentTransfer;
  readonly delivery: TransferDelivery | undefined;
  readonly state: TransferState;
}

/** The states that each state can change to, apart from reorgs. */
const STATE_TRANSITIONS: Readonly<Record<TransferState, readonly TransferState[]>> = {
  PENDING: ["BONDED"],
  // After settlement anyone may withdraw a transfer that no bonder could deliver.
  UNBONDABLE: ["BONDED"],
  BONDED: [],
};

/**
 * Builds the status of a transfer and derives its state.
 * @param delivery undefined when the transfer has not been delivered
 */
export function buildTransferStatus(
  sent: SentTransfer,
  delivery: TransferDelivery | undefined,
  details: StatusDetails,
): TransferStatus {
  return { ...details, sent, delivery, state: deriveState(sent, delivery) };
}

function deriveState(sent: SentTransfer, delivery: TransferDelivery | undefined): TransferState {
  if (delivery !== undefined) return "BONDED";
  const { amountOutMin, deadline } = sent.event;
  // A bonder cannot swap on L1: a transfer that requests a swap there can only be withdrawn after settlement.
  const requestsSwapOnL1 = sent.destination.isL1 && sent.kind === "l2" && (amountOutMin > 0n || deadline > 0n);
  return requestsSwapOnL1 ? "UNBONDABLE" : "PENDING";
}

/** Returns whether a status can never change: a terminal state in final blocks, with the delivering transaction known. */
export function isImmutableStatus({ state, isFinal, delivery }: TransferStatus): boolean {
  return isFinal && STATE_TRANSITIONS[state].length === 0 && delivery?.transactionHash !== undefined;
}
