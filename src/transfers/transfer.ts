import type { TransferKind } from "../hop/contract-registry.js";
import type { Chain } from "../hop/networks.js";
import type { TransferSentEvent } from "../hop/transfer-events.js";

/** A transfer as its sending transaction tells of it. Hashes and addresses are lower case. */
export interface SentTransfer {
  readonly kind: TransferKind;
  /** The transfer ID; from L1 the transaction's hash; for CCTP the decimal nonce. */
  readonly id: string;
  readonly token: string;
  readonly source: Chain;
  readonly destination: Chain;
  readonly transactionHash: string;
  readonly blockNumber: number;
  /** Time of that block, Unix seconds. */
  readonly timestamp: number;
  /** Place of the event among the block's logs. */
  readonly logIndex: number;
  /** Who sent the transaction. */
  readonly account: string;
  /** The event's own values. */
  readonly event: TransferSentEvent;
}

/** How a transfer arrived. What is not known, or did not take part, is undefined. */
export interface TransferDelivery {
  /** The destination transaction. */
  readonly transactionHash: string | undefined;
  /** The block that holds it. */
  readonly blockNumber: number | undefined;
  /** Who bonded it: the sender of that transaction. */
  readonly bonder: string | undefined;
}
