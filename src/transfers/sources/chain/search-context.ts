import type { BlockFinder } from "../../../chain/read/block-finder.js";
import { type Log, readRequiredBlockHeader } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { ContractRegistry } from "../../../hop/contract-registry.js";
import type { Chain } from "../../../hop/networks.js";
import type { LookupContext } from "../transfer-source.js";
import type { ResumableLogScanner } from "./resumable-log-scanner.js";
import type { SearchedBlocks } from "./searched-blocks.js";

/** State that searches keep from one lookup to the next. */
export interface SearchCaches {
  readonly blockTimes: Pick<BlockFinder, "findBlockAt">;
  readonly logScanner: ResumableLogScanner;
  readonly searchedBlocks: SearchedBlocks;
}

/** What the searches of one lookup use. */
export interface SearchContext extends LookupContext, SearchCaches {
  readonly contracts: ContractRegistry;
}

/** Largest assumed difference between the clocks of two chains. */
const CLOCK_SKEW_SECONDS = 600;
/** The block finder is accurate to this many blocks. */
const MARGIN_BLOCKS = 1_000;

/**
 * Returns the number of a block that is almost certainly after a time. A backward search may begin there, but the blocks
 * above it must not be left out for good.
 * @param timestamp Unix seconds
 */
export async function estimateBlockAfter(
  chain: Chain,
  timestamp: number,
  { blockTimes, chains, signal }: Pick<SearchContext, "blockTimes" | "chains" | "signal">,
): Promise<number> {
  const client = chains.getClient(chain.slug);
  const block = await blockTimes.findBlockAt(client, timestamp + CLOCK_SKEW_SECONDS, chain.blockTimeMs, signal);
  return block + MARGIN_BLOCKS;
}

/** Reads the time of a log's block, in Unix seconds. */
export async function readLogTimestamp(
  { blockHash }: Log,
  chain: Chain,
  { chains, signal }: Pick<LookupContext, "chains" | "signal">,
): Promise<number> {
  return (await readRequiredBlockHeader(chains.getClient(chain.slug), blockHash, signal)).timestamp;
}

/** Reports contradictory data of one chain: its endpoints differ, or a block was reorged between two reads. */
export function incompleteChainDataError({ slug }: Chain): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} currently returns incomplete logs or blocks`);
}
