import { ServiceError } from "../../errors.js";
import type { TransferProof } from "../../hop/settlement.js";

/** What can be done for the recipient of a transfer. */
export type WithdrawalState =
  | "RECEIVED"
  | "WAITING_FOR_COMMIT"
  | "WAITING_FOR_ROOT"
  | "WITHDRAWABLE"
  | "WAITING_FOR_ATTESTATION"
  | "REDEEMABLE"
  | "BLOCKED"
  | "AUTOMATIC";

/** A proof for `withdraw` on the bridge of the destination. */
export interface MerkleProof extends TransferProof {
  readonly kind: "merkle";
  readonly bridge: string;
  readonly commitTransactionHash: string;
}

/** A message for `receiveMessage` on the MessageTransmitter of the destination. */
export interface CctpProof {
  readonly kind: "cctp";
  readonly transmitter: string;
  readonly message: string;
  /** undefined: there is none yet. */
  readonly attestation: string | undefined;
}

/** What is left to do for a transfer, as the chains say. */
export interface Withdrawal {
  readonly state: WithdrawalState;
  /** From when anybody may commit, Unix seconds; absent: unknown. */
  readonly availableAt?: number;
  /** Absent: there is none. */
  readonly proof?: MerkleProof | CctpProof;
  /** What a caller should know of it. */
  readonly warning?: string;
}

/** What is compared before anything is returned; also the label of the metric. */
export type WithdrawalCheck =
  | "transfer_id"
  | "leaves"
  | "root"
  | "total"
  | "pending"
  | "withdraw"
  | "message"
  | "receive";

const CHECKED: Readonly<Record<WithdrawalCheck, string>> = {
  transfer_id: "the transfer ID is not the hash of its parts",
  leaves: "the transfers of its root are not complete and in order",
  root: "the Merkle root of its transfers is not the committed one",
  total: "the amounts of its transfers are not the committed total",
  pending: "the bridge disagrees with the logs whether it is committed",
  withdraw: "the bridge of the destination does not accept the proof",
  message: "the burn has no message with its nonce, amount and recipient",
  receive: "the destination does not accept the attested message",
};

/** Reports what the chains say about a transfer, but contradict each other in. Nothing of it is returned. */
export class FailedCheckError extends ServiceError {
  constructor(
    readonly check: WithdrawalCheck,
    chain: string,
  ) {
    super(
      "UPSTREAM_UNAVAILABLE",
      `${chain} contradicts itself about this transfer (check ${check}): ${CHECKED[check]}`,
    );
  }
}
