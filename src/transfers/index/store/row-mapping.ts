import type { Chain } from "../../../hop/networks.js";
import type { SentTransfer, TransferDelivery } from "../../transfer.js";
import { decodeCctpNonce } from "./correlation-key.js";
import { bytesToHex } from "./hex.js";
import type { DeliveryRow, SendRow } from "./schema.js";

// Maps rows to the types of the service.

export function toSentTransfer(row: SendRow, source: Chain, destination: Chain): SentTransfer {
  return {
    kind: row.kind,
    id: toTransferId(row),
    token: row.token,
    source,
    destination,
    transactionHash: bytesToHex(row.transaction_hash),
    blockNumber: row.block_number,
    timestamp: row.timestamp,
    logIndex: row.log_index,
    account: bytesToHex(row.account),
    event: {
      transferId: toEventTransferId(row),
      destinationChainId: row.destination_chain_id,
      recipient: bytesToHex(row.recipient),
      amount: BigInt(row.amount),
      amountOutMin: BigInt(row.amount_out_min),
      deadline: BigInt(row.deadline),
      bonderFee: BigInt(row.bonder_fee),
      relayer: row.relayer === null ? undefined : bytesToHex(row.relayer),
    },
  };
}

export function toDelivery(row: DeliveryRow): TransferDelivery {
  return {
    transactionHash: bytesToHex(row.transaction_hash),
    blockNumber: row.block_number,
    bonder: row.bonder === null ? undefined : bytesToHex(row.bonder),
  };
}

/** Returns the ID as in SentTransfer. */
export function toTransferId(row: SendRow): string {
  return toEventTransferId(row) ?? bytesToHex(row.transaction_hash);
}

/** Returns the ID as in TransferSentEvent: undefined for a transfer from L1. */
function toEventTransferId({ kind, arrival_key }: SendRow): string | undefined {
  switch (kind) {
    case "l1":
      return undefined;
    case "l2":
      return bytesToHex(arrival_key);
    case "cctp":
      return String(decodeCctpNonce(arrival_key));
  }
}
