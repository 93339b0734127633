import {
  type GetTransferStatusResponse,
  GetTransferStatusResponse_State as State,
  TransferDetails_Substate as Substate,
  type TransferDetails as TransferDetailsMessage,
  TransferDetailsSchema,
  type TransferLeg as TransferLegMessage,
  TransferLegSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { getTokenDecimals } from "../../hop/tokens.js";
import type { TokenPrices } from "../../prices/token-prices.js";
import { withTimeoutOrFallback } from "../../resilience/abort-scope.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import type { TransferDetails, TransferLeg } from "../../transfers/details/transfer-details.js";
import type { TransferStatus } from "../../transfers/status.js";

/** Longest wait of a message for a price after the status is known, in milliseconds. */
export const PRICE_TIMEOUT_MS = 1_000;
/** A sender may choose any 256-bit deadline; the field of the response is an int64. */
const MAX_INT64 = 2n ** 63n - 1n;

/**
 * Returns the token's price at the time of the transfer or now; 0 without one, so that the USD fields are 0.
 * @param getTimeoutMs returns how long to wait for it at most
 */
export function getPriceUsd(
  { sent: { token }, priceUsd }: TransferStatus,
  prices: TokenPrices,
  getTimeoutMs: () => number,
): MaybePromise<number> {
  if (priceUsd !== undefined) return priceUsd;
  const table = prices.peekTable([token]);
  if (table === undefined) return withTimeoutOrFallback(prices.getUsdPrice(token), getTimeoutMs(), 0);
  try {
    return table.getUsdPrice(token);
  } catch {
    return 0;
  }
}

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

/** Returns the details of a transfer as their message: what `create` would return, which takes longer. */
export function toTransferDetailsMessage(details: TransferDetails): TransferDetailsMessage {
  const { substate, payout, source, destination, estimatedDeliveryAt } = details;
  const message: TransferDetailsMessage = {
    $typeName: TransferDetailsSchema.typeName,
    substate: Substate[substate],
    receivedAmount: payout?.amount.toString() ?? "",
    receivedToken: payout?.token ?? "",
    source: toLegMessage(source),
  };
  if (estimatedDeliveryAt !== undefined) message.estimatedDeliveryAt = BigInt(estimatedDeliveryAt);
  if (destination !== undefined) message.destination = toLegMessage(destination);
  return message;
}

function toLegMessage({ blockNumber, timestamp, isFinal }: TransferLeg): TransferLegMessage {
  return {
    $typeName: TransferLegSchema.typeName,
    blockNumber: BigInt(blockNumber),
    timestamp: BigInt(timestamp),
    isFinal,
  };
}

/** Converts to whole tokens: the double nearest to amount / 10^decimals. */
function toWholeTokens(amount: bigint, token: string): number {
  return Number(`${amount}e-${getTokenDecimals(token)}`);
}
