import type { RedisConnection } from "./protocol/connection.js";
import type { Signer } from "./signing.js";

/** Token buckets that replicas empty together. */
export interface SharedBuckets {
  /**
   * Takes tokens from the buckets and returns how many are missing in each then, at most as many as it holds. Buckets of
   * which Redis says nothing in time are absent. Never rejects.
   * @param spent tokens by name of the bucket
   */
  take(rate: SharedBucketRate, spent: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>;
}

export interface SharedBucketRate {
  /** Tells the buckets of different rates apart. */
  readonly kind: string;
  readonly capacity: number;
  readonly refillPerSecond: number;
}

/** Nobody waits for it. */
const TAKE_TIMEOUT_MS = 200;

/**
 * Keeps the time at which the bucket is full again (the generic cell rate algorithm, ITU-T I.371), on the clock of Redis, in
 * microseconds. Returns how long that is from now, at most as long as an empty bucket takes.
 */
const TAKE_SCRIPT = `
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
local most = tonumber(ARGV[2])
local stored = redis.pcall('get', KEYS[1])
local full = type(stored) == 'string' and tonumber(stored) or now
if not (full >= now and full <= now + most) then full = now end
full = math.min(full + tonumber(ARGV[1]), now + most)
redis.call('set', KEYS[1], string.format('%.0f', full), 'PX', math.ceil(most / 1000))
return math.floor(full - now)`;

/** @param prefix start of the names of all keys; the same for all versions of the service */
export function createSharedBuckets(connection: RedisConnection, signer: Signer, prefix: string): SharedBuckets {
  return {
    async take({ kind, capacity, refillPerSecond }, spent) {
      const microsPerToken = 1e6 / refillPerSecond;
      const missing = new Map<string, number>();
      const takeOne = async ([name, tokens]: readonly [string, number]): Promise<void> => {
        const key = `${prefix}bucket:${kind}:${signer.pseudonymize(name)}`;
        const micros = [tokens, capacity].map((count) => String(Math.ceil(count * microsPerToken)));
        const reply = await connection.call(["EVAL", TAKE_SCRIPT, "1", key, ...micros], TAKE_TIMEOUT_MS);
        const tokensMissing = typeof reply === "number" ? reply / microsPerToken : Number.NaN;
        if (tokensMissing >= 0) missing.set(name, Math.min(tokensMissing, capacity));
      };
      await Promise.all([...spent].map(takeOne));
      return missing;
    },
  };
}
