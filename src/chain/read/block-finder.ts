import { type ChainClient, getCacheKey } from "../chain-client.js";
import { type BlockHeader, readLatestBlockHeader, readRequiredBlockHeader } from "./chain-reads.js";
import { type BlockTimestamp, searchBlockByTime } from "./interpolation-search.js";

/** Finds blocks by time. */
export interface BlockFinder {
  /**
   * Returns the number of a block at or shortly before a time: within some minutes or some hundred blocks. Returns 0 for a
   * time before the chain's first blocks, and the head for a time after it.
   * @param timeSeconds Unix seconds
   * @param blockMs approximate block time, in milliseconds
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not respond
   */
  findBlockAt(client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal): Promise<number>;
}

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
 * Caches results by client, so that the results of a custom endpoint are only used for the caller that named it.
 * @param now monotonic clock, in milliseconds
 */
export function createBlockFinder({ now }: { readonly now: () => number }): BlockFinder {
  const cacheByClient = new WeakMap<object, CachedBlocks>();

  function getCache(client: ChainClient): CachedBlocks {
    const key = getCacheKey(client);
    const cache = cacheByClient.get(key) ?? { head: undefined, timestamps: new Map(), cachedSince: now() };
    cacheByClient.set(key, cache);
    return cache;
  }

  /** Reads the head at most once per block time. */
  async function readHead(client: ChainClient, blockMs: number, signal: AbortSignal): Promise<BlockHeader> {
    const cache = getCache(client);
    if (cache.head !== undefined && now() - cache.head.readAt < blockMs) return cache.head.header;
    const readAt = now();
    const header = await readLatestBlockHeader(client, signal);
    cache.head = { header, readAt };
    return header;
  }

  return {
    async findBlockAt(client, timeSeconds, blockMs, signal) {
      const cache = getCache(client);
      if (now() - cache.cachedSince >= TIMESTAMPS_TTL_MS) {
        cache.timestamps.clear();
        cache.cachedSince = now();
      }
      // Any cached head after the time is a valid upper bound. It expires because an endpoint may have returned a wrong one.
      const isRecent = cache.head !== undefined && now() - cache.head.readAt < HEAD_TTL_MS;
      let head: BlockTimestamp | undefined = isRecent ? cache.head?.header : undefined;
      if (head === undefined || head.timestamp <= timeSeconds) head = await readHead(client, blockMs, signal);
      if (head.timestamp <= timeSeconds) return head.number;

      const settledBefore = head.timestamp - SETTLED_AGE_SECONDS;
      const read = async (number: number): Promise<BlockTimestamp> => {
        const header = await readRequiredBlockHeader(client, number, signal);
        if (header.timestamp <= settledBefore) cacheTimestamp(cache.timestamps, header);
        return header;
      };
      const [low, high] = findBracket(timeSeconds, cache.timestamps, head);
      return (await searchBlockByTime(low, high, timeSeconds, blockMs / 1000, read)).number;
    },
  };
}

/** Returns the nearest cached blocks before and after a time. */
function findBracket(
  timeSeconds: number,
  timestamps: ReadonlyMap<number, number>,
  head: BlockTimestamp,
): [BlockTimestamp, BlockTimestamp] {
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
