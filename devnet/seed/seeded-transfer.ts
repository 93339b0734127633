import type { WithdrawalState } from "../../src/transfers/withdrawals/withdrawal.js";

/** A transfer that exists on the local chains from the start. Its other values are read from the chains. */
export interface SeededTransfer {
  /** Short and unique, such as `usdt-polygon-arbitrum`. */
  readonly name: string;
  readonly description: string;
  /** Kind of route. For a look-alike, that of the transfer it imitates. */
  readonly kind: "l2-to-l2" | "l2-to-l1" | "l1-to-l2" | "cctp";
  readonly token: string;
  /** Chain slugs. */
  readonly sourceSlug: string;
  readonly destinationSlug: string;
  /** The bridge's id; the transaction's hash for transfers from ethereum; the decimal nonce for CCTP. */
  readonly transferId: string;
  readonly transactionHash: string;
  /** `NOT_FOUND`: a look-alike that is no transfer. */
  readonly expectedState: "PENDING" | "BONDED" | "UNBONDABLE" | "NOT_FOUND";
  readonly expectedWithdrawalState: WithdrawalState | "NOT_FOUND";
  /** keccak256 of the message of a CCTP transfer that nobody has attested yet. */
  readonly unattestedMessageHash?: string;
}
