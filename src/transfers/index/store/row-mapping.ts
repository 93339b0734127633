import type { Chain } from "../../../hop/networks.js";
import type { Delivery, SentTransfer } from "../../transfer.js";
import { nonceOf } from "./correlation-key.js";
import { hexOf } from "./hex.js";
import type { DeliveryRow, SendRow } from "./schema.js";

// Rows as the rest of the service knows what they hold.

export function sentTransferOf(row: SendRow, source: Chain, destination: Chain): SentTransfer {
  return {
    kind: row.kind,
    id: idOf(row),
    token: row.token,
    source,
    destination,
    transactionHash: hexOf(row.transaction_hash),
    blockNumber: row.block_number,
    timestamp: row.timestamp,
    logIndex: row.log_index,
    account: hexOf(row.account),
    event: {
      transferId: transferIdOf(row),
      destinationChainId: row.destination_chain_id,
      recipient: hexOf(row.recipient),
      amount: BigInt(row.amount),
      amountOutMin: BigInt(row.amount_out_min),
      deadline: BigInt(row.deadline),
      bonderFee: BigInt(row.bonder_fee),
      relayer: row.relayer === null ? undefined : hexOf(row.relayer),
    },
  };
}

export function deliveryOf(row: DeliveryRow): Delivery {
  return {
    transactionHash: hexOf(row.transaction_hash),
    blockNumber: row.block_number,
    bonder: row.bonder === null ? undefined : hexOf(row.bonder),
  };
}

/** As in SentTransfer. */
export function idOf(row: SendRow): string {
  return transferIdOf(row) ?? hexOf(row.transaction_hash);
}

function transferIdOf({ kind, arrival_key }: SendRow): string | undefined {
  switch (kind) {
    case "l1":
      return undefined;
    case "l2":
      return hexOf(arrival_key);
    case "cctp":
      return String(nonceOf(arrival_key));
  }
}
