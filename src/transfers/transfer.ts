import type { SenderKind } from "../hop/bridge-book.js";
import type { SentEvent } from "../hop/events.js";
import type { Chain } from "../hop/networks.js";

/** A transfer as its sending transaction tells of it. Hashes and addresses are lower case. */
export interface SentTransfer {
  readonly kind: SenderKind;
  /** The transfer ID; from L1 the transaction's hash; for CCTP the decimal nonce. */
  readonly id: string;
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
  readonly transactionHash: string;
  /** Place of the event among the block's logs. */
  readonly logIndex: bigint;
  /** Who sent the transaction. */
  readonly account: string;
  /** The event's own values. */
  readonly event: SentEvent;
}

/** How a transfer arrived. */
export interface Delivery {
  /** The destination transaction; undefined: known to have arrived, its transaction not found. */
  readonly transactionHash: string | undefined;
  /** Who bonded it; undefined: no bonder took part, or not known. */
  readonly bonder: string | undefined;
}

export type TransferState = "PENDING" | "BONDED" | "UNBONDABLE";

/** A transfer with what became of it. */
export interface TransferStatus {
  readonly sent: SentTransfer;
  /** Time of the block that holds the sending transaction, Unix seconds. */
  readonly timestamp: number;
  readonly delivery: Delivery | undefined;
  readonly state: TransferState;
  /** IDs of the other transfers of the same transaction, in log order. */
  readonly otherTransferIds: readonly string[];
}

/** The state of a transfer that arrived so or not at all. */
export function stateOf(sent: SentTransfer, delivery: Delivery | undefined): TransferState {
  if (delivery !== undefined) return "BONDED";
  const { amountOutMin, deadline } = sent.event;
  // A bonder cannot swap on L1: what asks for it can only be withdrawn after settlement.
  const wantsSwapOnL1 = sent.destination.isL1 && sent.kind === "l2" && (amountOutMin > 0n || deadline > 0n);
  return wantsSwapOnL1 ? "UNBONDABLE" : "PENDING";
}
