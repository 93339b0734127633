import { monotonicNow } from "../../resilience/clock.js";
import type { SharedClock } from "../shared-state.js";
import { createRedisConnection, type DisconnectReason, type RedisConnectionStats } from "./protocol/connection.js";
import type { RedisTarget } from "./protocol/redis-url.js";
import { createRedisSharedState, type RedisSharedState } from "./redis-shared-state.js";
import { createSharedBuckets, type SharedBuckets } from "./shared-buckets.js";
import { createSharedCounts, type SharedCounts } from "./shared-counts.js";
import { createSigner, type RefusalReason } from "./signing.js";
import { createValueStore, type ValueStore } from "./value-store.js";

/** Everything that replicas share through one connection to Redis. */
export interface RedisServices {
  readonly sharedState: RedisSharedState;
  readonly counts: SharedCounts;
  readonly buckets: SharedBuckets;
  /** Final statuses of transfers. */
  readonly statuses: ValueStore;
  /** Counts a kept status that is not one. */
  onStatusRefused(): void;
  stats(): RedisStats;
  close(): Promise<void>;
}

export interface RedisStats extends RedisConnectionStats {
  /** The number of values that were refused, by reason. */
  readonly refused: Readonly<Record<RefusalReason, number>>;
}

export interface RedisServicesOptions {
  readonly target: RedisTarget;
  /** The replicas' common secret; undefined: the password of Redis. */
  readonly key: string | undefined;
  /** Version of the service. Other versions have other keys, apart from those of limits and budgets. */
  readonly version: string;
  readonly onStateChange: (isConnected: boolean, reason: DisconnectReason | undefined) => void;
}

/** Raised when limits or budgets are stored in another way. */
const COUNTS_VERSION = 1;
/** How long a final status is kept. */
const STATUS_TTL_MS = 30 * 60_000;

export function createRedisServices({ target, key, version, onStateChange }: RedisServicesOptions): RedisServices {
  const refused: Record<RefusalReason, number> = { oversized: 0, forged: 0, expired: 0, malformed: 0, fenced: 0 };
  const onRefused = (reason: RefusalReason): void => {
    refused[reason] += 1;
  };
  const signer = createSigner(key ?? target.password ?? "", Date.now);
  const connection = createRedisConnection({ target, now: monotonicNow, random: Math.random, onStateChange });
  const prefix = `hop-gateway:${version}:`;
  const countsPrefix = `hop-gateway:counts-${COUNTS_VERSION}:`;
  const shared = { connection, signer };
  const sharedState = createRedisSharedState({
    ...shared,
    ...{ prefix, onRefused, now: monotonicNow, clock: wallClock, random: Math.random },
  });
  return {
    sharedState,
    counts: createSharedCounts(connection, signer, countsPrefix),
    buckets: createSharedBuckets(connection, signer, countsPrefix),
    statuses: createValueStore({ ...shared, prefix: `${prefix}status:`, ttlMs: STATUS_TTL_MS, onRefused }),
    onStatusRefused: () => onRefused("malformed"),
    stats: () => ({ ...connection.stats(), refused: { ...refused } }),
    async close() {
      await sharedState.close();
      connection.close();
    },
  };
}

/**
 * Unix time, which machines have in common. Read at each conversion, so that processes agree again as soon as their clocks
 * do. States of a machine whose clock is more than two seconds ahead are refused.
 */
export const wallClock: SharedClock = {
  toShared: (monotonicMs) => monotonicMs + Date.now() - monotonicNow(),
  toMonotonic: (sharedMs) => sharedMs + monotonicNow() - Date.now(),
};
