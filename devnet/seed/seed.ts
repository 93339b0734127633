import type { TransactionReceipt } from "../chain/transactions.js";
import type { SentTransfer } from "../transfer/sent-transfer.js";
import type { SeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

/** Transfers that are sent while the local chains are built. */
export interface Seed {
  /** Chain slugs. A network without one of them skips this seed. */
  readonly source: string;
  readonly destination: string;
  /** Time of sending. Seeds run in this order, so an older seed must be done before a younger one starts. */
  readonly hoursAgo: number;
  run(context: SeedContext): Promise<readonly SeededTransfer[]>;
}

/** Returns the route fields of a seeded transfer. */
export function describeRoute(
  token: string,
  sourceSlug: string,
  destinationSlug: string,
  isCctp = false,
): Pick<SeededTransfer, "kind" | "token" | "sourceSlug" | "destinationSlug"> {
  const kind = sourceSlug === "ethereum" ? "l1-to-l2" : destinationSlug === "ethereum" ? "l2-to-l1" : "l2-to-l2";
  return { kind: isCctp ? "cctp" : kind, token, sourceSlug, destinationSlug };
}

/** Returns the transfer id that the service uses. */
export function getTransferId(transfer: SentTransfer, receipt: TransactionReceipt): string {
  if (transfer.kind === "from-l2") return transfer.transferId;
  return transfer.kind === "cctp" ? transfer.nonce.toString() : receipt.transactionHash;
}
