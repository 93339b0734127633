import { LRUCache } from "lru-cache";
import type { BlockRange } from "../../../chain/chain-client.js";

/** About five megabytes: a search for a transfer ID is one entry per chain. */
const MAX_ENTRIES = 10_000;
/** Ranges that are kept of a search. There are several when it stopped among the blocks that were new since the last one. */
const MAX_RANGES = 4;
/** Blocks are searched again after this time, in milliseconds: an endpoint may have left out a log. */
const TTL_MS = 60 * 60_000;

/** Blocks younger than this can be reorged, so they are searched again. */
const REORG_WINDOW_MS = 30 * 60_000;

/** Blocks that were searched without a result, by search, so that the next lookup continues with the others. */
export class SearchedBlocks {
  readonly #rangesByKey: LRUCache<string, readonly BlockRange[]>;

  /** @param now monotonic clock, in milliseconds */
  constructor(now: () => number) {
    this.#rangesByKey = new LRUCache({
      max: MAX_ENTRIES,
      ttl: TTL_MS,
      noUpdateTTL: true,
      perf: { now },
      ttlResolution: 0,
    });
  }

  /** Returns the parts of a range that have not been searched, newest first. */
  listUnsearched(key: string | undefined, range: BlockRange): readonly BlockRange[] {
    return subtractRanges(range, this.#getRanges(key));
  }

  /** @param key identifies the search; undefined: nothing is kept */
  record(key: string | undefined, range: BlockRange): void {
    if (key === undefined || range.to < range.from) return;
    this.#rangesByKey.set(key, dropNarrowest(mergeRange(this.#getRanges(key), range)));
  }

  #getRanges(key: string | undefined): readonly BlockRange[] {
    return (key === undefined ? undefined : this.#rangesByKey.get(key)) ?? [];
  }
}

/** Adds a range to disjoint ranges and joins those that touch it. Returns them newest first. */
export function mergeRange(ranges: readonly BlockRange[], added: BlockRange): readonly BlockRange[] {
  const isTouching = ({ from, to }: BlockRange): boolean => from <= added.to + 1 && to >= added.from - 1;
  const touching = [...ranges.filter(isTouching), added];
  const merged = {
    from: Math.min(...touching.map(({ from }) => from)),
    to: Math.max(...touching.map(({ to }) => to)),
  };
  return [...ranges.filter((range) => !isTouching(range)), merged].sort((a, b) => b.from - a.from);
}

function dropNarrowest(ranges: readonly BlockRange[]): readonly BlockRange[] {
  if (ranges.length <= MAX_RANGES) return ranges;
  const width = ({ from, to }: BlockRange): number => to - from;
  const narrowest = ranges.reduce((least, range) => (width(range) < width(least) ? range : least));
  return ranges.filter((range) => range !== narrowest);
}

/** Returns what is left of a range without others, newest first. @param others disjoint, newest first */
export function subtractRanges(range: BlockRange, others: readonly BlockRange[]): readonly BlockRange[] {
  const rest: BlockRange[] = [];
  let { to } = range;
  for (const other of others) {
    if (other.from > to || other.to < range.from) continue;
    if (other.to < to) rest.push({ from: other.to + 1, to });
    to = other.from - 1;
  }
  return to < range.from ? rest : [...rest, { from: range.from, to }];
}

/**
 * Returns the last block that reorgs leave as it is.
 * @param blockMs average block time of the chain, in milliseconds
 */
export function getLastStableBlock(head: number, blockMs: number): number {
  return head - Math.ceil(REORG_WINDOW_MS / blockMs);
}
