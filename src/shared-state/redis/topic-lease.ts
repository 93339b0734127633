import type { RedisConnection } from "./protocol/connection.js";

/** The lease of a topic: who holds it reads the topic for all replicas. */
export interface TopicLease {
  /** Returns whether this process holds the lease. Becomes false by itself when it cannot be renewed. */
  isHeld(): boolean;
  /** Acquires or renews the lease. Resolves to whether it is held now and was not before. */
  claim(): Promise<boolean>;
  /** Returns the other member that holds the lease; undefined: this process holds it, or it is not known who does. */
  holder(): string | undefined;
  /** Gives the lease up. */
  release(): Promise<void>;
  /** Identifies one holding of the lease. Later holders have larger tokens. */
  token(): number;
  /** What Redis has under the key while this process holds the lease. */
  value(): string;
}

export interface TopicLeaseOptions {
  readonly connection: RedisConnection;
  readonly key: string;
  readonly memberId: string;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

export const LEASE_TTL_MS = 3_000;
/** How often a lease is renewed or, by the others, tried. */
export const LEASE_INTERVAL_MS = 1_000;
/** The holder stops this long before Redis lets the lease expire. */
const LEASE_MARGIN_MS = 500;
const CLAIM_TIMEOUT_MS = 500;

/**
 * Renews the lease of its holder; gives it to who asks if it is free, or not a lease. Its token is the time of Redis, which
 * still grows when Redis has lost all its data. Returns the holder and its token.
 */
const CLAIM_SCRIPT = `
local value, member, token = redis.pcall('get', KEYS[1])
if type(value) == 'string' then member, token = string.match(value, '^(%S+) (%d+)$') end
local ttl = redis.call('pttl', KEYS[1])
if not member or ttl < 0 or ttl > tonumber(ARGV[2]) then
  local time = redis.call('time')
  token = string.format('%d%03d', time[1], math.floor(time[2] / 1000))
  member = ARGV[1]
  redis.call('set', KEYS[1], member .. ' ' .. token, 'PX', ARGV[2])
elseif member == ARGV[1] then
  redis.call('pexpire', KEYS[1], ARGV[2])
end
return {member, tonumber(token)}`;

const RELEASE_SCRIPT = `
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`;

export function createTopicLease({ connection, key, memberId, now }: TopicLeaseOptions): TopicLease {
  const state = { token: 0, validUntil: Number.NEGATIVE_INFINITY };
  const other = { memberId: "", seenAt: Number.NEGATIVE_INFINITY };
  const isHeld = (): boolean => now() < state.validUntil;
  const getValue = (): string => `${memberId} ${state.token}`;

  return {
    isHeld,
    token: () => state.token,
    value: getValue,
    async claim() {
      const wasHeld = isHeld();
      // From here on and not from the reply: the lease in Redis then never ends first.
      const validUntil = now() + LEASE_TTL_MS - LEASE_MARGIN_MS;
      const args = ["EVAL", CLAIM_SCRIPT, "1", key, memberId, String(LEASE_TTL_MS)];
      const reply = await connection.call(args, CLAIM_TIMEOUT_MS);
      const [member, token] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
      if (typeof member !== "string" || typeof token !== "number" || !Number.isSafeInteger(token)) return false;
      if (member !== memberId) {
        Object.assign(other, { memberId: member, seenAt: now() });
        state.validUntil = Number.NEGATIVE_INFINITY;
        return false;
      }
      const isNew = !wasHeld || token !== state.token;
      Object.assign(state, { token, validUntil });
      return isNew && isHeld();
    },
    holder: () => (!isHeld() && now() - other.seenAt < LEASE_TTL_MS ? other.memberId : undefined),
    async release() {
      if (!isHeld()) return;
      const value = getValue();
      state.validUntil = Number.NEGATIVE_INFINITY;
      await connection.call(["EVAL", RELEASE_SCRIPT, "1", key, value], CLAIM_TIMEOUT_MS);
    },
  };
}
