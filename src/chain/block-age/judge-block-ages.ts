/** What is known about the newest block of a chain. */
export interface ChainBlockAge {
  /** Identifies the chain. */
  readonly chain: string;
  /** Age at the latest read, by this machine's clock, in milliseconds; negative: the block is in the future. */
  readonly ageMs: number;
  readonly maxAgeMs: number;
  /** Whether the newest block was another one a short while before that read, or only one read is known. */
  readonly isAdvancing: boolean;
  /** Whether several endpoints reported newer and newer blocks of about the same time. */
  readonly isConfirmed: boolean;
}

/** What is wrong with this machine's clock. */
export interface ClockEstimate {
  /** The right time less this machine's, in milliseconds: negative if the clock is ahead. */
  readonly offsetMs: number;
  /** What the estimate is made of; undefined: the clock is right as far as anything is known. */
  readonly evidence: "date" | "blocks" | undefined;
}

export interface BlockAgeJudgement {
  readonly clock: ClockEstimate;
  /** The chains that stand still. */
  readonly stalled: ReadonlySet<string>;
}

/** Smallest difference that counts. The header Date has whole seconds, and responses take a while. */
export const MIN_CLOCK_OFFSET_MS = 5_000;
/** Ages that differ by this much are equal: more than a block of the slowest chain and the time that a block travels. */
const SAME_AGE_MS = 30_000;
/** Age, in the past or the future, that no healthy chain reaches on several endpoints or with other chains at once. */
const MIN_SUSPICIOUS_AGE_MS = 60_000;

/**
 * Tells chains that stand still from a wrong clock of this machine. The header `Date` of the endpoints tells the time. Blocks
 * do too: if most chains look equally old although new blocks arrive, the clock is wrong, whatever `Date` says (a proxy on
 * this machine has the same clock). Chains that stand still at the same time get no new blocks.
 * @param dateOffsetsMs times of the endpoints less this machine's, one for each host
 */
export function judgeBlockAges(chains: readonly ChainBlockAge[], dateOffsetsMs: readonly number[]): BlockAgeJudgement {
  const dateOffsetMs = ignoreSmall(median(dateOffsetsMs) ?? 0);
  const corrected = chains.map((chain) => ({ ...chain, ageMs: chain.ageMs + dateOffsetMs }));
  const blockOffsetMs = estimateOffsetFromBlocks(corrected) ?? 0;
  const evidence = blockOffsetMs !== 0 ? "blocks" : dateOffsetMs !== 0 ? "date" : undefined;
  return {
    clock: { offsetMs: dateOffsetMs + blockOffsetMs, evidence },
    stalled: new Set(
      corrected.filter(({ ageMs, maxAgeMs }) => ageMs + blockOffsetMs > maxAgeMs).map(({ chain }) => chain),
    ),
  };
}

/** Estimates the offset from chains that look equally old; undefined: they do not. */
function estimateOffsetFromBlocks(chains: readonly ChainBlockAge[]): number | undefined {
  const advancing = chains.filter(({ isAdvancing }) => isAdvancing);
  const middle = median(advancing.map(({ ageMs }) => ageMs));
  if (middle === undefined || Math.abs(middle) < MIN_SUSPICIOUS_AGE_MS) return undefined;
  const similar = advancing.filter(({ ageMs }) => Math.abs(ageMs - middle) <= SAME_AGE_MS);
  const isMajority = similar.length >= 2 && similar.length > chains.length / 2;
  const isOnlyChain = chains.length === 1 && chains[0]?.isConfirmed === true;
  if (!isMajority && !isOnlyChain) return undefined;
  // The newest of these blocks is at least as old as nothing.
  return -Math.min(...similar.map(({ ageMs }) => ageMs));
}

function ignoreSmall(offsetMs: number): number {
  return Math.abs(offsetMs) < MIN_CLOCK_OFFSET_MS ? 0 : offsetMs;
}

/** Returns the middle value; of two the one that is nearer to 0, so that one liar among two hosts proves nothing. */
export function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [lower, upper] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (lower === undefined || upper === undefined) return undefined;
  return Math.abs(lower) <= Math.abs(upper) ? lower : upper;
}
