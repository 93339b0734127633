import type { BlockRange } from "../../../chain/read/chain-reads.js";

/** Chooses how many blocks a page of a long read covers. */
export interface AdaptivePageSize {
  /** Returns the first page of a range, from its beginning or from its end. */
  selectPage(range: BlockRange, order: { readonly newestFirst: boolean }): BlockRange;
  /** Adapts the size to the number of logs that a page had. */
  recordLogCount(page: BlockRange, logCount: number): void;
  /** Sets the limit that the endpoints impose on the number of blocks per request. */
  setMaxBlocks(blocks: number): void;
}

const INITIAL_PAGE_BLOCKS = 500;
const MAX_PAGE_BLOCKS = 1_000_000;
/** A page is one transaction, and is lost when the process is killed: it should be neither tiny nor huge. */
const MIN_TARGET_LOGS = 200;
const MAX_TARGET_LOGS = 1_000;
/** After this many pages at the limit a larger one is tried, in case other endpoints serve the chain by then. */
const LIMIT_RESET_PAGES = 100;

/** Creates a page size that grows where there are few logs and shrinks where there are many, up to the endpoints' limit. */
export function createAdaptivePageSize(): AdaptivePageSize {
  let blocks = INITIAL_PAGE_BLOCKS;
  let maxBlocks = MAX_PAGE_BLOCKS;
  let pagesAtLimit = 0;
  return {
    selectPage: ({ from, to }, { newestFirst }) =>
      newestFirst ? { from: Math.max(from, to - blocks + 1), to } : { from, to: Math.min(to, from + blocks - 1) },
    recordLogCount({ from, to }, logCount) {
      const covered = to - from + 1;
      if (logCount > MAX_TARGET_LOGS) blocks = Math.max(1, Math.floor((covered * MAX_TARGET_LOGS) / logCount));
      if (logCount >= MIN_TARGET_LOGS || covered < blocks) return;
      pagesAtLimit = blocks < maxBlocks ? 0 : pagesAtLimit + 1;
      if (pagesAtLimit >= LIMIT_RESET_PAGES) maxBlocks = MAX_PAGE_BLOCKS;
      blocks = Math.min(maxBlocks, blocks * 2);
    },
    setMaxBlocks(limit) {
      maxBlocks = Math.max(1, limit);
      blocks = Math.min(blocks, maxBlocks);
      pagesAtLimit = 0;
    },
  };
}
