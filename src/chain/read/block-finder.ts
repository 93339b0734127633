import type { ChainClient } from "../chain-client.js";
import { type BlockHeader, readLatestBlockHeader, readRequiredBlockHeader } from "./chain-reads.js";
import { type BlockTimestamp, searchBlockByTime } from "./interpolation-search.js";

/** Which block had which time. */
export interface BlockFinder {
  /**
   * The number of a block whose time is at or before a time, and not much before it: some minutes or some hundred blocks.
   * 0 for a time before the chain's first blocks, the head for one after it.
   * @param timeSeconds Unix seconds
   * @param blockMs about how long a block takes now, in milliseconds
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not tell
   */
  findBlockAt(client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal): Promise<number>;
}

interface CachedBlocks {
  head: { readonly header: BlockHeader; readonly readAt: number } | undefined;
  /** Times of blocks by number, oldest reading first. */
  readonly timestamps: Map<number, number>;
  /** Since when they are kept, in milliseconds on the steady clock. */
  cachedSince: number;
}

/** A block so much older than the head, in seconds, keeps its time: no chain undoes that many. */
const SETTLED_AGE_SECONDS = 3_600;
const MAX_CACHED_TIMESTAMPS = 128;
/** How long a head is used below which blocks are looked for, in milliseconds. */
const HEAD_TTL_MS = 60_000;
/** For how long times are believed: an endpoint may have told a wrong one. */
const TIMESTAMPS_TTL_MS = 60 * 60_000;
/** Of the first block the time need not be known. */
const GENESIS_BLOCK: BlockTimestamp = { number: 0, timestamp: Number.NEGATIVE_INFINITY };

/**
 * Remembers what it reads by client, so that what a caller's own endpoint says is for that caller alone.
 * @param now milliseconds on a steady clock
 */
export function createBlockFinder({ now }: { readonly now: () => number }): BlockFinder {
  const chains = new WeakMap<ChainClient, CachedBlocks>();

  function knownOf(client: ChainClient): CachedBlocks {
    const known = chains.get(client) ?? { head: undefined, timestamps: new Map(), cachedSince: now() };
    chains.set(client, known);
    return known;
  }

  /** The newest block, read at most once in about a block. */
  async function headOf(client: ChainClient, blockMs: number, signal: AbortSignal): Promise<BlockHeader> {
    const known = knownOf(client);
    if (known.head !== undefined && now() - known.head.readAt < blockMs) return known.head.header;
    const readAt = now();
    const header = await readLatestBlockHeader(client, signal);
    known.head = { header, readAt };
    return header;
  }

  return {
    async findBlockAt(client, timeSeconds, blockMs, signal) {
      const known = knownOf(client);
      if (now() - known.cachedSince >= TIMESTAMPS_TTL_MS) {
        known.timestamps.clear();
        known.cachedSince = now();
      }
      // Above a time any head will do that is after it; for a while, since an endpoint may have told something wrong.
      const isRecent = known.head !== undefined && now() - known.head.readAt < HEAD_TTL_MS;
      let head: BlockTimestamp | undefined = isRecent ? known.head?.header : undefined;
      if (head === undefined || head.timestamp <= timeSeconds) head = await headOf(client, blockMs, signal);
      if (head.timestamp <= timeSeconds) return head.number;

      const settled = head.timestamp - SETTLED_AGE_SECONDS;
      const read = async (number: number): Promise<BlockTimestamp> => {
        const header = await readRequiredBlockHeader(client, number, signal);
        if (header.timestamp <= settled) cacheTimestamp(known.timestamps, header);
        return header;
      };
      const [low, high] = findBracket(timeSeconds, known.timestamps, head);
      return (await searchBlockByTime(low, high, timeSeconds, blockMs / 1000, read)).number;
    },
  };
}

/** The nearest known blocks before and after a time. */
function findBracket(
  timeSeconds: number,
  times: ReadonlyMap<number, number>,
  head: BlockTimestamp,
): [BlockTimestamp, BlockTimestamp] {
  let [low, high] = [GENESIS_BLOCK, head];
  for (const [number, timestamp] of times) {
    if (timestamp <= timeSeconds && number > low.number) low = { number, timestamp };
    if (timestamp > timeSeconds && number < high.number) high = { number, timestamp };
  }
  return [low, high];
}

function cacheTimestamp(times: Map<number, number>, { number, timestamp }: BlockTimestamp): void {
  times.delete(number);
  times.set(number, timestamp);
  for (const oldest of [...times.keys()].slice(0, -MAX_CACHED_TIMESTAMPS)) times.delete(oldest);
}
