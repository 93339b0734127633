import {
  type GetTransferStatusResponse,
  GetTransferStatusResponse_State as State,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { getTokenDecimals } from "../../hop/tokens.js";
import type { TransferStatus } from "../../transfers/status.js";

/** Returns a status as its message. @param priceUsd price of the token in US dollars; 0: unknown */
export function toTransferStatusMessage(
  { sent, delivery, state, otherTransferIds }: TransferStatus,
  priceUsd: number,
): GetTransferStatusResponse {
  const { event, source, destination } = sent;
  const amountFormatted = toWholeTokens(event.amount, sent.token);
  const bonderFeeFormatted = toWholeTokens(event.bonderFee, sent.token);
  // Not by `create`, nor by copying what it creates: both take longer than printing the message.
  return {
    $typeName: "hop.bridge.v1.GetTransferStatusResponse",
    transferId: sent.id,
    transactionHash: sent.transactionHash,
    sourceChainId: source.chainId,
    sourceChainSlug: source.slug,
    destinationChainId: destination.chainId,
    destinationChainSlug: destination.slug,
    accountAddress: sent.account,
    amount: event.amount.toString(),
    amountFormatted,
    amountUsd: amountFormatted * priceUsd,
    amountOutMin: event.amountOutMin.toString(),
    deadline: event.deadline > MAX_INT64 ? MAX_INT64 : event.deadline,
    recipientAddress: event.recipient,
    bonderFee: event.bonderFee.toString(),
    bonderFeeFormatted,
    bonderFeeUsd: bonderFeeFormatted * priceUsd,
    bonded: delivery !== undefined,
    bondTransactionHash: delivery?.transactionHash ?? "",
    bonderAddress: delivery?.bonder ?? "",
    token: sent.token,
    timestamp: BigInt(sent.timestamp),
    state: State[state],
    otherTransferIds: Object.freeze([...otherTransferIds]) as string[],
  };
}

/** A sender may choose any 256-bit deadline; the field of the response is an int64. */
const MAX_INT64 = 2n ** 63n - 1n;

/** Converts to whole tokens: the double nearest to amount / 10^decimals. */
function toWholeTokens(amount: bigint, token: string): number {
  return Number(`${amount}e-${getTokenDecimals(token)}`);
}
