import type { CursorRow } from "./database/schema.js";
import type { EqualSend, FoundDelivery } from "./statements.js";

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

/** Where the indexed history of a chain begins: block 0 is the beginning of the chain. */
export type HistoryStart = Pick<CursorRow, "from_block" | "from_timestamp">;

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
  source: HistoryStart,
  destination: HistoryStart,
): boolean {
  // If the completion of one of them is missing, the order of the others is unknown.
  if (!hasCompleteHistory(destination) && equalSends.some(({ timestamp }) => timestamp < destination.from_timestamp))
    return false;
  const deadline = BigInt(send.deadline);
  const isUnique = deadline > 0n && deadline <= BigInt(send.timestamp + NEAR_DEADLINE_SECONDS);
  // Otherwise an equal send from before the index begins might take this send's completion.
  return isUnique || hasCompleteHistory(source) || send.timestamp >= source.from_timestamp + MAX_TRANSIT_SECONDS;
}

export function hasCompleteHistory({ from_block }: HistoryStart): boolean {
  return from_block === 0;
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
    readonly source: HistoryStart | undefined;
    readonly destination: HistoryStart | undefined;
  },
): DeliveryOutcome {
  if (!source || !destination || !canMatchCompletions(send, equalSends, source, destination)) return AMBIGUOUS_DELIVERY;
  // With the complete history of both chains the order alone decides, whatever the clocks say.
  const isComplete = hasCompleteHistory(source) && hasCompleteHistory(destination);
  const completions = deliveries.map((row) => ({ row, timestamp: isComplete ? null : row.timestamp }));
  return { delivery: matchCompletions(equalSends, completions).get(send)?.row, isUnambiguous: true };
}
