/** A block with its time. */
export interface BlockTime {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/**
 * How far before the time a block may lie that is good enough: a search for logs that begins there reads one page more
 * where endpoints give few blocks at once, while a closer one would cost a round trip more.
 */
const toleranceSeconds = 300;
const toleranceBlocks = 1_000;
/** After so many guesses in a row that left more than half of the blocks, the middle is asked for. */
const poorGuesses = 2;

/**
 * Finds a block whose time is at or before a time, and not much before it, by reading as few blocks as it can. Takes any
 * times that never decrease, whatever gaps they have.
 * @param low at or before the time; of block 0 the time may be -Infinity: not known
 * @param high after the time
 * @param secondsPerBlock about how long a block takes, where that is not known better
 */
export async function searchBlock(
  low: BlockTime,
  high: BlockTime,
  timeSeconds: number,
  secondsPerBlock: number,
  read: (number: number) => Promise<BlockTime>,
): Promise<BlockTime> {
  let [below, above, pace, poor] = [low, high, secondsPerBlock, 0];
  while (timeSeconds - below.timestamp > toleranceSeconds && above.number - below.number > toleranceBlocks) {
    const width = above.number - below.number;
    const isPoor = poor === poorGuesses;
    const guess = isPoor
      ? below.number + Math.floor(width / 2)
      : // Into the middle of what is good enough.
        interpolate(below, above, timeSeconds - toleranceSeconds / 2, pace);
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
function interpolate(low: BlockTime, high: BlockTime, timeSeconds: number, pace: number): number {
  const isKnown = low.timestamp !== Number.NEGATIVE_INFINITY;
  const seconds = isKnown ? (high.timestamp - low.timestamp) / (high.number - low.number) : pace;
  return high.number - Math.ceil((high.timestamp - timeSeconds) / seconds);
}
