import type { BlockFinder } from "../../../chain/read/block-finder.js";
import { type Log, readRequiredBlockHeader } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { Chain } from "../../../hop/networks.js";
import type { LookupContext } from "../transfer-source.js";
import type { ResumableLogScanner } from "./resumable-log-scanner.js";

/** What searching keeps from one look-up to the next. */
export interface SearchCaches {
  readonly blockTimes: BlockFinder;
  readonly logScanner: ResumableLogScanner;
}

/** By how much clocks of chains may differ. */
const CLOCK_SKEW_SECONDS = 600;
/** How far before a time a block may lie that is found by it: as many blocks at most. */
const MARGIN_BLOCKS = 1_000;

/**
 * The number of a block that is after a time, for sure enough to begin there and search back first.
 * @param timestamp Unix seconds
 */
export async function findBlockAfter(
  chain: Chain,
  timestamp: number,
  { blockTimes }: SearchCaches,
  { chains, signal }: LookupContext,
): Promise<number> {
  const client = chains.getClient(chain.slug);
  return (
    (await blockTimes.findBlockAt(client, timestamp + CLOCK_SKEW_SECONDS, chain.blockTimeMs, signal)) + MARGIN_BLOCKS
  );
}

/** Time of a log's block, Unix seconds. */
export async function readLogTimestamp(
  { blockHash }: Log,
  chain: Chain,
  { chains, signal }: LookupContext,
): Promise<number> {
  return (await readRequiredBlockHeader(chains.getClient(chain.slug), blockHash, signal)).timestamp;
}

/** A chain has told of something and does not have all of it: its endpoints differ, or a block was just undone. */
export function incompleteChainDataError({ slug }: Chain): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} does not have all of its logs and blocks now`);
}
