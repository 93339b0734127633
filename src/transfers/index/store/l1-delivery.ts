import { canMatchCompletions, type HistoryStart, hasCompleteHistory, matchCompletions } from "./completion-matching.js";
import type { FoundDelivery } from "./row-mapping.js";
import type { EqualSend } from "./transfer-statements.js";

/** The delivery of a transfer, if there is one, and whether the index can tell. */
export interface DeliveryOutcome {
  readonly delivery: FoundDelivery | undefined;
  readonly isUnambiguous: boolean;
}

/** What the delivery of a transfer from L1 follows from. */
export interface L1Evidence {
  /** All equal sends, the transfer included, in the order of their chain. */
  readonly equalSends: readonly EqualSend[];
  /** Their deliveries in the order of their chain. */
  readonly deliveries: readonly FoundDelivery[];
  /** undefined for a chain that is not indexed. */
  readonly source: HistoryStart | undefined;
  readonly destination: HistoryStart | undefined;
}

export const AMBIGUOUS: DeliveryOutcome = Object.freeze({ delivery: undefined, isUnambiguous: false });

/** Matches the delivery of a transfer from L1. @param send one of `equalSends` */
export function matchL1Delivery(
  send: EqualSend,
  { equalSends, deliveries, source, destination }: L1Evidence,
): DeliveryOutcome {
  if (!source || !destination || !canMatchCompletions(send, equalSends, source, destination)) return AMBIGUOUS;
  // With the complete history of both chains the order alone decides, whatever the clocks say.
  const isComplete = hasCompleteHistory(source) && hasCompleteHistory(destination);
  const completions = deliveries.map((row) => ({ row, timestamp: isComplete ? null : row.timestamp }));
  return { delivery: matchCompletions(equalSends, completions).get(send)?.row, isUnambiguous: true };
}

/** Converts the columns of a cursor that were joined to a send. */
export function toHistoryStart(fromBlock: number | null, fromTimestamp: number | null): HistoryStart | undefined {
  if (fromBlock === null || fromTimestamp === null) return undefined;
  return { from_block: fromBlock, from_timestamp: fromTimestamp };
}
