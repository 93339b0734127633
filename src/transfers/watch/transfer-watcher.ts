import { ServiceError } from "../../errors.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { ScheduledJob, Scheduler } from "../../resilience/scheduler.js";
import { AccountWatch, type AccountWatchRequest } from "./account-watch.js";
import type { ChangeHistory } from "./change-history.js";
import { type Followers, formatTarget } from "./followers.js";
import { computeQueryDigest } from "./resume-token.js";
import { TransferWatch, type TransferWatchRequest } from "./transfer-watch.js";
import type {
  WatchEventKind,
  WatchLifecycle,
  WatchLifecycleOptions,
  WatchSink,
  WatchTarget,
} from "./watch-lifecycle.js";
import type { WatchedAccounts } from "./watched-accounts.js";

export type WatchQuery = Omit<TransferWatchRequest, "queryDigest">;
export type AccountWatchQuery = Omit<AccountWatchRequest, "queryDigest" | "number">;

/** An open watch, as its stream sees it. */
export type OpenWatch = Pick<WatchLifecycle<unknown>, "onReady" | "onDrain" | "onEnd">;

/**
 * Targets of all watches together, each counted as often as it is watched: 500 bytes each. A caller may hold as many as it
 * leaves free.
 */
export const MAX_WATCHED_TARGETS = 100_000;
/** Time between two visits of the watches, in milliseconds: each that is not due costs a comparison. */
const TICK_MS = 250;
/** A watch is silent for at most 15 s: load balancers cut connections that are silent for longer. */
const MAX_SILENCE_MS = 14_500;
/** Share of the time that is left out at random, so that watches that began together neither speak nor end together. */
const SILENCE_JITTER = 0.03;
const LIFETIME_JITTER = 0.1;
/** Watches are long: a shorter time would only repeat the refusal. */
const RETRY_AFTER = { retryAfterSeconds: 5 } as const;

/** Opens watches of transfers and accounts, within the limits of the process and of each caller, and keeps them going. */
export class TransferWatcher<M> {
  readonly #options;
  readonly #open = new Set<WatchLifecycle<M>>();
  readonly #openByCaller = new Map<string, number>();
  readonly #targets = new FairQuota(() => MAX_WATCHED_TARGETS);
  #job: ScheduledJob | undefined = undefined;
  #created = 0;

  constructor(options: {
    readonly followers: Followers<M>;
    /** undefined: there is no index. */
    readonly accounts: WatchedAccounts<M> | undefined;
    /** What changes in the index, for followers and accounts. */
    readonly history: ChangeHistory;
    readonly scheduler: Scheduler;
    /** Longest life of a watch, in milliseconds. */
    readonly maxLifetimeMs: number;
    /** Open watches, of all callers together and of one; 0: no limit. */
    readonly maxWatches: number;
    readonly maxWatchesPerCaller: number;
    /** Returns a number from 0 to 1. */
    readonly random: () => number;
    readonly onEvent: (kind: WatchEventKind) => void;
  }) {
    this.#options = options;
  }

  /**
   * Opens a watch. Its `onEnd` has to be called once, however it ends.
   * @throws ServiceError INVALID_PARAMETER for a bad resume token; OVERLOADED or RATE_LIMITED when too much is watched
   */
  open(query: WatchQuery, sink: WatchSink<M>): OpenWatch {
    const { caller, likelySource, resumeToken } = query;
    const { followers } = this.#options;
    // Equal watches have equal resume tokens: each target counts once, in the order of their texts.
    const byText = new Map(query.targets.map((target) => [formatTarget(target), target]));
    const texts = [...byText.keys()].sort();
    const targets = texts.map((text) => byText.get(text) as WatchTarget);
    const request = { targets, queryDigest: computeQueryDigest(texts), resumeToken, likelySource, caller };
    return this.#start(caller, targets.length, (options) => new TransferWatch(request, sink, followers, options));
  }

  /**
   * Opens a watch of an account, as `open`.
   * @throws ServiceError INDEX_REQUIRED without an index of the network, and as `open`
   */
  openAccount(query: AccountWatchQuery, sink: WatchSink<M>): OpenWatch {
    const { network, account, isFull, caller } = query;
    const { accounts } = this.#options;
    if (accounts === undefined || !accounts.isIndexed(network))
      throw new ServiceError("INDEX_REQUIRED", `this server has no index of transfers on ${network.slug}`);
    const queryDigest = computeQueryDigest([`${network.slug} ${isFull ? "FULL" : "BASIC"} account ${account}`]);
    const request = { ...query, queryDigest, number: this.#created++ };
    return this.#start(caller, 1, (options) => new AccountWatch(request, sink, accounts, options));
  }

  /** Counts the open watches, the distinct targets, those among them that nobody knows, and the distinct accounts. */
  counts() {
    const { followers, accounts } = this.#options;
    return { watches: this.#open.size, accounts: accounts?.size ?? 0, ...followers.counts() };
  }

  close(): void {
    this.#job?.stop();
    this.#options.history.close();
    this.#options.followers.close();
  }

  /** Creates and starts a watch within the limits. */
  #start(
    caller: string,
    targetCount: number,
    create: (options: WatchLifecycleOptions) => WatchLifecycle<M>,
  ): OpenWatch {
    this.#assertSpace(caller);
    const releaseTargets = this.#acquireTargets(caller, targetCount);
    const { maxLifetimeMs, followers, history, onEvent } = this.#options;
    let watch: WatchLifecycle<M> | undefined;
    const options = {
      lifetimeMs: this.#withJitter(maxLifetimeMs, LIFETIME_JITTER),
      bookmarkMs: this.#withJitter(MAX_SILENCE_MS, SILENCE_JITTER),
      now: followers.now,
      onEvent,
      onClose: () => {
        releaseTargets();
        if (watch !== undefined) this.#remove(caller, watch);
      },
    };
    try {
      watch = create(options);
      this.#add(caller, watch);
      history.start();
      watch.start();
      return watch;
    } catch (error) {
      if (watch === undefined) releaseTargets();
      else watch.onEnd();
      throw error;
    }
  }

  #add(caller: string, watch: WatchLifecycle<M>): void {
    this.#open.add(watch);
    this.#openByCaller.set(caller, this.#countOpen(caller) + 1);
    this.#job ??= this.#options.scheduler.every("watches", TICK_MS, () => this.#tick());
  }

  #remove(caller: string, watch: WatchLifecycle<M>): void {
    this.#open.delete(watch);
    const left = this.#countOpen(caller) - 1;
    if (left > 0) this.#openByCaller.set(caller, left);
    else this.#openByCaller.delete(caller);
    if (this.#open.size > 0) return;
    this.#job?.stop();
    this.#job = undefined;
  }

  #tick(): void {
    const now = this.#options.followers.now();
    for (const watch of this.#open) if (now >= watch.dueAt) watch.visit(now);
  }

  #countOpen(caller: string): number {
    return this.#openByCaller.get(caller) ?? 0;
  }

  /** @throws ServiceError OVERLOADED or RATE_LIMITED */
  #assertSpace(caller: string): void {
    const { maxWatches, maxWatchesPerCaller } = this.#options;
    if (maxWatches > 0 && this.#open.size >= maxWatches)
      throw new ServiceError("OVERLOADED", "too many watches are open here", RETRY_AFTER);
    if (maxWatchesPerCaller > 0 && this.#countOpen(caller) >= maxWatchesPerCaller)
      throw new ServiceError("RATE_LIMITED", "too many watches are open from this address", RETRY_AFTER);
  }

  #acquireTargets(caller: string, count: number): () => void {
    const release = this.#targets.tryAcquire(caller, count);
    if (release !== undefined) return release;
    const hasSpace = this.#targets.heldCount() + count <= MAX_WATCHED_TARGETS;
    if (hasSpace)
      throw new ServiceError("RATE_LIMITED", "too many transfers are watched from this address", RETRY_AFTER);
    throw new ServiceError("OVERLOADED", "too many transfers are watched here", RETRY_AFTER);
  }

  #withJitter(ms: number, share: number): number {
    return ms * (1 - share * this.#options.random());
  }
}
