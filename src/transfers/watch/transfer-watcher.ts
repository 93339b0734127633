import { ServiceError } from "../../errors.js";
import { createFairQuota } from "../../resilience/fair-quota.js";
import type { AccountQuery } from "./account/account-states.js";
import type { AccountWatches } from "./account/account-watches.js";
import type { Followers } from "./following/followers.js";
import { computeQueryDigest } from "./resume-token.js";
import { TransferWatch } from "./transfer-watch.js";
import { createWatchClock } from "./watch-clock.js";
import type { WatchEventKind, WatchSink, WatchTimes } from "./watch-lifecycle.js";
import { getTargetKey, toCanonicalTargets, type WatchTarget } from "./watch-target.js";

/** Opens watches of transfers. */
export interface TransferWatcher<M> {
  /**
   * Opens a watch. Its `onEnd` has to be called once, however it ends.
   * @throws ServiceError INVALID_PARAMETER for a bad resume token; OVERLOADED or RATE_LIMITED when too much is watched
   */
  open(query: WatchQuery, sink: WatchSink<M>): OpenWatch;
  /**
   * Opens a watch of an account, as `open`.
   * @throws ServiceError INDEX_REQUIRED without an index of the network, and as `open`
   */
  openAccount(query: AccountWatchQuery, sink: WatchSink<M>): OpenWatch;
  counts(): WatchCounts;
  close(): void;
}

export interface WatchQuery {
  /** At least one. */
  readonly targets: readonly WatchTarget[];
  /** Empty: a new watch. */
  readonly resumeToken: string;
  /** Slug of the chain on which the transfers probably were sent; empty: unknown. */
  readonly likelySource: string;
  readonly caller: string;
}

export interface AccountWatchQuery extends AccountQuery {
  /** Empty: a new watch. */
  readonly resumeToken: string;
}

/** An open watch, as its stream sees it. */
export interface OpenWatch {
  onReady(): void;
  onDrain(): void;
  onEnd(): void;
}

export interface WatchCounts {
  readonly watches: number;
  /** Distinct targets, and those among them that nobody knows. */
  readonly followed: number;
  readonly unknown: number;
  /** Distinct accounts. */
  readonly accounts: number;
}

export interface TransferWatcherOptions<M> {
  readonly followers: Followers<M>;
  /** undefined: there is no index. */
  readonly accounts: AccountWatches<M> | undefined;
  /** Longest life of a watch, in milliseconds. */
  readonly maxLifetimeMs: number;
  /** Open watches, of all callers together and of one; 0: no limit. */
  readonly maxWatches: number;
  readonly maxWatchesPerCaller: number;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Milliseconds since 1970. */
  readonly wallNow: () => number;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly onEvent: (kind: WatchEventKind) => void;
}

/**
 * Targets of all watches together, each counted as often as it is watched: 500 bytes each. A caller may hold as many as it
 * leaves free.
 */
export const MAX_WATCHED_TARGETS = 100_000;
/** A watch is silent for at most 15 s: load balancers cut connections that are silent for longer. */
const MAX_SILENCE_MS = 14_500;
/** Share of the time that is left out at random, so that watches that began together neither speak nor end together. */
const SILENCE_JITTER = 0.03;
const LIFETIME_JITTER = 0.1;
/** Watches are long: a shorter time would only repeat the refusal. */
const RETRY_AFTER_SECONDS = 5;

export function createTransferWatcher<M>(options: TransferWatcherOptions<M>): TransferWatcher<M> {
  const { followers, accounts, maxLifetimeMs, now, wallNow, random, onEvent } = options;
  const clock = createWatchClock(now);
  const watched = createFairQuota(() => MAX_WATCHED_TARGETS);
  const openWatches = createOpenWatches(options);

  function withJitter(ms: number, share: number): number {
    return ms * (1 - share * random());
  }

  function acquireTargets(caller: string, count: number): () => void {
    const release = watched.tryAcquire(caller, count);
    if (release !== undefined) return release;
    const hasSpace = watched.heldCount() + count <= MAX_WATCHED_TARGETS;
    const message = hasSpace
      ? "too many transfers are watched from this address"
      : "too many transfers are watched here";
    const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    throw new ServiceError(hasSpace ? "RATE_LIMITED" : "OVERLOADED", message, options);
  }

  /** Creates and starts a watch within the limits of the process and of its caller. */
  function start<W extends OpenWatch & { start(): void }>(
    caller: string,
    targets: number,
    create: (times: WatchTimes, onClose: () => void) => W,
  ): W {
    const releaseWatch = openWatches.acquire(caller);
    let releaseTargets: () => void;
    try {
      releaseTargets = acquireTargets(caller, targets);
    } catch (error) {
      releaseWatch();
      throw error;
    }
    const times = {
      lifetimeMs: withJitter(maxLifetimeMs, LIFETIME_JITTER),
      bookmarkMs: withJitter(MAX_SILENCE_MS, SILENCE_JITTER),
    };
    let watch: W | undefined;
    const onClose = (): void => {
      releaseTargets();
      releaseWatch();
    };
    try {
      watch = create(times, onClose);
      watch.start();
      return watch;
    } catch (error) {
      if (watch === undefined) onClose();
      else watch.onEnd();
      throw error;
    }
  }

  return {
    open({ targets: givenTargets, ...query }, sink) {
      const targets = toCanonicalTargets(givenTargets);
      const queryDigest = computeQueryDigest(targets.map(getTargetKey));
      return start(query.caller, targets.length, (times, onClose) => {
        const request = { ...query, targets, queryDigest, ...times };
        return new TransferWatch(request, sink, { followers, clock, now, wallNow, onEvent, onClose });
      });
    },
    openAccount(query, sink) {
      const { slug } = query.network;
      if (accounts === undefined || !accounts.isIndexed(query.network))
        throw new ServiceError("INDEX_REQUIRED", `this server has no index of transfers on ${slug}`);
      return start(query.caller, 1, (times, onClose) =>
        accounts.create({ ...query, ...times }, sink, { clock, onClose }),
      );
    },
    counts: () => ({ watches: openWatches.count(), accounts: accounts?.count() ?? 0, ...followers.counts() }),
    close() {
      clock.close();
      followers.close();
      accounts?.close();
    },
  };
}

/** Counts open watches against their limits, of the process and of each caller. */
function createOpenWatches(limits: Pick<TransferWatcherOptions<unknown>, "maxWatches" | "maxWatchesPerCaller">) {
  const { maxWatches, maxWatchesPerCaller } = limits;
  const openByCaller = new Map<string, number>();
  let total = 0;
  return {
    count: () => total,
    /** Takes a place and returns the function that releases it. @throws ServiceError OVERLOADED or RATE_LIMITED. */
    acquire(caller: string): () => void {
      const open = openByCaller.get(caller) ?? 0;
      const options = { retryAfterSeconds: RETRY_AFTER_SECONDS };
      if (maxWatches > 0 && total >= maxWatches)
        throw new ServiceError("OVERLOADED", "too many watches are open here", options);
      if (maxWatchesPerCaller > 0 && open >= maxWatchesPerCaller)
        throw new ServiceError("RATE_LIMITED", "too many watches are open from this address", options);
      total += 1;
      openByCaller.set(caller, open + 1);
      return () => {
        total -= 1;
        const left = (openByCaller.get(caller) ?? 1) - 1;
        if (left > 0) openByCaller.set(caller, left);
        else openByCaller.delete(caller);
      };
    },
  };
}
