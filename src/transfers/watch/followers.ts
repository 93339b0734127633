import type { NetworkChainClients } from "../../chain/chains.js";
import { ServiceError } from "../../errors.js";
import { ContractRegistry } from "../../hop/contract-registry.js";
import type { Network } from "../../hop/networks.js";
import { FairQuota } from "../../resilience/fair-quota.js";
import type { ScheduledJob, Scheduler } from "../../resilience/scheduler.js";
import type { Waiters } from "../../resilience/waiters.js";
import type { ChangedTransfer } from "../index/change-feed.js";
import { ChainPoller, type Probe } from "./chain-poller.js";
import type { IndexChangeListener } from "./change-history.js";
import { Follower, type FollowerContext, type FollowerObserver } from "./follower.js";
import type { WatchTarget } from "./watch-lifecycle.js";

/** Targets that are followed at the same time; one caller may bring at most half of them. */
export const MAX_FOLLOWED = 20_000;
/** Targets among them that nobody knows. */
export const MAX_UNKNOWN = 1_000;
const VISIT_INTERVAL_MS = 1_000;

/** The followers of this process: one for each target, however many watch it. */
export class Followers<M> implements FollowerContext<M>, IndexChangeListener {
  readonly now: () => number;
  readonly wallNow: () => number;
  readonly lookups: FollowerContext<M>["lookups"];
  readonly #options;
  readonly #followers = new Map<string, { readonly follower: Follower<M>; readonly release: () => void }>();
  readonly #followed = new FairQuota(() => MAX_FOLLOWED);
  readonly #unknown = new FairQuota(() => MAX_UNKNOWN);
  readonly #pollers = new Map<string, ChainPoller>();
  readonly #contracts = new Map<Network, ContractRegistry>();
  #job: ScheduledJob | undefined = undefined;

  constructor(options: {
    /** Monotonic clock, in milliseconds. */
    readonly now: () => number;
    /** Milliseconds since 1970. */
    readonly wallNow: () => number;
    readonly lookups: FollowerContext<M>["lookups"];
    readonly scheduler: Scheduler;
    readonly getChains: (network: Network) => NetworkChainClients;
    /** The network whose transfers the index has. */
    readonly indexedNetwork: Network;
    readonly onPoll: (network: string, chain: string, outcome: "ok" | "failed") => void;
  }) {
    this.#options = options;
    this.now = options.now;
    this.wallNow = options.wallNow;
    this.lookups = options.lookups;
  }

  /**
   * Observes the follower of a target until `release`. It is new if nobody else watches the target.
   * @param likelySource slug of the chain on which it probably was sent; empty: unknown
   * @throws ServiceError OVERLOADED when too many targets are followed
   */
  acquire(
    target: WatchTarget,
    { caller, likelySource }: { readonly caller: string; readonly likelySource: string },
    observer: FollowerObserver<M>,
  ): Follower<M> {
    const key = formatTarget(target);
    const existing = this.#followers.get(key)?.follower;
    existing?.join(observer, caller);
    if (existing !== undefined) return existing;
    const release = this.#followed.tryAcquire(caller);
    if (release === undefined)
      throw new ServiceError("OVERLOADED", "too many transfers are watched here", { retryAfterSeconds: 5 });
    this.#job ??= this.#options.scheduler.every("followers", VISIT_INTERVAL_MS, () => this.#visitAll());
    const follower = new Follower(target, likelySource, this);
    this.#followers.set(key, { follower, release });
    follower.join(observer, caller);
    void follower.search();
    return follower;
  }

  release(follower: Follower<M>, caller: string, observer: FollowerObserver<M>): void {
    if (follower.leave(observer, caller)) return;
    const key = formatTarget(follower.target);
    const entry = this.#followers.get(key);
    if (entry?.follower !== follower) return;
    this.#followers.delete(key);
    follower.close();
    entry.release();
    if (this.#followers.size > 0) return;
    this.#job?.stop();
    this.#job = undefined;
  }

  onChange({ transferId, transactionHash, deliveryHash }: ChangedTransfer): void {
    const network = this.#options.indexedNetwork;
    for (const value of new Set([transferId, transactionHash, deliveryHash ?? transactionHash])) {
      for (const kind of ["id", "hash"] as const) {
        for (const isFull of [false, true]) {
          this.#followers.get(formatTarget({ network, kind, value, isFull }))?.follower.onIndexChange();
        }
      }
    }
  }

  onGap(): void {
    for (const { follower } of this.#followers.values()) follower.onIndexChange();
  }

  counts(): { readonly followed: number; readonly unknown: number } {
    return { followed: this.#followers.size, unknown: this.#unknown.heldCount() };
  }

  close(): void {
    this.#job?.stop();
    for (const { follower } of this.#followers.values()) follower.close();
  }

  acquireUnknown(waiters: Waiters): (() => void) | undefined {
    return this.#unknown.tryAcquire(waiters);
  }

  getContracts(network: Network): ContractRegistry {
    const contracts = this.#contracts.get(network) ?? new ContractRegistry(network);
    this.#contracts.set(network, contracts);
    return contracts;
  }

  addProbe(network: Network, probe: Probe): void {
    this.#getPoller(network, probe).add(probe);
  }

  removeProbe(network: Network, probe: Probe): void {
    this.#getPoller(network, probe).remove(probe);
  }

  #visitAll(): void {
    const now = this.now();
    for (const { follower } of this.#followers.values()) follower.visit(now);
  }

  #getPoller(network: Network, { chain }: Probe): ChainPoller {
    const key = `${network.slug} ${chain.slug}`;
    let poller = this.#pollers.get(key);
    if (poller === undefined) {
      const { getChains, scheduler, onPoll } = this.#options;
      const client = getChains(network).getClient(chain.slug);
      poller = new ChainPoller({
        chain,
        client,
        scheduler,
        now: this.now,
        onPoll: (outcome) => onPoll(network.slug, chain.slug, outcome),
      });
      this.#pollers.set(key, poller);
    }
    return poller;
  }
}

/** Returns a text that equal targets share. */
export function formatTarget({ network, kind, value, isFull }: WatchTarget): string {
  return `${network.slug} ${isFull ? "FULL" : "BASIC"} ${kind} ${value}`;
}
