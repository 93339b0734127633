import type { TransferKind } from "../hop/contract-registry.js";
import type { Chain } from "../hop/networks.js";
import type { TransferSentEvent } from "../hop/transfer-events.js";

/** A transfer as its sending transaction describes it. Hashes and addresses are lower case. */
export interface SentTransfer {
  readonly kind: TransferKind;
  /** The transfer ID; for a transfer from L1 the transaction's hash; for CCTP the decimal nonce. */
  readonly id: string;
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
  readonly transactionHash: string;
  readonly blockNumber: number;
  /** Time of the sending block, Unix seconds. */
  readonly timestamp: number;
  /** Index of the event among the block's logs. */
  readonly logIndex: number;
  /** Sender of the transaction. */
  readonly account: string;
  /** The decoded event. */
  readonly event: TransferSentEvent;
}

/** How a transfer was delivered. A member is undefined when it is unknown or does not apply. */
export interface TransferDelivery {
  /** The destination transaction. */
  readonly transactionHash: string | undefined;
  /** The block that contains it. */
  readonly blockNumber: number | undefined;
  /** Time of that block, Unix seconds; absent: the source did not read it. */
  readonly timestamp?: number | undefined;
  /** The bonder: the sender of that transaction. */
  readonly bonder: string | undefined;
}

/**
 * Where a transfer stands. Reorgs apart, only PENDING and UNBONDABLE change, both to BONDED: after settlement anyone may withdraw
 * a transfer that no bonder could deliver.
 */
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

/**
 * Builds the status of a transfer and derives its state.
 * @param delivery undefined when the transfer has not been delivered
 */
export function buildTransferStatus(
  sent: SentTransfer,
  delivery: TransferDelivery | undefined,
  { otherTransferIds, source, observedAtMs, isFinal, priceUsd }: StatusDetails,
): TransferStatus {
  const state = deriveState(sent, delivery);
  // Not a copy of the details: callers give them in different orders, and copying such objects takes microseconds.
  return { otherTransferIds, source, observedAtMs, isFinal, priceUsd, sent, delivery, state };
}

function deriveState(sent: SentTransfer, delivery: TransferDelivery | undefined): TransferState {
  if (delivery !== undefined) return "BONDED";
  const { amountOutMin, deadline } = sent.event;
  // A bonder cannot swap on L1: a transfer that requests a swap there can only be withdrawn after settlement.
  const requestsSwapOnL1 = sent.destination.isL1 && sent.kind === "l2" && (amountOutMin > 0n || deadline > 0n);
  return requestsSwapOnL1 ? "UNBONDABLE" : "PENDING";
}

/** Returns whether a status can never change: it was delivered by a known transaction, and both blocks are final. */
export function isImmutableStatus({ isFinal, delivery }: TransferStatus): boolean {
  return isFinal && delivery?.transactionHash !== undefined;
}

/** Returns whether the ID of a transfer is a decimal CCTP nonce. */
export function isCctpNonce(transferId: string): boolean {
  return /^[0-9]+$/.test(transferId);
}
