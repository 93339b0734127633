import type { ChainClient } from "../chain-client.js";
import { getHeadTracker } from "../heads/head-tracker.js";
import { type BlockHeader, readLatestBlockHeader, readRequiredBlockHeader } from "./chain-reads.js";

/** A block and its time. */
interface BlockTimestamp {
  readonly number: number;
  /** Unix seconds. */
  readonly timestamp: number;
}

/** A block at or before a time, and one after it. Block 0 may have the time -Infinity: unknown. */
type BlockBracket = readonly [low: BlockTimestamp, high: BlockTimestamp];

/** Times are milliseconds on the monotonic clock. */
interface CachedBlocks {
  head: { readonly header: BlockHeader; readonly readAt: number } | undefined;
  /** Timestamps by block number, oldest read first. */
  readonly timestamps: Map<number, number>;
  cachedSince: number;
}

/** Age relative to the head, in seconds, above which a block's timestamp is cached: no reorg reaches that far back. */
const SETTLED_AGE_SECONDS = 3_600;
const MAX_CACHED_TIMESTAMPS = 128;
/** How long a head serves as the upper bound of searches, in milliseconds. */
const HEAD_TTL_MS = 60_000;
/** How long timestamps are cached. An endpoint may have returned a wrong one. */
const TIMESTAMPS_TTL_MS = 60 * 60_000;
/** The first block, whose time is not needed. */
const GENESIS_BLOCK: BlockTimestamp = { number: 0, timestamp: Number.NEGATIVE_INFINITY };

/**
 * How far before the target time a result may be. A log search that starts there reads at most one page more, while a
 * closer result would cost another round trip.
 */
const TOLERANCE_SECONDS = 300;
const TOLERANCE_BLOCKS = 1_000;
/** After so many consecutive guesses that left more than half of the range, the next step bisects. */
const MAX_POOR_GUESSES = 2;

/** Finds blocks by time. Caches results by client, so that those of a custom endpoint are only used for its caller. */
export class BlockFinder {
  readonly #now: () => number;
  readonly #cacheByClient = new WeakMap<object, CachedBlocks>();

  /** @param now monotonic clock, in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Returns the number of a block at or shortly before a time: within some minutes or some hundred blocks. Returns 0 for a
   * time before the chain's first blocks, and the head for a time after it.
   * @param timeSeconds Unix seconds
   * @param blockMs approximate block time, in milliseconds
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond
   */
  async findBlockAt(client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal): Promise<number> {
    const cache = this.#getCache(client);
    // Any cached head after the time is a valid upper bound. It expires because an endpoint may have returned a wrong one.
    let head: BlockTimestamp | undefined = this.#getHead(cache, HEAD_TTL_MS);
    if (head === undefined || head.timestamp <= timeSeconds) {
      // Read at most once per block time.
      head = this.#getHead(cache, blockMs) ?? (await this.#readHead(client, cache, signal));
    }
    if (head.timestamp <= timeSeconds) return head.number;

    const settledBefore = head.timestamp - SETTLED_AGE_SECONDS;
    const read = async (number: number): Promise<BlockTimestamp> => {
      const header = await readRequiredBlockHeader(client, number, signal);
      if (header.timestamp <= settledBefore) cacheTimestamp(cache.timestamps, header);
      return header;
    };
    const bracket = findBracket(timeSeconds, cache.timestamps, head);
    return (await searchBlockByTime(bracket, timeSeconds, blockMs / 1000, read)).number;
  }

  #getCache(client: ChainClient): CachedBlocks {
    const key = getHeadTracker(client);
    const now = this.#now();
    const cache = this.#cacheByClient.get(key) ?? { head: undefined, timestamps: new Map(), cachedSince: now };
    this.#cacheByClient.set(key, cache);
    if (now - cache.cachedSince >= TIMESTAMPS_TTL_MS) {
      cache.timestamps.clear();
      cache.cachedSince = now;
    }
    return cache;
  }

  /** Returns the cached head if it is younger than a time in milliseconds. */
  #getHead({ head }: CachedBlocks, maxAgeMs: number): BlockHeader | undefined {
    return head !== undefined && this.#now() - head.readAt < maxAgeMs ? head.header : undefined;
  }

  async #readHead(client: ChainClient, cache: CachedBlocks, signal: AbortSignal): Promise<BlockHeader> {
    const readAt = this.#now();
    const header = await readLatestBlockHeader(client, signal);
    cache.head = { header, readAt };
    return header;
  }
}

/** Returns the nearest cached blocks before and after a time. */
function findBracket(timeSeconds: number, timestamps: ReadonlyMap<number, number>, head: BlockTimestamp): BlockBracket {
  let [low, high] = [GENESIS_BLOCK, head];
  for (const [number, timestamp] of timestamps) {
    if (timestamp <= timeSeconds && number > low.number) low = { number, timestamp };
    if (timestamp > timeSeconds && number < high.number) high = { number, timestamp };
  }
  return [low, high];
}

function cacheTimestamp(timestamps: Map<number, number>, { number, timestamp }: BlockTimestamp): void {
  timestamps.delete(number);
  timestamps.set(number, timestamp);
  for (const oldest of [...timestamps.keys()].slice(0, -MAX_CACHED_TIMESTAMPS)) timestamps.delete(oldest);
}

/**
 * Finds a block at or shortly before a time with as few reads as possible (interpolation search, with bisection as
 * fallback). Works for any non-decreasing timestamps, whatever gaps they have.
 * @param secondsPerBlock estimated block time, used until it is measured
 */
export async function searchBlockByTime(
  [low, high]: BlockBracket,
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
