import { type ChainHead, MAX_BLOCKS_BEHIND, MAX_SECONDS_BEHIND } from "../heads/head-tracker.js";

// The newest block that enough endpoints have, by the heads that they report. Pure.

/** Blocks per second of the fastest chains: an endpoint that is seconds late is that many blocks behind. */
const MAX_BLOCKS_PER_SECOND = 4;
/** A difference that is always explained by latency, also where blocks are minutes apart. */
const MIN_BLOCKS_APART = 2;
/** How much older the agreed block may be than that of another endpoint before a third one is asked. */
const MAX_SECONDS_APART = 2;

/**
 * Returns the highest block that `needed` endpoints have. undefined: fewer are near it, so it may be one that a single
 * endpoint has invented, or an old one that the chain has long left behind.
 */
export function selectAgreedHead(heads: readonly ChainHead[], needed: number): ChainHead | undefined {
  const sorted = [...heads].sort((a, b) => b.number - a.number);
  const countNear = (head: ChainHead): number => sorted.filter((other) => areNear(head, other)).length;
  // Of two times of one block, the one that is nearer to those of other blocks is true.
  const sumSeconds = ({ timestamp }: ChainHead): number =>
    sorted.reduce((sum, other) => sum + Math.abs(other.timestamp - timestamp), 0);
  const [best] = sorted
    .filter(({ number }) => number === sorted[needed - 1]?.number)
    .sort((a, b) => countNear(b) - countNear(a) || sumSeconds(a) - sumSeconds(b));
  return best !== undefined && countNear(best) >= needed ? best : undefined;
}

/** Returns the oldest of the heads that honest nodes may report beside the agreed one: all that are near it have that block. */
export function selectOldestHead(heads: readonly ChainHead[], agreed: ChainHead): ChainHead {
  const older = heads.filter((head) => head.number < agreed.number && areNear(head, agreed));
  return older.reduce((oldest, head) => (head.number < oldest.number ? head : oldest), agreed);
}

/** Returns the largest number of heads that are close to one of them. */
export function countCloseHeads(heads: readonly ChainHead[]): number {
  return Math.max(0, ...heads.map((head) => heads.filter((other) => areClose(head, other)).length));
}

/** Returns whether a head contradicts the agreed one, as opposed to being behind it. */
export function isImpossibleHead(head: ChainHead, agreed: ChainHead): boolean {
  if (areNear(head, agreed)) return false;
  return head.number > agreed.number || head.timestamp > agreed.timestamp || head.number === agreed.number;
}

/** Returns whether honest nodes may report both at the same time. */
export function areNear(a: ChainHead, b: ChainHead): boolean {
  const blocks = Math.abs(a.number - b.number);
  const seconds = Math.abs(a.timestamp - b.timestamp);
  if (blocks === 0) return seconds === 0;
  if (blocks <= MIN_BLOCKS_APART) return true;
  return seconds < MAX_SECONDS_BEHIND && blocks < MAX_BLOCKS_BEHIND + seconds * MAX_BLOCKS_PER_SECOND;
}

/** Returns whether two heads are so near that no other endpoint is asked which of them is the newest block. */
function areClose(a: ChainHead, b: ChainHead): boolean {
  return Math.abs(a.timestamp - b.timestamp) <= MAX_SECONDS_APART && areNear(a, b);
}
