import type { TransactionReceipt } from "../chain/transactions.js";
import type { SentTransfer } from "../transfer/sent-transfer.js";
import type { SeedContext } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

/** Something that happened on the local chains before they were first started. */
export interface Seed {
  /** Chain slugs: a network without one of them does without this seed. */
  readonly source: string;
  readonly destination: string;
  /** When it was sent. Seeds run in this order, so nothing of an older one may happen after a younger one begins. */
  readonly hoursAgo: number;
  run(stage: SeedContext): Promise<readonly SeededTransfer[]>;
}

/** What a seeded transfer tells of its way; over Hop's own bridge unless said otherwise. */
export function describeRoute(
  token: string,
  sourceSlug: string,
  destinationSlug: string,
  isCctp = false,
): Pick<SeededTransfer, "kind" | "token" | "sourceSlug" | "destinationSlug"> {
  const kind = sourceSlug === "ethereum" ? "l1-to-l2" : destinationSlug === "ethereum" ? "l2-to-l1" : "l2-to-l2";
  return { kind: isCctp ? "cctp" : kind, token, sourceSlug, destinationSlug };
}

/** The id under which the service knows a transfer. */
export function getTransferId(transfer: SentTransfer, receipt: TransactionReceipt): string {
  if (transfer.kind === "from-l2") return transfer.transferId;
  return transfer.kind === "cctp" ? transfer.nonce.toString() : receipt.transactionHash;
}
