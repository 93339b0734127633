import type { BlockHeader, Log } from "../../../chain/read/chain-reads.js";
import type { Chain } from "../../../hop/networks.js";

// When the index looks at a chain, and what the answers mean: no input or output here.

const MIN_POLL_INTERVAL_MS = 2_000;

/** Time between two looks at a chain, in milliseconds. */
export function getPollIntervalMs({ blockTimeMs }: Pick<Chain, "blockTimeMs">): number {
  return Math.max(blockTimeMs, MIN_POLL_INTERVAL_MS);
}

/** advance: take what is new. reorg: the last block was undone. wait: this endpoint does not have it all yet. */
export type PollResult = "advance" | "reorg" | "wait";

/**
 * @param kept the last block in the index, and some that were it before
 * @param now the blocks that have their numbers now; undefined: none
 * @param latest the chain's latest block by the same answer
 */
export function classifyPoll(
  kept: readonly BlockHeader[],
  now: readonly (BlockHeader | undefined)[],
  latest: BlockHeader | undefined,
): PollResult {
  // A head that goes back is an endpoint behind another, or a reorg to a shorter chain, which will grow.
  if (latest === undefined || kept.some(({ number }) => latest.number < number)) return "wait";
  if (kept.some(({ number }, index) => now[index]?.number !== number)) return "wait";
  return kept.every(({ hash }, index) => now[index]?.hash === hash) ? "advance" : "reorg";
}

/**
 * The newest block that is still there, with all before it; undefined: not one. A block above one that was undone may be
 * there all the same, where a reorg came between the answers of one poll.
 */
export function findCommonAncestor(
  kept: readonly BlockHeader[],
  now: readonly (BlockHeader | undefined)[],
): BlockHeader | undefined {
  return kept[kept.findLastIndex(({ hash }, index) => now[index]?.hash !== hash) + 1];
}

/** Whether blocks and logs that were asked for together are of one chain: a reorg, or another endpoint, may come between. */
export function isConsistentChain(headers: readonly BlockHeader[], logs: readonly Log[]): boolean {
  const hashes = new Map<number, string>();
  const ofLogs = logs.map(({ blockNumber, blockHash }) => ({ number: blockNumber, hash: blockHash }));
  for (const { number, hash } of [...headers, ...ofLogs]) {
    if ((hashes.get(number) ?? hash) !== hash) return false;
    hashes.set(number, hash);
  }
  return true;
}

/** A block counts as settled no earlier than this after it is final: an endpoint that is behind its peers has caught up. */
const FINALITY_MARGIN_MS = 120_000;
/** Age at which a block counts as final where the chain does not know the tag. */
const FALLBACK_FINALITY_AGE_MS = 3_600_000;

/**
 * Number of the newest block that nothing can undo and every endpoint has.
 * @param finalized number of the newest block that is final; undefined: the chain does not know
 */
export function computeSettledBlock(latest: BlockHeader, finalized: number | undefined, blockMs: number): number {
  const blocksIn = (ms: number): number => Math.ceil(ms / blockMs);
  const settled =
    finalized === undefined
      ? latest.number - blocksIn(FALLBACK_FINALITY_AGE_MS)
      : Math.min(finalized, latest.number - blocksIn(FINALITY_MARGIN_MS));
  return Math.max(0, settled);
}
