import type { BlockRange } from "../../../chain/read/chain-reads.js";

/** How many blocks a step of a long read covers. */
export interface AdaptivePageSize {
  /** The part of a range at its beginning, or its end, that is worth a step. */
  selectPage(range: BlockRange, order: { readonly newestFirst: boolean }): BlockRange;
  /** Told how many logs a part had. */
  recordLogCount(part: BlockRange, logs: number): void;
  /** Told that endpoints take no more than so many blocks at once. */
  setMaxBlocks(blocks: number): void;
}

const INITIAL_PAGE_BLOCKS = 500;
const MAX_PAGE_BLOCKS = 1_000_000;
/** A step is lost when the process is killed, and is one transaction: neither tiny nor huge. */
const MIN_TARGET_LOGS = 200;
const MAX_TARGET_LOGS = 1_000;
/** After so many steps more than the limit is tried: other endpoints may answer by now. */
const LIMIT_RESET_STEPS = 100;

/** Widens where little happened and narrows where much did, within what endpoints take. */
export function createAdaptivePageSize(): AdaptivePageSize {
  let blocks = INITIAL_PAGE_BLOCKS;
  let most = MAX_PAGE_BLOCKS;
  let stepsAtLimit = 0;
  return {
    selectPage: ({ from, to }, { newestFirst }) =>
      newestFirst ? { from: Math.max(from, to - blocks + 1), to } : { from, to: Math.min(to, from + blocks - 1) },
    recordLogCount({ from, to }, logs) {
      const covered = to - from + 1;
      if (logs > MAX_TARGET_LOGS) blocks = Math.max(1, Math.floor((covered * MAX_TARGET_LOGS) / logs));
      if (logs >= MIN_TARGET_LOGS || covered < blocks) return;
      stepsAtLimit = blocks < most ? 0 : stepsAtLimit + 1;
      if (stepsAtLimit >= LIMIT_RESET_STEPS) most = MAX_PAGE_BLOCKS;
      blocks = Math.min(most, blocks * 2);
    },
    setMaxBlocks(taken) {
      most = Math.max(1, taken);
      blocks = Math.min(blocks, most);
      stepsAtLimit = 0;
    },
  };
}
