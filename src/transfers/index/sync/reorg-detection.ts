import type { BlockHeader, Log } from "../../../chain/read/chain-reads.js";
import type { Chain } from "../../../hop/networks.js";

// Interpretation of what polls return: pure functions without input or output.

const MIN_POLL_INTERVAL_MS = 2_000;

/** Returns the time between two polls of a chain, in milliseconds. */
export function getPollIntervalMs({ blockTimeMs }: Pick<Chain, "blockTimeMs">): number {
  return Math.max(blockTimeMs, MIN_POLL_INTERVAL_MS);
}

/** advance: add what is new. reorg: an indexed block was removed. wait: this endpoint does not have every block yet. */
export type PollResult = "advance" | "reorg" | "wait";

/**
 * Compares the index with a chain.
 * @param indexed the last block of the index, and some that were the last before it
 * @param current the blocks that the chain has at their numbers; undefined for none
 * @param latest the chain's latest block in the same response
 */
export function classifyPoll(
  indexed: readonly BlockHeader[],
  current: readonly (BlockHeader | undefined)[],
  latest: BlockHeader | undefined,
): PollResult {
  // A head that moves back is an endpoint that lags, or a reorg to a shorter chain, which will grow.
  if (latest === undefined || indexed.some(({ number }) => latest.number < number)) return "wait";
  if (indexed.some(({ number }, index) => current[index]?.number !== number)) return "wait";
  return indexed.every(({ hash }, index) => current[index]?.hash === hash) ? "advance" : "reorg";
}

/**
 * Returns the newest block that is still on the chain together with all blocks before it; undefined for none. A block above
 * a removed one may still be on the chain, if a reorg fell between the responses of one poll.
 * @param indexed newest first
 */
export function findCommonAncestor(
  indexed: readonly BlockHeader[],
  current: readonly (BlockHeader | undefined)[],
): BlockHeader | undefined {
  return indexed[indexed.findLastIndex(({ hash }, index) => current[index]?.hash !== hash) + 1];
}

/**
 * Returns whether the blocks and logs of one batch belong to one chain. A reorg, or a switch to another endpoint, may fall
 * between two responses of a batch.
 */
export function isConsistentChain(headers: readonly BlockHeader[], logs: readonly Log[]): boolean {
  const hashes = new Map<number, string>();
  const logBlocks = logs.map(({ blockNumber, blockHash }) => ({ number: blockNumber, hash: blockHash }));
  for (const { number, hash } of [...headers, ...logBlocks]) {
    if ((hashes.get(number) ?? hash) !== hash) return false;
    hashes.set(number, hash);
  }
  return true;
}

/** Safety margin below the latest block: by then, an endpoint that lags behind its peers has caught up. */
const FINALITY_MARGIN_MS = 120_000;
/** Age at which a block counts as final on a chain that does not support the `finalized` tag. */
const FALLBACK_FINALITY_AGE_MS = 3_600_000;

/**
 * Returns the number of the newest settled block: final, and below the latest block by a safety margin, so that every
 * endpoint has it.
 * @param finalized number of the chain's finalized block; undefined when the chain does not support the tag
 */
export function computeSettledBlock(latest: BlockHeader, finalized: number | undefined, blockMs: number): number {
  const countBlocks = (ms: number): number => Math.ceil(ms / blockMs);
  const settled =
    finalized === undefined
      ? latest.number - countBlocks(FALLBACK_FINALITY_AGE_MS)
      : Math.min(finalized, latest.number - countBlocks(FINALITY_MARGIN_MS));
  return Math.max(0, settled);
}
