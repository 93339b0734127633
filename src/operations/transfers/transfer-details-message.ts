import {
  TransferDetails_Substate as Substate,
  type TransferDetails as TransferDetailsMessage,
  TransferDetailsSchema,
  type TransferLeg as TransferLegMessage,
  TransferLegSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { TransferDetails, TransferLeg } from "../../transfers/details/transfer-details.js";

/** Returns the details of a transfer as their message: what `create` would return, which takes longer. */
export function toTransferDetailsMessage(details: TransferDetails): TransferDetailsMessage {
  const { substate, payout, source, destination, estimatedDeliveryAt } = details;
  const message: TransferDetailsMessage = {
    $typeName: TransferDetailsSchema.typeName,
    substate: Substate[substate],
    receivedAmount: payout?.amount.toString() ?? "",
    receivedToken: payout?.token ?? "",
    source: toLegMessage(source),
    estimatedDeliveryAt: BigInt(estimatedDeliveryAt),
  };
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
