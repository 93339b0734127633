import { hexToBytes } from "../../../../../src/chain/hex.js";
import type { DeliveryRow, SendRow } from "../../../../../src/transfers/index/database/schema.js";
import { addressFromName, hashFromName } from "./hop-events.js";

export const OPTIMISM_CHAIN_ID = 10;
export const ARBITRUM_CHAIN_ID = 42161;

export const bytesFromName = (name: string): Buffer => hexToBytes(hashFromName(name));

let logIndex = 0;

/** Creates the row of a transfer from Optimism to Arbitrum, sent in block 1. */
export function createSendRow(key: Buffer, transaction: string, more: Partial<SendRow> = {}): SendRow {
  return {
    chain_id: OPTIMISM_CHAIN_ID,
    block_number: 1,
    log_index: logIndex++,
    transaction_hash: bytesFromName(transaction),
    kind: "l2",
    token: "USDT",
    arrival_key: key,
    destination_chain_id: ARBITRUM_CHAIN_ID,
    recipient: hexToBytes(addressFromName("to")),
    amount: "1000",
    amount_out_min: "900",
    deadline: "1800000000",
    bonder_fee: "10",
    relayer: null,
    account: hexToBytes(addressFromName("by")),
    timestamp: 1_700_000_000,
    transfer_nonce: null,
    tree_index: null,
    ...more,
  };
}

/** Creates the row of a delivery on Arbitrum. */
export function createDeliveryRow(key: Buffer, transaction: string, block = 1): DeliveryRow {
  return {
    chain_id: ARBITRUM_CHAIN_ID,
    block_number: block,
    log_index: logIndex++,
    transaction_hash: bytesFromName(transaction),
    token: "USDT",
    arrival_key: key,
    bonder: hexToBytes(addressFromName("bonder")),
    timestamp: null,
  };
}
