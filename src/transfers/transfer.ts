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
