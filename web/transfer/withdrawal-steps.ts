import type { TransferStatusResponse, WithdrawalResponse, WithdrawalState } from "../shared/api/api-types.js";
import { formatChainName } from "../shared/format/chain-names.js";

/** A step on the way of a transfer that no bonder pays. */
interface WithdrawalStep {
  readonly name: string;
  /** How long it usually takes, or who does it. */
  readonly note: string;
}

/** Number of steps that are done in each state; the others have none. */
const DONE_STEPS: Readonly<Partial<Record<WithdrawalState, number>>> = {
  WAITING_FOR_COMMIT: 1,
  WAITING_FOR_ROOT: 2,
  WITHDRAWABLE: 3,
  WAITING_FOR_ATTESTATION: 1,
  REDEEMABLE: 2,
};

/** Seconds after which a transfer is overdue that waits for a bonder, who usually pays within minutes. */
const OVERDUE_SECONDS = 3_600;

/** Returns whether somebody else than a bonder may have to do something for a transfer. */
export function mayNeedWithdrawal({ state, details, timestamp }: TransferStatusResponse, nowMs: number): boolean {
  if (state === "BONDED" || details === undefined) return false;
  if (details.substate === "WAITING_FOR_BONDER") return nowMs / 1000 - timestamp > OVERDUE_SECONDS;
  return ["WAITING_FOR_SETTLEMENT", "WITHDRAWABLE", "WAITING_FOR_ATTESTATION"].includes(details.substate);
}

/** Returns the steps of a transfer, and how many of them are done. */
export function listWithdrawalSteps({ state, sourceChainSlug, destinationChainSlug, cctp }: WithdrawalResponse): {
  readonly steps: readonly WithdrawalStep[];
  readonly done: number;
} {
  const source = formatChainName(sourceChainSlug);
  const destination = formatChainName(destinationChainSlug);
  const sent = { name: `Sent on ${source}`, note: "" };
  const steps =
    cctp === undefined
      ? [
          sent,
          { name: `Committed on ${source}`, note: "by a bonder at any time, by anybody after a delay" },
          {
            name: `Transfer root on ${destination}`,
            note: "within hours if a bonder helps; otherwise after the native exit, seven days from optimistic rollups",
          },
          { name: `Withdrawn on ${destination}`, note: "by anybody" },
        ]
      : [
          sent,
          { name: "Attested by Circle", note: "13 to 19 minutes from Ethereum and rollups, seconds from Polygon" },
          { name: `Redeemed on ${destination}`, note: "by anybody" },
        ];
  return { steps, done: DONE_STEPS[state] ?? steps.length - 1 };
}

/** Describes who can do what now. */
export function describeWithdrawal(
  { state, availableAt, sourceChainSlug, destinationChainSlug }: WithdrawalResponse,
  nowMs: number,
): string {
  const [source, destination] = [formatChainName(sourceChainSlug), formatChainName(destinationChainSlug)];
  const isCommitOpen = availableAt === undefined || availableAt * 1000 < nowMs;
  const paid = destinationChainSlug === "ethereum" ? "the whole amount" : "the whole amount in hTokens, without a swap";
  switch (state) {
    case "WAITING_FOR_COMMIT":
      return isCommitOpen
        ? `A bonder can still pay it. Anybody can call commitTransfers on ${source} now, which starts the way below.`
        : `A bonder can still pay it, or commit it on ${source}. Anybody can commit it later.`;
    case "WAITING_FOR_ROOT":
      return `Its transfer root is on the way from ${source} to ${destination}. The call below is final, but fails until the root has arrived.`;
    case "WITHDRAWABLE":
      return `Anybody can withdraw it now: the recipient gets ${paid}, and the caller pays only the gas.`;
    case "WAITING_FOR_ATTESTATION":
      return "Circle has to attest the message of the transfer. Nobody else can do anything before.";
    case "REDEEMABLE":
      return "Anybody can redeem it now: the recipient gets the USDC, and the caller pays only the gas.";
    case "BLOCKED":
      return `The call below is right, but the contract on ${destination} refuses it.`;
    default:
      return "";
  }
}
