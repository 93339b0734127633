import type { BlockTimes } from "../../../chain/read/block-finder.js";
import { type Log, readKnownHeader } from "../../../chain/read/chain-reads.js";
import { ServiceError } from "../../../errors.js";
import type { Chain } from "../../../hop/networks.js";
import type { LookUpContext } from "../transfer-source.js";
import type { LogTrails } from "./resumable-log-scanner.js";

/** What searching keeps from one look-up to the next. */
export interface SearchMemory {
  readonly blockTimes: BlockTimes;
  readonly trails: LogTrails;
}

/** By how much clocks of chains may differ. */
const clockSlackSeconds = 600;
/** How far before a time a block may lie that is found by it: as many blocks at most. */
const slackBlocks = 1_000;

/**
 * The number of a block that is after a time, for sure enough to begin there and search back first.
 * @param timestamp Unix seconds
 */
export async function blockAfter(
  chain: Chain,
  timestamp: number,
  { blockTimes }: SearchMemory,
  { chains, signal }: LookUpContext,
): Promise<number> {
  const client = chains.client(chain.slug);
  return (await blockTimes.blockAt(client, timestamp + clockSlackSeconds, chain.blockMs, signal)) + slackBlocks;
}

/** Time of a log's block, Unix seconds. */
export async function timeOf({ blockHash }: Log, chain: Chain, { chains, signal }: LookUpContext): Promise<number> {
  return (await readKnownHeader(chains.client(chain.slug), blockHash, signal)).timestamp;
}

/** A chain has told of something and does not have all of it: its endpoints differ, or a block was just undone. */
export function incomplete({ slug }: Chain): ServiceError {
  return new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} does not have all of its logs and blocks now`);
}
