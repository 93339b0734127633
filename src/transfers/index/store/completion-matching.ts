/**
 * Which completion delivered which of several transfers from L1 that have equal values. Such transfers arrive in the
 * order in which they were sent, each completion delivers one, and none is before its send: a completion that precedes
 * every send that it could deliver belongs to a send that is not in the list.
 * @param sends with the time of sending in Unix seconds, in the order of the source chain
 * @param completions with their time where it is known, in the order of the destination chain; one without a time is
 *   taken to follow every send
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

/** By how much the clock of a destination may be behind that of L1. A message takes minutes, so little is lost by it. */
const CLOCK_SKEW_SECONDS = 60;

/** How far back the index goes on a chain. */
interface HistoryStart {
  /** 0: to the chain's beginning. */
  readonly from_block: number;
  /** Unix seconds. */
  readonly from_timestamp: number;
}

/** What of a transfer tells whether one from before the index begins could be taken for it. */
interface TimedSend {
  /** Time of sending, Unix seconds. */
  readonly timestamp: number;
  /** Unix seconds, as decimal text; 0: none. */
  readonly deadline: string;
}

/** A deadline that is no further ahead than this is of one sending, and no earlier transfer has the same. */
const NEAR_DEADLINE_SECONDS = 30 * 86_400;
/** By then a transfer from L1 has arrived. */
const MAX_TRANSIT_SECONDS = 7 * 86_400;

/** Whether both chains go back far enough to tell which completion is whose. */
export function isUnambiguous(
  send: TimedSend,
  equal: readonly TimedSend[],
  source: HistoryStart,
  destination: HistoryStart,
): boolean {
  // The completion of one of them may be missing, and with it the order.
  if (equal.some(({ timestamp }) => timestamp < destination.from_timestamp)) return false;
  const deadline = BigInt(send.deadline);
  const isUnique = deadline > 0n && deadline <= BigInt(send.timestamp + NEAR_DEADLINE_SECONDS);
  // One that was sent before the index begins may take the completion that is meant for this one.
  return isUnique || hasCompleteHistory(source) || send.timestamp >= source.from_timestamp + MAX_TRANSIT_SECONDS;
}

export function hasCompleteHistory({ from_block }: HistoryStart): boolean {
  return from_block === 0;
}
