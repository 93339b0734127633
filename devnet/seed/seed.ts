import type { SentTransfer } from "../sent-transfer.js";
import type { Receipt } from "../transactions.js";
import type { SeededTransfer } from "./seeded-transfer.js";
import type { Stage } from "./stage.js";

/** Something that happened on the local chains before they were first started. */
export interface Seed {
  /** Chain slugs: a network without one of them does without this seed. */
  readonly source: string;
  readonly destination: string;
  /** When it was sent. Seeds run in this order, so nothing of an older one may happen after a younger one begins. */
  readonly hoursAgo: number;
  run(stage: Stage): Promise<readonly SeededTransfer[]>;
}

/** The id under which the service knows a transfer. */
export function idOf(transfer: SentTransfer, receipt: Receipt): string {
  if (transfer.kind === "from-l2") return transfer.transferId;
  return transfer.kind === "cctp" ? transfer.nonce.toString() : receipt.transactionHash;
}
