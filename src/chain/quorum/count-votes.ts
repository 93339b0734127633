import type { CanonicalAnswer, Comparison } from "./canonical-answer.js";

// Counts the votes of endpoints about one call. Pure. Ballots are told apart by their index.

export interface Tally {
  /** The ballot whose answer counts; undefined: too few agree. */
  readonly winner: number | undefined;
  /** Ballots that contradict the winner. Empty without one. */
  readonly outvoted: readonly number[];
  /** The largest number of ballots that agree. */
  readonly agreeing: number;
  /** Whether there is a winner, and so many ballots are close to it that no further one is asked for. */
  readonly isSettled: boolean;
}

/** A factor. */
interface Ratio {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

/** A quantity that is more than 3/2 times off the median is a lie. */
const TOLERANCE: Ratio = { numerator: 3n, denominator: 2n };
/** Quantities that are further apart than honest nodes usually are: another endpoint is asked, if there is one. */
const USUAL_DIFFERENCE: Ratio = { numerator: 11n, denominator: 10n };
/** By how much the distances of final blocks from the head may differ among honest nodes, as a factor. */
const MAX_FINALITY_RATIO = 4n;
/** Distances below this, in blocks, count as this: on a short chain everything is near the head. */
const MIN_FINALITY_DEPTH = 64n;

/**
 * Counts the votes about one call.
 * @param needed number of ballots that have to agree
 * @param head number of the block that the voters have; used for tags only
 */
export function countVotes(
  comparison: Comparison,
  ballots: readonly CanonicalAnswer[],
  needed: number,
  head: number,
): Tally {
  if (comparison === "tag") return countTagVotes(ballots, needed, BigInt(head));
  return comparison === "quantity" ? countQuantityVotes(ballots, needed) : countEqualVotes(ballots, needed);
}

/** The largest group of equal ballots wins; two groups of that size: nobody does. */
export function countEqualVotes(ballots: readonly CanonicalAnswer[], needed: number): Tally {
  const groups = groupByText(ballots);
  const [best = [], second = []] = [...groups.values()].sort((a, b) => b.length - a.length);
  const isDecided = best.length >= needed && best.length > second.length;
  return {
    winner: isDecided ? best[0] : undefined,
    outvoted: isDecided ? indexesOf(ballots).filter((index) => !best.includes(index)) : [],
    agreeing: best.length,
    isSettled: isDecided,
  };
}

/**
 * The median wins (of an even number the higher of the middle two, so that it is what an endpoint has said, and no fee too low)
 * with those that are at most 1.5 times off. Calls that revert are a group of their own.
 */
export function countQuantityVotes(ballots: readonly CanonicalAnswer[], needed: number): Tally {
  const isQuantity = (index: number): boolean => ballots[index]?.quantity !== undefined;
  const quantityOf = (index: number): bigint => ballots[index]?.quantity ?? 0n;
  const quantities = indexesOf(ballots)
    .filter(isQuantity)
    .sort((a, b) => compare(quantityOf(a), quantityOf(b)));
  const median = quantities[Math.floor(quantities.length / 2)];
  const listWithin = (ratio: Ratio): readonly number[] =>
    quantities.filter((index) => median !== undefined && areWithin(ratio, quantityOf(index), quantityOf(median)));
  const near = listWithin(TOLERANCE);
  const reverts = indexesOf(ballots).filter((index) => !isQuantity(index));
  const lower = quantities.filter((index) => !near.includes(index) && quantityOf(index) < quantityOf(median ?? 0));
  const others = Math.max(reverts.length, lower.length, quantities.length - near.length - lower.length);
  const agreeing = Math.max(near.length, reverts.length);
  if (near.length >= needed && near.length > others) {
    const outvoted = indexesOf(ballots).filter((index) => !near.includes(index));
    return { winner: median, outvoted, agreeing, isSettled: listWithin(USUAL_DIFFERENCE).length >= needed };
  }
  if (reverts.length >= needed && reverts.length > near.length)
    return { winner: reverts[0], outvoted: quantities, agreeing, isSettled: true };
  return { winner: undefined, outvoted: [], agreeing, isSettled: false };
}

/**
 * The n-th highest block wins: `needed` voters say that it is final. Nodes learn of finality at different times, so only
 * a distance from the head that is a multiple, or a fraction, of the winner's contradicts it.
 */
export function countTagVotes(ballots: readonly CanonicalAnswer[], needed: number, head: bigint): Tally {
  const blockOf = (index: number): bigint => ballots[index]?.quantity ?? -1n;
  const sorted = indexesOf(ballots).sort((a, b) => compare(blockOf(b), blockOf(a)));
  const winner = sorted[needed - 1];
  if (winner === undefined) return { winner, outvoted: [], agreeing: ballots.length, isSettled: false };
  const depth = head - blockOf(winner);
  const isContradiction = (index: number): boolean => {
    const block = blockOf(index);
    const other = head - block;
    if (blockOf(winner) < 0n || block < 0n || block === blockOf(winner)) return false;
    return (
      block > head || other * MAX_FINALITY_RATIO < depth || other > max(depth, MIN_FINALITY_DEPTH) * MAX_FINALITY_RATIO
    );
  };
  const outvoted = indexesOf(ballots).filter(isContradiction);
  return { winner, outvoted, agreeing: ballots.length, isSettled: true };
}

function areWithin({ numerator, denominator }: Ratio, a: bigint, b: bigint): boolean {
  const [low, high] = a < b ? [a, b] : [b, a];
  return high * denominator <= low * numerator;
}

function groupByText(ballots: readonly CanonicalAnswer[]): ReadonlyMap<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const [index, { text }] of ballots.entries()) groups.set(text, [...(groups.get(text) ?? []), index]);
  return groups;
}

function indexesOf(ballots: readonly unknown[]): number[] {
  return [...ballots.keys()];
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
