import type { ChainClient } from "../chain-client.js";
import { type BlockHeader, readHead, readKnownHeader } from "./chain-reads.js";
import { type BlockTime, searchBlock } from "./interpolation-search.js";

/** Which block had which time. */
export interface BlockTimes {
  /**
   * The number of a block whose time is at or before a time, and not much before it: some minutes or some hundred blocks.
   * 0 for a time before the chain's first blocks, the head for one after it.
   * @param timeSeconds Unix seconds
   * @param blockMs about how long a block takes now, in milliseconds
   * @throws ServiceError UPSTREAM_UNAVAILABLE when the chain does not tell
   */
  blockAt(client: ChainClient, timeSeconds: number, blockMs: number, signal: AbortSignal): Promise<number>;
}

interface Known {
  head: { readonly header: BlockHeader; readonly readAt: number } | undefined;
  /** Times of blocks by number, oldest reading first. */
  readonly times: Map<number, number>;
  /** Since when they are kept, in milliseconds on the steady clock. */
  since: number;
}

/** A block so much older than the head, in seconds, keeps its time: no chain undoes that many. */
const settledSeconds = 3_600;
const maxTimes = 128;
/** How long a head is used below which blocks are looked for, in milliseconds. */
const headMs = 60_000;
/** For how long times are believed: an endpoint may have told a wrong one. */
const believedMs = 60 * 60_000;
/** Of the first block the time need not be known. */
const genesis: BlockTime = { number: 0, timestamp: Number.NEGATIVE_INFINITY };

/**
 * Remembers what it reads by client, so that what a caller's own endpoint says is for that caller alone.
 * @param now milliseconds on a steady clock
 */
export function createBlockTimes({ now }: { readonly now: () => number }): BlockTimes {
  const chains = new WeakMap<ChainClient, Known>();

  function knownOf(client: ChainClient): Known {
    const known = chains.get(client) ?? { head: undefined, times: new Map(), since: now() };
    chains.set(client, known);
    return known;
  }

  /** The newest block, read at most once in about a block. */
  async function headOf(client: ChainClient, blockMs: number, signal: AbortSignal): Promise<BlockHeader> {
    const known = knownOf(client);
    if (known.head !== undefined && now() - known.head.readAt < blockMs) return known.head.header;
    const readAt = now();
    const header = await readHead(client, signal);
    known.head = { header, readAt };
    return header;
  }

  return {
    async blockAt(client, timeSeconds, blockMs, signal) {
      const known = knownOf(client);
      if (now() - known.since >= believedMs) {
        known.times.clear();
        known.since = now();
      }
      // Above a time any head will do that is after it; for a while, since an endpoint may have told something wrong.
      const isRecent = known.head !== undefined && now() - known.head.readAt < headMs;
      let head: BlockTime | undefined = isRecent ? known.head?.header : undefined;
      if (head === undefined || head.timestamp <= timeSeconds) head = await headOf(client, blockMs, signal);
      if (head.timestamp <= timeSeconds) return head.number;

      const settled = head.timestamp - settledSeconds;
      const read = async (number: number): Promise<BlockTime> => {
        const header = await readKnownHeader(client, number, signal);
        if (header.timestamp <= settled) keep(known.times, header);
        return header;
      };
      const [low, high] = around(timeSeconds, known.times, head);
      return (await searchBlock(low, high, timeSeconds, blockMs / 1000, read)).number;
    },
  };
}

/** The nearest known blocks before and after a time. */
function around(timeSeconds: number, times: ReadonlyMap<number, number>, head: BlockTime): [BlockTime, BlockTime] {
  let [low, high] = [genesis, head];
  for (const [number, timestamp] of times) {
    if (timestamp <= timeSeconds && number > low.number) low = { number, timestamp };
    if (timestamp > timeSeconds && number < high.number) high = { number, timestamp };
  }
  return [low, high];
}

function keep(times: Map<number, number>, { number, timestamp }: BlockTime): void {
  times.delete(number);
  times.set(number, timestamp);
  for (const oldest of [...times.keys()].slice(0, -maxTimes)) times.delete(oldest);
}
