import type { TransferStatus } from "../status.js";
import type { Payout, TransferSubstate } from "./transfer-details.js";

/** How far the settlement of a transfer from an L2 has come: its root is not committed, on its way, or at the destination. */
export type SettlementProgress = "NOT_COMMITTED" | "COMMITTED" | "ARRIVED";

/** What the substate depends on. */
export interface SubstateInputs {
  readonly state: TransferStatus["state"];
  readonly sent: Pick<TransferStatus["sent"], "kind">;
}

/**
 * Derives the substate of a transfer.
 * @param settlement of a transfer from an L2 that has not been received; undefined for any other
 * @param payout what the recipient got; undefined: nothing, or it is not known
 */
export function deriveSubstate(
  { state, sent }: SubstateInputs,
  settlement: SettlementProgress | undefined,
  payout: Payout | undefined,
): TransferSubstate {
  if (state === "BONDED") return payout?.isUnrequestedHToken ? "RECEIVED_HTOKEN" : "RECEIVED";
  if (sent.kind === "cctp") return "WAITING_FOR_ATTESTATION";
  if (sent.kind === "l1") return "WAITING_FOR_MESSAGE";
  if (settlement === "ARRIVED") return "WITHDRAWABLE";
  // A bonder can still pay after the commit, but one that wants to has done so within minutes, and commits are hours apart.
  return state === "UNBONDABLE" || settlement === "COMMITTED" ? "WAITING_FOR_SETTLEMENT" : "WAITING_FOR_BONDER";
}
