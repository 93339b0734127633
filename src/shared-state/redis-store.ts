import { isIP } from "node:net";
import { setImmediate } from "node:timers/promises";
import { createClient } from "@redis/client";
import { withTimeoutOrFallback } from "../resilience/abort-scope.js";
import { REQUEST_TIMEOUT_MS, type SetOptions, type SharedStore, type SharedText } from "./shared-cache.js";

/**
 * - ok: replied in time
 * - refused: Redis replied an error, as OOM when it is full
 * - timed_out: replied too late, or not at all
 * - skipped: not sent, since Redis is out of reach or does not keep up
 */
type RedisCommandResult = "ok" | "refused" | "timed_out" | "skipped";

/** A Redis that is silent for this long is out of reach. */
const SILENT_MS = 1_000;
const PING_INTERVAL_MS = 250;
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
/** Commands without a reply. At 5 ms per reply, these are 200,000 commands per second. */
const MAX_PENDING_COMMANDS = 1_000;
/** Longest wait for a write, which no request waits for. */
const WRITE_TIMEOUT_MS = 500;

const GET_SCRIPT = `
local found = redis.call('HMGET', KEYS[1], 'text', 'ttl')
return {found[1], found[2], redis.call('PTTL', KEYS[1])}`;
/** Never replaces a text of a higher rank: an older block comes too late. */
const SET_SCRIPT = `
local rank = redis.call('HGET', KEYS[1], 'rank')
if rank and tonumber(rank) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'text', ARGV[1], 'rank', ARGV[2], 'ttl', ARGV[3])
return redis.call('PEXPIRE', KEYS[1], ARGV[4])`;
const UNLOCK_SCRIPT = `return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1])`;
/** On the clock of Redis, which the processes have in common. */
const DEMAND_SCRIPT = `
local time = redis.call('TIME')
local expiry = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
for index = 2, #ARGV do redis.call('ZADD', KEYS[1], expiry, ARGV[index]) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1`;
const LIST_DEMAND_SCRIPT = `
local time = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000), '+inf')`;

type Client = ReturnType<typeof connectClient>;

/** Keeps what processes share in Redis. No command waits longer than its time limit, and none for a Redis that is slow. */
export class RedisStore implements SharedStore {
  readonly #client: Client;
  readonly #prefix: string;
  readonly #commands: Record<RedisCommandResult, number> = { ok: 0, refused: 0, timed_out: 0, skipped: 0 };
  /** Number of commands whose replies are overdue. */
  #overdueCount = 0;

  /**
   * @param url contains a password: never log it
   * @param prefix start of the names of all keys
   * @param random from 0 to 1
   * @param onStateChange called when a connection is made, and once when none can be made any more, with the class of the
   * cause
   */
  constructor({
    url,
    prefix,
    random,
    onStateChange,
  }: {
    readonly url: string;
    readonly prefix: string;
    readonly random: () => number;
    readonly onStateChange: (isConnected: boolean, reason?: string) => void;
  }) {
    this.#prefix = prefix;
    this.#client = connectClient(url, random);
    let isReported = false;
    this.#client.on("ready", () => {
      isReported = false;
      onStateChange(true);
    });
    // Without a listener, an error would end the process.
    this.#client.on("error", (error: NodeJS.ErrnoException) => {
      if (this.#client.isReady || isReported) return;
      isReported = true;
      onStateChange(false, error.code ?? error.constructor.name);
    });
    this.#client.connect().catch(() => {});
  }

  async get(key: string, timeoutMs: number): Promise<SharedText | null | undefined> {
    const reply = await this.#eval(GET_SCRIPT, this.#key(key, "value"), [], timeoutMs);
    if (!Array.isArray(reply)) return undefined;
    const [text, ttlMs, leftMs] = reply as unknown[];
    if (typeof text !== "string" || typeof leftMs !== "number") return null;
    return { text, ageMs: Math.max(0, Number(ttlMs) - leftMs) };
  }

  set(key: string, text: string, { ttlMs, ageMs, rank }: SetOptions): Promise<unknown> {
    const leftMs = Math.max(1, Math.floor(ttlMs - ageMs));
    const args = [text, String(rank), String(ttlMs), String(leftMs)];
    return this.#eval(SET_SCRIPT, this.#key(key, "value"), args, WRITE_TIMEOUT_MS);
  }

  async lock(
    key: string,
    owner: string,
    { expiryMs, timeoutMs }: { readonly expiryMs: number; readonly timeoutMs: number },
  ): Promise<boolean | undefined> {
    const options = { expiration: { type: "PX", value: expiryMs }, condition: "NX" } as const;
    const reply = await this.#send((client) => client.set(this.#key(key, "lock"), owner, options), timeoutMs, {
      onLate: (late) => {
        // Nobody else would release it.
        if (late === "OK") void this.unlock(key, owner);
      },
    });
    return reply === undefined ? undefined : reply === "OK";
  }

  /** Sent while replies are overdue too: others would wait until the lock expires. */
  unlock(key: string, owner: string): Promise<unknown> {
    const options = { keys: [this.#key(key, "lock")], arguments: [owner] };
    return this.#send((client) => client.eval(UNLOCK_SCRIPT, options), WRITE_TIMEOUT_MS, { evenIfOverdue: true });
  }

  demand(key: string, names: readonly string[], expiryMs: number): Promise<unknown> {
    return this.#eval(DEMAND_SCRIPT, this.#key(key, "demand"), [String(expiryMs), ...names], WRITE_TIMEOUT_MS);
  }

  async listDemand(key: string, timeoutMs: number): Promise<readonly string[] | undefined> {
    const reply = await this.#eval(LIST_DEMAND_SCRIPT, this.#key(key, "demand"), [], timeoutMs);
    return Array.isArray(reply) ? reply.map(String) : undefined;
  }

  /**
   * Runs a script for a request, in the form that RateLimiterRedis expects of a client.
   * @throws Error if Redis does not reply in time
   */
  async eval(script: string, options: { readonly keys: string[]; readonly arguments: string[] }): Promise<unknown> {
    const reply = await this.#send((client) => client.eval(script, options), REQUEST_TIMEOUT_MS);
    if (reply === undefined) throw new Error("Redis did not reply in time");
    return reply;
  }

  stats() {
    return { isConnected: this.#client.isReady, commands: { ...this.#commands } };
  }

  close(): void {
    this.#client.removeAllListeners("error").on("error", () => {});
    if (this.#client.isOpen) this.#client.destroy();
  }

  /** Keys of one name are in one slot of a cluster. */
  #key(key: string, part: string): string {
    return `${this.#prefix}{${key}}:${part}`;
  }

  #eval(script: string, key: string, args: string[], timeoutMs: number): Promise<unknown> {
    return this.#send((client) => client.eval(script, { keys: [key], arguments: args }), timeoutMs);
  }

  /**
   * Resolves to undefined for anything but a reply in time.
   * @param onLate called with a reply that is not in time
   */
  async #send<T>(
    send: (client: Client) => Promise<T>,
    timeoutMs: number,
    { evenIfOverdue = false, onLate }: { readonly evenIfOverdue?: boolean; onLate?(reply: T | undefined): void } = {},
  ): Promise<T | undefined> {
    if (!this.#client.isReady || (this.#overdueCount > 0 && !evenIfOverdue)) {
      this.#commands.skipped += 1;
      return undefined;
    }
    const answered = send(this.#client).then(
      (value) => ({ result: "ok", value }) as const,
      () => ({ result: "refused", value: undefined }) as const,
    );
    // The client writes at the end of this turn, which may be long: the time counts from there.
    await setImmediate();
    const inTime = await withTimeoutOrFallback<Awaited<typeof answered> | undefined>(answered, timeoutMs, undefined);
    // A reply that arrived while this process was busy is read before the immediate.
    const outcome = inTime ?? (await Promise.race([answered, setImmediate(undefined)]));
    this.#commands[outcome?.result ?? "timed_out"] += 1;
    if (outcome === undefined) {
      this.#overdueCount += 1;
      void answered.then(({ value }) => {
        this.#overdueCount -= 1;
        onLate?.(value);
      });
    }
    return outcome?.value;
  }
}

function connectClient(url: string, random: () => number) {
  const { protocol, hostname } = new URL(url);
  // TLS sends the name of the host only if told so; an address is none.
  const servername =
    protocol === "rediss:" && isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? { servername: hostname } : {};
  return createClient({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: MAX_PENDING_COMMANDS,
    pingInterval: PING_INTERVAL_MS,
    disableClientInfo: true,
    socket: {
      ...servername,
      connectTimeout: SILENT_MS,
      // Closes a connection that is half open: pings are answered at least this often.
      socketTimeout: SILENT_MS,
      // So that the replicas do not all come at once when Redis is back.
      reconnectStrategy: (attempts) =>
        Math.min(INITIAL_BACKOFF_MS * 2 ** Math.min(attempts, 16), MAX_BACKOFF_MS) * (0.5 + random() / 2),
    },
  });
}
