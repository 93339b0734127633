import type { TransferStatusResponse, TransferSubstate } from "../shared/api/api-types.js";
import { formatDuration } from "../shared/format/time.js";

interface Wait {
  readonly name: string;
  /** Who can do something now. Empty if it is not known. */
  readonly who: string;
}

const WAITS: Readonly<Partial<Record<TransferSubstate, Wait>>> = {
  WAITING_FOR_BONDER: { name: "Waiting for a bonder", who: "A bonder pays it out. Nobody else has to act." },
  WAITING_FOR_ATTESTATION: {
    name: "Waiting for Circle's attestation",
    who: "Circle attests the message. Then anybody can redeem it; Hop's relayer usually does.",
  },
  WAITING_FOR_MESSAGE: {
    name: "Waiting for the message from Ethereum",
    who: "The canonical messenger delivers it. Nobody has to act.",
  },
  WAITING_FOR_SETTLEMENT: {
    name: "Waiting for its settlement",
    who: "No bonder pays it out. What is left to do is said below.",
  },
  WITHDRAWABLE: { name: "Ready to be withdrawn", who: "Anybody can withdraw it for the recipient now, as said below." },
};
const UNKNOWN_WAIT: Wait = { name: "On its way", who: "" };

/** Returns what a transfer that is not received waits for. */
export function describeWait({ details }: Pick<TransferStatusResponse, "details">): Wait {
  return (details && WAITS[details.substate]) ?? UNKNOWN_WAIT;
}

/** Describes when a pending transfer is expected, for a reader at a time; undefined where nobody knows. */
export function describeExpectation(
  { timestamp, details }: Pick<TransferStatusResponse, "timestamp" | "details">,
  nowMs: number,
): string | undefined {
  const expectedAt = details?.estimatedDeliveryAt;
  if (expectedAt === undefined) return undefined;
  const usual = `Half of the transfers of this route are received within ${formatDuration(expectedAt - timestamp)}`;
  return expectedAt * 1000 < nowMs ? `${usual}: this one takes longer than usual.` : `${usual}.`;
}
