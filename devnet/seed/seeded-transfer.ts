/** A transfer that stands on the local chains from the start. What else there is to know of it, the chains tell. */
export interface SeededTransfer {
  /** Short and unique, such as `usdt-polygon-arbitrum`. */
  readonly name: string;
  readonly description: string;
  /** How it is sent; what only looks like a transfer: how it would be. */
  readonly kind: "l2-to-l2" | "l2-to-l1" | "l1-to-l2" | "cctp";
  readonly token: string;
  /** Chain slugs. */
  readonly sourceSlug: string;
  readonly destinationSlug: string;
  /** The bridge's id; the transaction's hash for transfers from ethereum; the decimal nonce for CCTP. */
  readonly transferId: string;
  readonly transactionHash: string;
  /** `NOT_FOUND`: looks like a transfer and is none. */
  readonly expectedState: "PENDING" | "BONDED" | "UNBONDABLE" | "NOT_FOUND";
}
