import type { Chain } from "../../../hop/networks.js";

// How often a followed transfer is looked at. All times are milliseconds.

const MIN_POLL_MS = 2_000;
/** Longest time between two polls of a transfer. */
const MAX_POLL_MS = 30_000;
/** A transfer is polled in each block for this time after it was sent; most are received by then. */
const FAST_POLL_AGE_MS = 10 * 60_000;
/** After that time the interval grows by a millisecond in this time. */
const AGE_MS_PER_MS = 20;

/** Time for which a chain is asked for one block only, before it is polled again after a failure. */
export const KNOCK_INTERVAL_MS = 3_000;
const FIRST_RETRY_MS = 1_000;

/**
 * A transfer that nothing was seen of is looked up again after this time: in case polls of the chains are wrong; because the
 * index, which tells of changes, may have stopped; because the explorer is only believed until the chains answer.
 */
export const REFRESH_INTERVAL_MS = { chain: 10 * 60_000, index: 30_000, explorer: 5_000 } as const;
/** Longest time between two attempts to find a target while its chains do not answer. */
export const MAX_SEARCH_RETRY_MS = 4_000;
/** How often it is asked whether the blocks of a transfer are final, where no poll does so. */
export const FINALITY_INTERVAL_MS = 5_000;
/** How often details are read that change without the status: a root arrives, a block becomes final. */
export const DETAILS_INTERVAL_MS = 10_000;

/** Returns the time between two polls of a chain. */
export function getPollIntervalMs({ blockTimeMs }: Pick<Chain, "blockTimeMs">): number {
  return Math.max(blockTimeMs, MIN_POLL_MS);
}

/** Returns the time between two polls of a transfer on one of its chains. @param ageMs time since it was sent */
export function getTransferPollMs(chain: Pick<Chain, "blockTimeMs">, ageMs: number): number {
  const intervalMs = getPollIntervalMs(chain);
  const growthMs = Math.max(0, ageMs - FAST_POLL_AGE_MS) / AGE_MS_PER_MS;
  return Math.min(intervalMs + growthMs, Math.max(intervalMs, MAX_POLL_MS));
}

/** Returns the time until failed work is done again. @param failures number of failures in a row, at least 1 */
export function getRetryDelayMs(failures: number, maxMs = MAX_POLL_MS): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), maxMs);
}
