import { LRUCache } from "lru-cache";
import { ServiceError } from "../../../errors.js";
import type { Network } from "../../../hop/networks.js";
import { createFairQuota } from "../../../resilience/fair-quota.js";
import type { IndexChangeFeed } from "../../index/store/changes/index-changes.js";
import { computeQueryDigest } from "../resume-token.js";
import type { WatchClock } from "../watch-clock.js";
import type { WatchEventKind, WatchSink } from "../watch-lifecycle.js";
import { type AccountQuery, type AccountStatesOptions, createAccountStates } from "./account-states.js";
import { AccountWatch, type AccountWatchRequest } from "./account-watch.js";
import { createChangeHistory } from "./change-history.js";

/** The watches of accounts of this process. */
export interface AccountWatches<M> {
  /** Returns whether the transfers of a network are indexed. */
  isIndexed(network: Network): boolean;
  /** @throws ServiceError INVALID_PARAMETER for a bad resume token */
  create(request: AccountWatchStart, sink: WatchSink<M>, deps: AccountWatchStartDeps): AccountWatch<M>;
  /** Returns the number of distinct accounts that are watched. */
  count(): number;
  close(): void;
}

export type AccountWatchStart = Omit<AccountWatchRequest, "number" | "queryDigest">;

export interface AccountWatchStartDeps {
  readonly clock: WatchClock;
  /** Called once when the watch has ended. */
  readonly onClose: () => void;
}

export interface AccountWatchesOptions<M>
  extends Pick<AccountStatesOptions<M>, "listTransfers" | "findTransfers" | "present" | "now"> {
  readonly isIndexed: (network: Network) => boolean;
  /** Returns undefined while the index is not open. */
  readonly getFeed: () => IndexChangeFeed | undefined;
  readonly onEvent: (kind: WatchEventKind) => void;
}

/** Present states that slow readers have not got yet, of all watches together: 250 bytes each. One caller takes half of them. */
export const MAX_UNSENT_STATES = 100_000;
/** Fingerprints of transfers that can still change, of all watches together: 100 bytes each. */
const MAX_SENT = 100_000;

export function createAccountWatches<M>(options: AccountWatchesOptions<M>): AccountWatches<M> {
  const { isIndexed, getFeed, onEvent, now } = options;
  const watchesByAccount = new Map<string, Set<AccountWatch<M>>>();
  const sent = new LRUCache<number, number>({ max: MAX_SENT });
  const unsent = createFairQuota(() => MAX_UNSENT_STATES);
  let created = 0;

  const history = createChangeHistory({
    getFeed,
    onChange: (change) => states.onChange(change),
    onNews(accounts) {
      for (const account of accounts ?? [...watchesByAccount.keys()]) {
        for (const watch of [...(watchesByAccount.get(account) ?? [])]) watch.onNews();
      }
    },
  });
  const states = createAccountStates({ ...options, history });

  function acquireSnapshot(caller: string, count: number): () => void {
    if (count === 0) return () => {};
    const release = unsent.tryAcquire(caller, count);
    if (release !== undefined) return release;
    throw new ServiceError("OVERLOADED", "too many transfers are watched here", { retryAfterSeconds: 5 });
  }

  function remove(account: string, watch: AccountWatch<M>): void {
    const watches = watchesByAccount.get(account);
    watches?.delete(watch);
    if (watches?.size === 0) watchesByAccount.delete(account);
  }

  return {
    isIndexed,
    create(start, sink, { clock, onClose }) {
      history.start();
      const request = { ...start, number: created++, queryDigest: computeQueryDigest([describeQuery(start)]) };
      const watch = new AccountWatch<M>(request, sink, {
        ...{ history, states, sent, clock, now, acquireSnapshot, onEvent },
        onClose() {
          remove(start.account, watch);
          onClose();
        },
      });
      const watches = watchesByAccount.get(start.account) ?? new Set();
      watchesByAccount.set(start.account, watches.add(watch));
      return watch;
    },
    count: () => watchesByAccount.size,
    close: () => history.close(),
  };
}

function describeQuery({ network, account, isFull }: Omit<AccountQuery, "caller">): string {
  return `${network.slug} ${isFull ? "FULL" : "BASIC"} account ${account}`;
}
