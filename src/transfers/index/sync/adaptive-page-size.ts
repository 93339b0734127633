import type { BlockRange } from "../../../chain/read/chain-reads.js";

/** How many blocks a step of a long read covers. */
export interface PageWidth {
  /** The part of a range at its beginning, or its end, that is worth a step. */
  partOf(range: BlockRange, order: { readonly newestFirst: boolean }): BlockRange;
  /** Told how many logs a part had. */
  learn(part: BlockRange, logs: number): void;
  /** Told that endpoints take no more than so many blocks at once. */
  limit(blocks: number): void;
}

const firstBlocks = 500;
const mostBlocks = 1_000_000;
/** A step is lost when the process is killed, and is one transaction: neither tiny nor huge. */
const fewLogs = 200;
const manyLogs = 1_000;
/** After so many steps more than the limit is tried: other endpoints may answer by now. */
const limitSteps = 100;

/** Widens where little happened and narrows where much did, within what endpoints take. */
export function createPageWidth(): PageWidth {
  let blocks = firstBlocks;
  let most = mostBlocks;
  let stepsAtLimit = 0;
  return {
    partOf: ({ from, to }, { newestFirst }) =>
      newestFirst ? { from: Math.max(from, to - blocks + 1), to } : { from, to: Math.min(to, from + blocks - 1) },
    learn({ from, to }, logs) {
      const covered = to - from + 1;
      if (logs > manyLogs) blocks = Math.max(1, Math.floor((covered * manyLogs) / logs));
      if (logs >= fewLogs || covered < blocks) return;
      stepsAtLimit = blocks < most ? 0 : stepsAtLimit + 1;
      if (stepsAtLimit >= limitSteps) most = mostBlocks;
      blocks = Math.min(most, blocks * 2);
    },
    limit(taken) {
      most = Math.max(1, taken);
      blocks = Math.min(blocks, most);
      stepsAtLimit = 0;
    },
  };
}
