/** A transfer that stands on the local chains from the start. What else there is to know of it, the chains tell. */
export interface SeededTransfer {
  /** Short and unique, such as `usdt-polygon-arbitrum`. */
  readonly name: string;
  readonly description: string;
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
