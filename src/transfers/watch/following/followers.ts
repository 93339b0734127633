import type { NetworkChainClients } from "../../../chain/chains.js";
import { ServiceError } from "../../../errors.js";
import { type ContractRegistry, createContractRegistry } from "../../../hop/contract-registry.js";
import type { Network } from "../../../hop/networks.js";
import { createFairQuota } from "../../../resilience/fair-quota.js";
import { type ChainPoller, createChainPoller, type Probe } from "../polling/chain-poller.js";
import { getTargetKey, type WatchTarget } from "../watch-target.js";
import { Follower, type FollowerObserver } from "./follower.js";
import type { FollowerDeps } from "./follower-deps.js";

/** The followers of this process: one for each target, however many watch it. */
export interface Followers<M> {
  /**
   * Observes the follower of a target until `release`. It is new if nobody else watches the target.
   * @throws ServiceError OVERLOADED when too many targets are followed
   */
  acquire(target: WatchTarget, options: FollowOptions, observer: FollowerObserver<M>): Follower<M>;
  release(follower: Follower<M>, observer: FollowerObserver<M>): void;
  /** Tells the followers of IDs and hashes, in lower case, that the index has news of them. */
  onIndexChange(network: Network, idsAndHashes: Iterable<string>): void;
  /** Tells all followers that the index has news which were missed. */
  onIndexGap(): void;
  counts(): { readonly followed: number; readonly unknown: number };
  close(): void;
}

export interface FollowOptions {
  readonly caller: string;
  /** Slug of the chain on which it probably was sent; empty: unknown. */
  readonly likelySource: string;
}

export interface FollowersOptions<M>
  extends Pick<FollowerDeps<M>, "findAll" | "refresh" | "present" | "isFinal" | "now" | "wallNow"> {
  readonly getChains: (network: Network) => NetworkChainClients;
  readonly onPoll: (network: string, chain: string, outcome: "ok" | "failed") => void;
}

/** Targets that are followed at the same time; one caller may bring at most half of them. */
export const MAX_FOLLOWED = 20_000;
/** Targets among them that nobody knows. */
export const MAX_UNKNOWN = 1_000;
const TICK_MS = 1_000;

export function createFollowers<M>(options: FollowersOptions<M>): Followers<M> {
  const { getChains, onPoll, ...shared } = options;
  const followers = new Map<string, { readonly follower: Follower<M>; readonly release: () => void }>();
  const followed = createFairQuota(() => MAX_FOLLOWED);
  const unknown = createFairQuota(() => MAX_UNKNOWN);
  const pollers = new Map<string, ChainPoller>();
  const registries = new Map<Network, ContractRegistry>();
  let timer: NodeJS.Timeout | undefined;

  function getContracts(network: Network): ContractRegistry {
    const registry = registries.get(network) ?? createContractRegistry(network);
    registries.set(network, registry);
    return registry;
  }

  function getPoller(network: Network, { chain }: Probe): ChainPoller {
    const key = `${network.slug} ${chain.slug}`;
    let poller = pollers.get(key);
    if (poller === undefined) {
      const client = getChains(network).getClient(chain.slug);
      const { slug } = chain;
      poller = createChainPoller({
        chain,
        client,
        now: options.now,
        onPoll: (outcome) => onPoll(network.slug, slug, outcome),
      });
      pollers.set(key, poller);
    }
    return poller;
  }

  const deps: FollowerDeps<M> = {
    ...shared,
    getContracts,
    acquireUnknown: (caller) => unknown.tryAcquire(caller),
    addProbe: (network, probe) => getPoller(network, probe).add(probe),
    removeProbe: (network, probe) => getPoller(network, probe).remove(probe),
  };

  function tick(): void {
    for (const { follower } of followers.values()) follower.onTick();
  }

  function add(key: string, target: WatchTarget, { caller, likelySource }: FollowOptions): Follower<M> {
    const release = followed.tryAcquire(caller);
    if (release === undefined)
      throw new ServiceError("OVERLOADED", "too many transfers are watched here", { retryAfterSeconds: 5 });
    const follower = new Follower(target, likelySource, caller, deps);
    followers.set(key, { follower, release });
    timer ??= setInterval(tick, TICK_MS);
    return follower;
  }

  return {
    acquire(target, followOptions, observer) {
      const key = getTargetKey(target);
      const existing = followers.get(key)?.follower;
      const follower = existing ?? add(key, target, followOptions);
      follower.observers.add(observer);
      if (existing === undefined) void follower.search();
      return follower;
    },
    release(follower, observer) {
      follower.observers.delete(observer);
      if (follower.observers.size > 0) return;
      const key = getTargetKey(follower.target);
      const entry = followers.get(key);
      if (entry?.follower !== follower) return;
      followers.delete(key);
      follower.close();
      entry.release();
      if (followers.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
    onIndexChange(network, idsAndHashes) {
      for (const value of idsAndHashes) {
        for (const kind of ["id", "hash"] as const) {
          for (const isFull of [false, true]) {
            followers.get(getTargetKey({ network, kind, value, isFull }))?.follower.onIndexChange();
          }
        }
      }
    },
    onIndexGap() {
      for (const { follower } of followers.values()) follower.onIndexChange();
    },
    counts: () => ({ followed: followers.size, unknown: unknown.heldCount() }),
    close() {
      clearInterval(timer);
      for (const poller of pollers.values()) poller.close();
      for (const { follower } of followers.values()) follower.close();
    },
  };
}
