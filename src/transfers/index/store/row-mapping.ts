import type { Chain } from "../../../hop/networks.js";
import type { SentTransfer, TransferDelivery } from "../../transfer.js";
import { decodeCctpNonce } from "./correlation-key.js";
import { hexToBytes } from "./hex.js";
import type { EventPosition } from "./schema.js";
import type { DeliverySummary, TransferRow } from "./transfer-statements.js";

// Maps rows to the types of the service.

export function toSentTransfer(row: TransferRow, source: Chain, destination: Chain): SentTransfer {
  return {
    kind: row.kind,
    id: toTransferId(row),
    token: row.token,
    source,
    destination,
    transactionHash: row.transaction_hash,
    blockNumber: row.block_number,
    timestamp: row.timestamp,
    logIndex: row.log_index,
    account: row.account,
    event: {
      transferId: toEventTransferId(row),
      destinationChainId: row.destination_chain_id,
      recipient: row.recipient,
      amount: BigInt(row.amount),
      amountOutMin: BigInt(row.amount_out_min),
      deadline: BigInt(row.deadline),
      bonderFee: BigInt(row.bonder_fee),
      relayer: row.relayer ?? undefined,
    },
  };
}

/** A delivery that belongs to a certain send. */
export type FoundDelivery = EventPosition & Pick<DeliverySummary, "transaction_hash" | "bonder" | "timestamp">;

export function toDelivery(row: FoundDelivery): TransferDelivery {
  return {
    transactionHash: row.transaction_hash,
    blockNumber: row.block_number,
    timestamp: row.timestamp ?? undefined,
    bonder: row.bonder ?? undefined,
  };
}

/** Returns the ID as in SentTransfer. */
export function toTransferId(row: Pick<TransferRow, "kind" | "arrival_key" | "transaction_hash">): string {
  return toEventTransferId(row) ?? row.transaction_hash;
}

/** Returns the ID as in TransferSentEvent: undefined for a transfer from L1. */
function toEventTransferId({ kind, arrival_key }: Pick<TransferRow, "kind" | "arrival_key">): string | undefined {
  switch (kind) {
    case "l1":
      return undefined;
    case "l2":
      return arrival_key;
    case "cctp":
      return String(decodeCctpNonce(hexToBytes(arrival_key)));
  }
}

/** Returns the delivery that a row was joined with. */
export function getJoinedDelivery(send: TransferRow): FoundDelivery | undefined {
  const { delivery_hash, delivery_block, delivery_log_index, destination_chain_id, bonder } = send;
  if (delivery_hash === null || delivery_block === null || delivery_log_index === null) return undefined;
  return {
    chain_id: destination_chain_id,
    block_number: delivery_block,
    log_index: delivery_log_index,
    transaction_hash: delivery_hash,
    bonder,
    timestamp: send.delivery_timestamp,
  };
}

/** Returns each send once, with its first delivery, in the order of chains and logs. */
export function toSends<Row extends TransferRow>(rows: readonly Row[]): readonly Row[] {
  if (rows.length < 2) return rows;
  const sorted = rows.toSorted(
    (a, b) =>
      a.chain_id - b.chain_id ||
      a.block_number - b.block_number ||
      a.log_index - b.log_index ||
      (a.delivery_block ?? 0) - (b.delivery_block ?? 0) ||
      (a.delivery_log_index ?? 0) - (b.delivery_log_index ?? 0),
  );
  return sorted.filter((row, i) => {
    const previous = sorted[i - 1];
    return previous === undefined || !isSamePosition(row, previous);
  });
}

export function isBlockFinal(blockNumber: number, finalTo: number | null): boolean {
  return finalTo !== null && blockNumber <= finalTo;
}

export function isSamePosition(a: EventPosition, b: EventPosition): boolean {
  return a.chain_id === b.chain_id && a.block_number === b.block_number && a.log_index === b.log_index;
}
