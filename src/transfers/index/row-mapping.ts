import { hexToBytes } from "../../chain/hex.js";
import type { Chain } from "../../hop/networks.js";
import type { SentTransfer, TransferDelivery } from "../status.js";
import { extractNonceFromCctpKey } from "./correlation-key.js";
import type { EventPosition } from "./database/schema.js";
import type { EqualSend, FoundDelivery, TransferRow } from "./statements.js";

// A completion on an L2 names no transfer, only its values. Transfers from L1 with equal values are delivered in the order
// in which they were sent: each completion delivers one of them, and never before it was sent. A completion that precedes
// every remaining send belongs to a send that is not in the list.

/**
 * Matches the completions of equal transfers from L1 to their sends.
 * @param sends in the order of the source chain, with the time of sending in Unix seconds
 * @param completions in the order of the destination chain, with their time where it is known; one without a time is
 *   treated as later than every send
 * @returns the completion of each send that has one
 */
export function matchCompletions<
  Send extends { readonly timestamp: number },
  Completion extends { readonly timestamp: number | null },
>(sends: readonly Send[], completions: readonly Completion[]): ReadonlyMap<Send, Completion> {
  const matched = new Map<Send, Completion>();
  let next = 0;
  for (const completion of completions) {
    const send = sends[next];
    if (send === undefined) break;
    if (completion.timestamp !== null && completion.timestamp < send.timestamp - CLOCK_SKEW_SECONDS) continue;
    matched.set(send, completion);
    next += 1;
  }
  return matched;
}

/** How far a destination's clock may lag behind that of L1. A message takes minutes, so the tolerance costs little. */
const CLOCK_SKEW_SECONDS = 60;

/** The values of a send that decide whether an unindexed earlier transfer could be equal to it. */
type TimedSend = Pick<EqualSend, "timestamp" | "deadline">;

/** A deadline at most this far ahead is specific to its time of sending: no unindexed transfer has the same one. */
const NEAR_DEADLINE_SECONDS = 30 * 86_400;
/** Within this time every transfer from L1 has been delivered. */
const MAX_TRANSIT_SECONDS = 7 * 86_400;

/** Returns whether the history of both chains goes back far enough to match completions to these equal sends. */
function canMatchCompletions(
  send: TimedSend,
  equalSends: readonly TimedSend[],
  source: CoverageTimes,
  destination: CoverageTimes,
): boolean {
  // If the completion of one of them is missing, the order of the others is unknown.
  if (!hasCompleteHistory(destination) && equalSends.some(({ timestamp }) => timestamp < destination.fromTimestamp))
    return false;
  const deadline = BigInt(send.deadline);
  const isUnique = deadline > 0n && deadline <= BigInt(send.timestamp + NEAR_DEADLINE_SECONDS);
  // Otherwise an equal send from before the index begins might take this send's completion.
  return isUnique || hasCompleteHistory(source) || send.timestamp >= source.fromTimestamp + MAX_TRANSIT_SECONDS;
}

/** Returns whether everything since the beginning of a chain is indexed. */
export function hasCompleteHistory({ fromBlock }: Pick<CoverageTimes, "fromBlock">): boolean {
  return fromBlock === 0;
}

/** The delivery of a transfer, if there is one, and whether the index can tell. */
export interface DeliveryOutcome {
  readonly delivery: FoundDelivery | undefined;
  readonly isUnambiguous: boolean;
}

export const AMBIGUOUS_DELIVERY: DeliveryOutcome = Object.freeze({ delivery: undefined, isUnambiguous: false });

/**
 * Matches the delivery of a transfer from L1.
 * @param send one of `equalSends`
 * @param evidence all equal sends, the transfer included, and their deliveries in the order of their chains; undefined for a
 *   chain that is not indexed
 */
export function matchL1Delivery(
  send: EqualSend,
  {
    equalSends,
    deliveries,
    source,
    destination,
  }: {
    readonly equalSends: readonly EqualSend[];
    readonly deliveries: readonly FoundDelivery[];
    readonly source: CoverageTimes | undefined;
    readonly destination: CoverageTimes | undefined;
  },
): DeliveryOutcome {
  if (!source || !destination || !canMatchCompletions(send, equalSends, source, destination)) return AMBIGUOUS_DELIVERY;
  // With the complete history of both chains the order alone decides, whatever the clocks say.
  const isComplete = hasCompleteHistory(source) && hasCompleteHistory(destination);
  const completions = deliveries.map((row) => ({ row, timestamp: isComplete ? null : row.timestamp }));
  return { delivery: matchCompletions(equalSends, completions).get(send)?.row, isUnambiguous: true };
}

// Maps rows to the types of the service.

/** An indexed transfer with its delivery. */
export interface IndexedTransfer {
  readonly sent: SentTransfer;
  readonly delivery: TransferDelivery | undefined;
  /** Whether the sending block and, if there is one, the delivering block are final. */
  readonly isFinal: boolean;
  /** False when a delivery may belong to this transfer or to an equal one: `delivery` is undefined then. */
  readonly isUnambiguous: boolean;
  /**
   * IDs of the other transfers of the same transaction, in log order: of the delivering transaction if the transfer was found
   * by its hash, otherwise of the sending one.
   */
  readonly otherTransferIds: readonly string[];
  /** undefined when the source chain is not indexed. */
  readonly sourceCoverage: CoverageTimes | undefined;
  /** undefined when the destination chain is not indexed. */
  readonly destinationCoverage: CoverageTimes | undefined;
}

/** The contiguous range of a chain's blocks whose events are indexed. */
export interface IndexCoverage {
  /** The first block; 0 for the chain's beginning. */
  readonly fromBlock: number;
  /**
   * Time of that block, Unix seconds; for the chain's beginning that of the first block with a contract of Hop, or 0 in rows of
   * older versions. All later deliveries are indexed.
   */
  readonly fromTimestamp: number;
  /** The last block; the one before the first while none was read. */
  readonly toBlock: number;
  /** Time of that block, Unix seconds. */
  readonly toTimestamp: number;
  /** When that block was observed as the chain's latest, in milliseconds since 1970. */
  readonly observedAtMs: number;
  /** The last block that was read when it was final. */
  readonly finalizedBlock: number;
}

/** The coverage of a chain as it is read. */
export type CoverageRow = IndexCoverage & { readonly chainId: number };

/** The part of a chain's coverage that statuses need. */
export type CoverageTimes = Pick<IndexCoverage, "fromBlock" | "fromTimestamp" | "observedAtMs">;

function toSentTransfer(row: TransferRow, source: Chain, destination: Chain): SentTransfer {
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

function toDelivery(row: FoundDelivery): TransferDelivery {
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
      return String(extractNonceFromCctpKey(hexToBytes(arrival_key)));
  }
}

/** Returns the delivery that a row was joined with. */
function getJoinedDelivery(send: TransferRow): FoundDelivery | undefined {
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

function isBlockFinal(blockNumber: number, finalTo: number | null): boolean {
  return finalTo !== null && blockNumber <= finalTo;
}

export function isSamePosition(a: EventPosition, b: EventPosition): boolean {
  return a.chain_id === b.chain_id && a.block_number === b.block_number && a.log_index === b.log_index;
}

/** Returns what is covered of both chains of a send; undefined for a chain that is not indexed. */
export function getCoverages(send: TransferRow) {
  return {
    source: toCoverageTimes(send.source_from_block, send.source_from_timestamp, send.source_observed_at),
    destination: toCoverageTimes(
      send.destination_from_block,
      send.destination_from_timestamp,
      send.destination_observed_at,
    ),
  };
}

/** Converts the columns of a cursor that were joined to a send. */
function toCoverageTimes(
  fromBlock: number | null,
  fromTimestamp: number | null,
  observedAtMs: number | null,
): CoverageTimes | undefined {
  if (fromBlock === null || fromTimestamp === null || observedAtMs === null) return undefined;
  return { fromBlock, fromTimestamp, observedAtMs };
}

/**
 * Matches a send to the delivery that it was joined with.
 * @param send one that is alone: of equal transfers from L1, no statement can tell
 */
export function matchJoinedDelivery(send: TransferRow): DeliveryOutcome {
  const delivery = getJoinedDelivery(send);
  if (send.kind !== "l1") return { delivery, isUnambiguous: true };
  return matchL1Delivery(send, {
    equalSends: [send],
    deliveries: delivery === undefined ? [] : [delivery],
    ...getCoverages(send),
  });
}

/** Converts a send with its delivery; nothing for a network without its chains. */
export function toIndexedTransfer(
  chains: ReadonlyMap<number, Chain>,
  send: TransferRow,
  { delivery, isUnambiguous }: DeliveryOutcome,
  otherTransferIds: readonly string[],
): readonly IndexedTransfer[] {
  const source = chains.get(send.chain_id);
  const destination = chains.get(send.destination_chain_id);
  if (source === undefined || destination === undefined) return [];
  const coverages = getCoverages(send);
  const transfer: IndexedTransfer = {
    sent: toSentTransfer(send, source, destination),
    delivery: delivery && toDelivery(delivery),
    isFinal:
      isBlockFinal(send.block_number, send.source_final_to) &&
      (delivery === undefined || isBlockFinal(delivery.block_number, send.destination_final_to)),
    isUnambiguous,
    otherTransferIds,
    sourceCoverage: coverages.source,
    destinationCoverage: coverages.destination,
  };
  return [transfer];
}
