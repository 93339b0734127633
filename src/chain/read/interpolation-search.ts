/** A block with its time. */
export interface BlockTimestamp {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/**
 * How far before the time a block may lie that is good enough: a search for logs that begins there reads one page more
 * where endpoints give few blocks at once, while a closer one would cost a round trip more.
 */
const TOLERANCE_SECONDS = 300;
const TOLERANCE_BLOCKS = 1_000;
/** After so many guesses in a row that left more than half of the blocks, the middle is asked for. */
const MAX_POOR_GUESSES = 2;

/**
 * Finds a block whose time is at or before a time, and not much before it, by reading as few blocks as it can. Takes any
 * times that never decrease, whatever gaps they have.
 * @param low at or before the time; of block 0 the time may be -Infinity: not known
 * @param high after the time
 * @param secondsPerBlock about how long a block takes, where that is not known better
 */
export async function searchBlockByTime(
  low: BlockTimestamp,
  high: BlockTimestamp,
  timeSeconds: number,
  secondsPerBlock: number,
  read: (number: number) => Promise<BlockTimestamp>,
): Promise<BlockTimestamp> {
  let [below, above, pace, poor] = [low, high, secondsPerBlock, 0];
  while (timeSeconds - below.timestamp > TOLERANCE_SECONDS && above.number - below.number > TOLERANCE_BLOCKS) {
    const width = above.number - below.number;
    const isPoor = poor === MAX_POOR_GUESSES;
    const guess = isPoor
      ? below.number + Math.floor(width / 2)
      : // Into the middle of what is good enough.
        interpolateBlockNumber(below, above, timeSeconds - TOLERANCE_SECONDS / 2, pace);
    const probe = await read(Math.min(Math.max(guess, below.number + 1), above.number - 1));
    if (probe.timestamp <= timeSeconds) {
      below = probe;
    } else {
      const measured = (above.timestamp - probe.timestamp) / (above.number - probe.number);
      if (measured > 0) pace = measured;
      above = probe;
    }
    poor = isPoor || above.number - below.number <= width / 2 ? 0 : poor + 1;
  }
  return below;
}

/** About which block has a time that lies between those of two blocks. */
function interpolateBlockNumber(low: BlockTimestamp, high: BlockTimestamp, timeSeconds: number, pace: number): number {
  const isKnown = low.timestamp !== Number.NEGATIVE_INFINITY;
  const seconds = isKnown ? (high.timestamp - low.timestamp) / (high.number - low.number) : pace;
  return high.number - Math.ceil((high.timestamp - timeSeconds) / seconds);
}
