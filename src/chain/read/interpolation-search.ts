/** A block and its time. */
export interface BlockTimestamp {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/**
 * How far before the target time a result may be. A log search that starts there reads at most one page more, while a
 * closer result would cost another round trip.
 */
const TOLERANCE_SECONDS = 300;
const TOLERANCE_BLOCKS = 1_000;
/** After so many consecutive guesses that left more than half of the range, the next step bisects. */
const MAX_POOR_GUESSES = 2;

/**
 * Finds a block at or shortly before a time with as few reads as possible (interpolation search, with bisection as
 * fallback). Works for any non-decreasing timestamps, whatever gaps they have.
 * @param low at or before the time; block 0 may have the time -Infinity: unknown
 * @param high after the time
 * @param secondsPerBlock estimated block time, used until it is measured
 */
export async function searchBlockByTime(
  low: BlockTimestamp,
  high: BlockTimestamp,
  timeSeconds: number,
  secondsPerBlock: number,
  read: (number: number) => Promise<BlockTimestamp>,
): Promise<BlockTimestamp> {
  let [below, above, pace, poorGuesses] = [low, high, secondsPerBlock, 0];
  while (timeSeconds - below.timestamp > TOLERANCE_SECONDS && above.number - below.number > TOLERANCE_BLOCKS) {
    const width = above.number - below.number;
    const bisects = poorGuesses === MAX_POOR_GUESSES;
    const guess = bisects
      ? below.number + Math.floor(width / 2)
      : // Aims at the middle of the tolerance.
        interpolateBlockNumber(below, above, timeSeconds - TOLERANCE_SECONDS / 2, pace);
    const probe = await read(Math.min(Math.max(guess, below.number + 1), above.number - 1));
    if (probe.timestamp <= timeSeconds) {
      below = probe;
    } else {
      const measured = (above.timestamp - probe.timestamp) / (above.number - probe.number);
      if (measured > 0) pace = measured;
      above = probe;
    }
    poorGuesses = bisects || above.number - below.number <= width / 2 ? 0 : poorGuesses + 1;
  }
  return below;
}

/** Estimates which block has a time between the times of two blocks. */
function interpolateBlockNumber(low: BlockTimestamp, high: BlockTimestamp, timeSeconds: number, pace: number): number {
  const isLowTimeKnown = low.timestamp !== Number.NEGATIVE_INFINITY;
  const secondsPerBlock = isLowTimeKnown ? (high.timestamp - low.timestamp) / (high.number - low.number) : pace;
  return high.number - Math.ceil((high.timestamp - timeSeconds) / secondsPerBlock);
}
