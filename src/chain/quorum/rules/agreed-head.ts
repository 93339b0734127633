import { type ChainHead, MAX_BLOCKS_BEHIND, MAX_SECONDS_BEHIND } from "../../endpoints/head-tracker.js";

// Which block `needed` endpoints have. Pure.

/** Blocks per second of the fastest chains: an endpoint that is seconds late is that many blocks behind. */
const MAX_BLOCKS_PER_SECOND = 4;
/** A difference that is always explained by latency, also where blocks are minutes apart. */
const MIN_BLOCKS_APART = 2;

/**
 * Returns the highest block that `needed` endpoints have. undefined: fewer are near it, so it may be one that a single
 * endpoint has invented, or an old one that the chain has long left behind.
 */
export function selectAgreedHead(heads: readonly ChainHead[], needed: number): ChainHead | undefined {
  const sorted = [...heads].sort((a, b) => b.number - a.number);
  const number = sorted[needed - 1]?.number;
  const countNear = (head: ChainHead): number => sorted.filter((other) => areNear(head, other)).length;
  const candidates = sorted
    .filter((head) => head.number === number)
    .map((head) => ({ head, near: countNear(head) }))
    .sort((a, b) => b.near - a.near);
  const [best] = candidates;
  return best !== undefined && best.near >= needed ? best.head : undefined;
}

/** Returns the largest number of heads that are near one of them. */
export function countAgreeingHeads(heads: readonly ChainHead[]): number {
  return Math.max(0, ...heads.map((head) => heads.filter((other) => areNear(head, other)).length));
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
