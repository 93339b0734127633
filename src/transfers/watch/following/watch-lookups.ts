import type { ChainClients } from "../../../chain/chains.js";
import type { Network } from "../../../hop/networks.js";
import type { LookupContext, TransferQuery } from "../../sources/transfer-source.js";
import { createFairSemaphore } from "../../spend/fair-semaphore.js";
import type { TransferStatus } from "../../status.js";
import type { StatusCache } from "../../status-cache.js";
import { toTransferQuery } from "../watch-target.js";
import type { FollowerDeps } from "./follower-deps.js";

export interface WatchLookupsOptions {
  readonly chains: Pick<ChainClients, "forNetwork">;
  readonly statusCache: StatusCache;
  /** Ends all lookups. */
  readonly closing: AbortSignal;
  /** Longest time of a lookup, in milliseconds. */
  readonly timeoutMs: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** Transfers of one transaction that are watched; the others are left out. */
export const MAX_TRANSFERS_PER_TRANSACTION = 100;
/** Concurrent lookups for one caller's watches; for all watches twice as many. */
const MAX_LOOKUPS_PER_CALLER = 8;

export interface WatchLookups extends Pick<FollowerDeps<unknown>, "findAll" | "refresh"> {
  /** Runs other work of followers within the same limits. */
  run<T>(network: Network, caller: string, work: (context: LookupContext) => T | Promise<T>): Promise<T>;
}

/** Creates the lookups of followers. They share the status cache, its budgets and its limits with the other operations. */
export function createWatchLookups(options: WatchLookupsOptions): WatchLookups {
  const { chains, statusCache, closing, timeoutMs, now } = options;
  const semaphore = createFairSemaphore(MAX_LOOKUPS_PER_CALLER);

  function run<T>(network: Network, caller: string, lookup: (context: LookupContext) => T | Promise<T>): Promise<T> {
    return semaphore.acquire(caller, closing, async () => {
      const deadline = now() + timeoutMs;
      const remainingMs = (): number => deadline - now();
      return lookup({ network, chains: chains.forNetwork(network.slug), caller, signal: closing, remainingMs });
    });
  }

  return {
    run,
    async findAll(target, caller) {
      const { network, kind, value } = target;
      const find = (query: TransferQuery) => run(network, caller, (context) => statusCache.find(query, context));
      const first = await find(toTransferQuery(target));
      if (first === undefined) return [];
      if (kind === "id") return [first];
      const otherIds = first.otherTransferIds.slice(0, MAX_TRANSFERS_PER_TRANSACTION - 1);
      const others = await Promise.all(otherIds.map((transferId) => find({ transactionHash: value, transferId })));
      return [first, ...others.filter((status): status is TransferStatus => status !== undefined)];
    },
    refresh: (network, query, caller) => run(network, caller, (context) => statusCache.refresh(query, context)),
  };
}
