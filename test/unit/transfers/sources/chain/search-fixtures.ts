import { FinalityTracker } from "../../../../../src/chain/heads/finality-tracker.js";
import { BlockFinder } from "../../../../../src/chain/read/block-finder.js";
import { ContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { ChainSource } from "../../../../../src/transfers/sources/chain/chain-source.js";
import { ResumableLogScanner } from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import type { SearchContext } from "../../../../../src/transfers/sources/chain/search-context.js";
import { SearchedBlocks } from "../../../../../src/transfers/sources/chain/searched-blocks.js";
import type { LookupContext } from "../../../../../src/transfers/sources/transfer-source.js";

/** Caches of searches whose clock stands still, and what searches of a lookup use with them. */
export function createSearch(closing = new AbortController().signal, now: () => number = () => 0) {
  const blockTimes: SearchContext["blockTimes"] = new BlockFinder(now);
  const logScanner = new ResumableLogScanner(closing, now);
  const caches = { blockTimes, logScanner, searchedBlocks: new SearchedBlocks(now) };
  const toSearch = (context: LookupContext): SearchContext => {
    return { ...context, ...caches, contracts: new ContractRegistry(context.network) };
  };
  return { caches, toSearch };
}

/** A chain source with caches of its own. @param wallNow milliseconds since 1970 */
export function createTestChainSource(wallNow: () => number, closing?: AbortSignal, now: () => number = () => 0) {
  const { caches } = createSearch(closing, now);
  return new ChainSource(caches, new FinalityTracker(now, now), wallNow);
}
