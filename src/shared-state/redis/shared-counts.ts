import type { RedisConnection } from "./protocol/connection.js";
import type { Signer } from "./signing.js";

/** Counts per caller and window of time, over all replicas. */
export interface SharedCounts {
  /**
   * Adds points to a caller's count; a window begins with its first.
   * @throws Error if Redis does not count within 5 ms
   */
  increment(caller: string, points: number, windowMs: number): Promise<SharedCount>;
}

export interface SharedCount {
  readonly count: number;
  /** Time until the window ends, in milliseconds. */
  readonly msLeft: number;
}

/** Counts again from the start where something else than a count of this window is under the key. */
const INCREMENT_SCRIPT = `
redis.call('set', KEYS[1], 0, 'PX', ARGV[2], 'NX')
local count = redis.pcall('incrby', KEYS[1], ARGV[1])
local ttl = redis.call('pttl', KEYS[1])
if type(count) ~= 'number' or count < tonumber(ARGV[1]) or ttl < 0 or ttl > tonumber(ARGV[2]) then
  redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return {tonumber(ARGV[1]), tonumber(ARGV[2])}
end
return {count, ttl}`;

/** @param prefix start of the names of all keys; the same for all versions of the service */
export function createSharedCounts(connection: RedisConnection, signer: Signer, prefix: string): SharedCounts {
  return {
    async increment(caller, points, windowMs) {
      const key = `${prefix}count:${windowMs}:${signer.pseudonymize(caller)}`;
      const reply = await connection.call(["EVAL", INCREMENT_SCRIPT, "1", key, String(points), String(windowMs)]);
      const [count, msLeft] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
      const isCount = typeof count === "number" && Number.isSafeInteger(count) && count >= points;
      const isTime = typeof msLeft === "number" && msLeft >= 0 && msLeft <= windowMs;
      if (!isCount || !isTime) throw new Error("Redis did not count in time");
      return { count, msLeft: Math.max(1, msLeft) };
    },
  };
}
