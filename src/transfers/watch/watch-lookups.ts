import type { ChainClients } from "../../chain/chains.js";
import type { Chain, Network } from "../../hop/networks.js";
import { FairSemaphore } from "../../resilience/fair-semaphore.js";
import type { MaybePromise } from "../../resilience/maybe-async.js";
import type { Waiters } from "../../resilience/waiters.js";
import type { LookupContext, TransferQuery } from "../sources/transfer-source.js";
import type { TransferStatus } from "../status.js";
import type { StatusCache } from "../status-cache.js";
import type { Presented } from "./followed-transfer.js";
import type { WatchTarget } from "./watch-lifecycle.js";

/** Transfers of one transaction that are watched; the others are left out. */
export const MAX_TRANSFERS_PER_TRANSACTION = 100;
/** Concurrent lookups for one caller's watches; for all watches twice as many. */
const MAX_LOOKUPS_PER_CALLER = 8;

/** The lookups of watches. They share the status cache, its budgets and its limits with the other operations. */
export class WatchLookups<M> {
  readonly isFinal;
  readonly #options;
  readonly #semaphore = new FairSemaphore(MAX_LOOKUPS_PER_CALLER);

  constructor(options: {
    /** Returns whether a block is final. Never rejects. */
    readonly isFinal: (
      network: Network,
      chain: Chain,
      block: { readonly number: number; readonly timestamp?: number },
    ) => Promise<boolean>;
    readonly chains: Pick<ChainClients, "forNetwork">;
    readonly statusCache: Pick<StatusCache, "findNow" | "refresh">;
    readonly present: (status: TransferStatus, isFull: boolean, context: LookupContext) => MaybePromise<Presented<M>>;
    /**
     * Resolves, not at once, when what these callers have sent is read. Where many streams are reset at once, a turn comes as
     * the one before it leaves: its callers may be the next to leave.
     */
    readonly untilRead: (callers: Iterable<string>) => Promise<void>;
    /** Longest time of a lookup, in milliseconds. */
    readonly timeoutMs: number;
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
  }) {
    this.#options = options;
    this.isFinal = options.isFinal;
  }

  /**
   * Returns the statuses of a target's transfers; none when nobody knows the target.
   * @throws ServiceError as TransferSource.resolve
   */
  async findAll(target: WatchTarget, waiters: Waiters): Promise<readonly TransferStatus[]> {
    const { network, kind, value } = target;
    const find = (query: TransferQuery) =>
      this.#run(network, waiters, (context) => this.#options.statusCache.findNow(query, context));
    if (kind === "id") {
      const status = await find({ transferId: value, transactionHash: undefined });
      return status === undefined ? [] : [status];
    }
    const first = await find({ transferId: undefined, transactionHash: value });
    if (first === undefined) return [];
    const otherIds = first.otherTransferIds.slice(0, MAX_TRANSFERS_PER_TRANSACTION - 1);
    const others = await Promise.all(otherIds.map((transferId) => find({ transactionHash: value, transferId })));
    return [first, ...others.filter((status) => status !== undefined)];
  }

  refresh(network: Network, query: TransferQuery, waiters: Waiters): Promise<TransferStatus | undefined> {
    return this.#run(network, waiters, (context) => this.#options.statusCache.refresh(query, context));
  }

  present(
    status: TransferStatus,
    view: Pick<WatchTarget, "network" | "isFull">,
    waiters: Waiters,
  ): Promise<Presented<M>> {
    return this.#run(view.network, waiters, (context) => this.#options.present(status, view.isFull, context));
  }

  /** Does work of followers in the first turn that comes to one of the callers. */
  #run<T>(network: Network, waiters: Waiters, work: (context: LookupContext) => MaybePromise<T>): Promise<T> {
    const { signal } = waiters;
    return this.#semaphore.acquire(waiters, signal, async (caller) => {
      const { chains, untilRead, timeoutMs, now } = this.#options;
      await untilRead(waiters);
      signal.throwIfAborted();
      const deadline = now() + timeoutMs;
      const remainingMs = (): number => deadline - now();
      const access = { chains: chains.forNetwork(network.slug), isPrivate: false };
      return work({ network, ...access, caller, waiters, signal, remainingMs });
    });
  }
}
