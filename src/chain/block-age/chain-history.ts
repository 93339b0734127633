import { MAX_SECONDS_AHEAD } from "../endpoints/head-tracker.js";
import type { ChainBlockAge } from "./judge-block-ages.js";

/** A block that was the newest one where and when it was read. */
export interface HeadRead {
  /** Name of the endpoint; `STATE_SOURCE`: a read of the chain state of quotes, wherever it comes from. */
  readonly source: string;
  /** Unix seconds. */
  readonly timestamp: number;
  /** Start of the read in milliseconds on the monotonic clock. */
  readonly readAt: number;
}

/** A read with its start on this machine's wall clock, in milliseconds since 1970. */
interface DatedHeadRead extends HeadRead {
  readonly readAtMs: number;
}

/** What has been seen of the newest blocks of a chain. */
export interface ChainHistory {
  record(read: DatedHeadRead): void;
  clear(): void;
  /** Returns the start of the latest read on the monotonic clock. */
  readAt(): number;
  /** Returns the newest block and its age by this machine's clock; undefined: none has been read. */
  getNewest(): NewestBlock | undefined;
  /** Returns the block of the last read of chain state; undefined: none, or others have been read long after it. */
  getState(): HeadRead | undefined;
}

/** The newest block of a chain, from whichever source. */
export interface NewestBlock extends Pick<ChainBlockAge, "ageMs" | "isAdvancing" | "isConfirmed"> {
  /** Unix seconds. */
  readonly timestamp: number;
}

export const STATE_SOURCE = "state";
const MAX_STATE_LAG_MS = 10_000;
/** A chain on which no new block arrives for this long, or for five blocks, does not advance. */
const MIN_STILL_MS = 15_000;
const STILL_BLOCKS = 5;
/** Blocks of several endpoints that differ by less are about the same. */
const SAME_BLOCK_SECONDS = 30;

/** @param getClockOffsetMs right time less this machine's, as far as it is known */
export function createChainHistory(blockTimeMs: number, getClockOffsetMs: () => number): ChainHistory {
  const stillMs = Math.max(MIN_STILL_MS, STILL_BLOCKS * blockTimeMs);
  /** The last read of each source. */
  const reads = new Map<string, DatedHeadRead>();
  const progress = { newest: Number.NEGATIVE_INFINITY, changedAt: 0, hasAdvanced: false };
  let latest: DatedHeadRead | undefined;

  /** Ignores blocks from the future, which would hide that the chain stands still, unless all are. */
  function findNewest(): number {
    const timestamps = [...reads.values()].map(({ timestamp }) => timestamp);
    const isPlausible = ({ timestamp, readAtMs }: DatedHeadRead): boolean =>
      timestamp <= (readAtMs + getClockOffsetMs()) / 1000 + MAX_SECONDS_AHEAD;
    const plausible = [...reads.values()].filter(isPlausible).map(({ timestamp }) => timestamp);
    return Math.max(...(plausible.length > 0 ? plausible : timestamps));
  }

  return {
    record(read) {
      const known = reads.get(read.source);
      // Reads may end in another order than they began.
      if (known !== undefined && known.readAt > read.readAt) return;
      reads.set(read.source, read);
      if (latest === undefined || read.readAt > latest.readAt) latest = read;
      const newest = findNewest();
      if (newest <= progress.newest) return;
      progress.hasAdvanced = progress.newest !== Number.NEGATIVE_INFINITY;
      progress.newest = newest;
      progress.changedAt = read.readAt;
    },
    clear() {
      reads.clear();
      Object.assign(progress, { newest: Number.NEGATIVE_INFINITY, hasAdvanced: false });
      latest = undefined;
    },
    readAt: () => latest?.readAt ?? Number.NEGATIVE_INFINITY,
    getNewest() {
      if (latest === undefined) return undefined;
      const timestamp = findNewest();
      const isAdvancing = latest.readAt - progress.changedAt < stillMs;
      const agreeing = [...reads.values()].filter(
        (read) => read.source !== STATE_SOURCE && timestamp - read.timestamp < SAME_BLOCK_SECONDS,
      );
      const isConfirmed = isAdvancing && progress.hasAdvanced && agreeing.length >= 2;
      return { timestamp, ageMs: latest.readAtMs - timestamp * 1000, isAdvancing, isConfirmed };
    },
    getState() {
      const state = reads.get(STATE_SOURCE);
      return state && latest && latest.readAt - state.readAt <= MAX_STATE_LAG_MS ? state : undefined;
    },
  };
}
