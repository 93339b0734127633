import { readFile } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createRedisServices, type RedisServices } from "../../src/shared-state/redis/redis-services.js";
import type { SharedTopic } from "../../src/shared-state/shared-state.js";
import { REDIS_PASSWORD, type RedisServer, startRedis } from "./support/redis-server.js";
import { leftOut, redisProgram } from "./support/server-programs.js";

const opened: RedisServices[] = [];

interface ServicesOptions {
  readonly version?: string;
  readonly key?: string;
  readonly username?: string;
}

interface Replica {
  readonly services: RedisServices;
  readonly topic: SharedTopic;
  readonly published: string[];
  readonly requested: string[];
  /** The next answers to requests of others. */
  readonly answer: ReturnType<typeof vi.fn<(text: string) => Promise<string | undefined>>>;
}

describe.skipIf(redisProgram === undefined)(`state that is shared through Redis${leftOut(redisProgram)}`, () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((services) => services.close()));
    await redis.command("FLUSHALL");
  });

  function openServices({ version = "1.0.0", key, username }: ServicesOptions = {}): RedisServices {
    const target = {
      ...{ host: "127.0.0.1", port: redis.port, isTls: false, username, database: 0 },
      password: REDIS_PASSWORD,
    };
    const services = createRedisServices({ target, key, version, onStateChange() {} });
    opened.push(services);
    return services;
  }

  function join(services: RedisServices, name = "chain mainnet optimism"): Replica {
    const published: string[] = [];
    const requested: string[] = [];
    const answer = vi.fn(async (text: string): Promise<string | undefined> => `answer to ${text}`);
    const topic = services.sharedState.join(name, {
      onPublished: (text) => void published.push(text),
      onRequest(text) {
        requested.push(text);
        return answer(text);
      },
      onBecomeReader() {},
    });
    return { services, topic, published, requested, answer };
  }

  /** Starts replicas of which the first is the reader. */
  async function startReplicas(count: number): Promise<readonly [Replica, ...Replica[]]> {
    const reader = join(openServices());
    await expect.poll(() => reader.topic.isReader()).toBe(true);
    const others = Array.from({ length: count - 1 }, () => join(openServices()));
    for (const { services } of others) await expect.poll(() => services.stats().isConnected).toBe(true);
    await expect
      .poll(() => redis.command("PUBSUB", "NUMSUB", "hop-gateway:1.0.0:{chain:mainnet:optimism}:messages"))
      .toEqual([expect.any(String), count]);
    return [reader, ...others];
  }

  test("one replica reads for all, answers the others and hands them what it reads", async () => {
    const [reader, second, third] = await startReplicas(3);
    expect([second, third].map((replica) => replica?.topic.isReader())).toEqual([false, false]);
    expect(await second?.topic.request("of the second")).toBe("answer to of the second");
    reader.topic.publish("a state");
    for (const replica of [second, third]) await expect.poll(() => replica?.published).toEqual(["a state"]);
    expect(reader.published).toEqual([]);
  });

  test("a replica that starts takes the last value by its key", async () => {
    const [reader] = await startReplicas(1);
    reader.topic.publish("first");
    reader.topic.publish("last");
    await expect.poll(() => redis.command("KEYS", "*value")).toHaveLength(1);
    const starting = join(openServices());
    await expect.poll(() => starting.published).toEqual(["last"]);
  });

  test("a reader that stops hands over at once, one that dies within the time of its lease", async () => {
    const [reader, second] = await startReplicas(2);
    const [key] = (await redis.command("KEYS", "*lease")) as string[];
    const lease = await redis.command("GET", key ?? "");
    await reader.services.close();
    expect(await redis.command("GET", key ?? "")).not.toBe(lease);
    await expect.poll(() => second?.topic.isReader()).toBe(true);
    // Without a release, the lease of the second one ends by itself.
    await redis.command("SET", key ?? "", `${"0".repeat(16)} 9999999999999`, "PX", "3000");
    await expect.poll(() => second?.topic.isReader()).toBe(false);
    await expect.poll(() => second?.topic.isReader()).toBe(true);
  });

  test("a reader that works on a request is waited for, longer than a silent one", async () => {
    const [reader, second] = await startReplicas(2);
    let finish: (text: string) => void = () => {};
    reader.answer.mockReturnValueOnce(new Promise((resolve) => (finish = resolve)));
    const reply = second?.topic.request("slow", 60_000);
    await expect.poll(() => reader.requested).toEqual(["slow"]);
    // Longer than a reader that falls silent is waited for.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    finish("late");
    expect(await reply).toBe("late");
  });

  test("no value comes from another network, version or key", async () => {
    const [reader] = await startReplicas(1);
    reader.topic.publish("a state");
    await expect.poll(() => redis.command("KEYS", "*value")).toHaveLength(1);
    const [key] = (await redis.command("KEYS", "*value")) as string[];
    const value = (await redis.command("GET", key ?? "")) as string;
    const other = join(openServices({ version: "1.0.1" }));
    const stranger = join(openServices({ key: "another key than theirs" }));
    await expect.poll(() => other.topic.isReader()).toBe(true);
    await expect.poll(() => stranger.services.stats().refused.forged).toBe(1);
    // The value of one chain under the key of another.
    await redis.command("SET", "hop-gateway:1.0.0:{chain:goerli:optimism}:value", value);
    const misled = join(openServices(), "chain goerli optimism");
    await expect.poll(() => misled.services.stats().refused.forged).toBe(1);
    expect([other, stranger, misled].flatMap(({ published }) => published)).toEqual([]);
  });

  test.each([
    ["a text", ["SET", "value"], "forged"],
    ["a text that is too long", ["SETRANGE", "3000000", "x"], "oversized"],
  ] as const)("%s under the key of a value is refused", async (_, [command, ...args], reason) => {
    const key = "hop-gateway:1.0.0:{chain:mainnet:optimism}:value";
    await redis.command(command, key, ...args);
    const replica = join(openServices());
    await expect.poll(() => replica.services.stats().refused[reason]).toBe(1);
    expect(replica.published).toEqual([]);
  });

  test("what is not a lease under the key of a lease is replaced", async () => {
    const prefix = "hop-gateway:1.0.0:{chain:mainnet:optimism}:lease";
    await redis.command("RPUSH", prefix, "a list");
    await expect.poll(join(openServices()).topic.isReader).toBe(true);
    await redis.command("SET", "hop-gateway:1.0.0:{prices}:lease", "nonsense");
    await expect.poll(join(openServices(), "prices").topic.isReader).toBe(true);
    await redis.command("SET", "hop-gateway:1.0.0:{settings}:lease", `${"0".repeat(16)} 1`);
    await expect.poll(join(openServices(), "settings").topic.isReader).toBe(true);
  });

  test("a reader whose lease was taken while it was not looking does not overwrite the newer value", async () => {
    const [reader, second] = await startReplicas(2);
    const [key] = (await redis.command("KEYS", "*lease")) as string[];
    await redis.command("SET", key ?? "", `${"f".repeat(16)} 9999999999999`, "PX", "3000");
    expect(reader.topic.isReader()).toBe(true);
    reader.topic.publish("of the earlier reader");
    await expect.poll(() => reader.topic.isReader()).toBe(false);
    expect(await redis.command("KEYS", "*value")).toEqual([]);
    expect(second?.published).toEqual([]);
  });

  test("a Redis that is full still passes values on", async () => {
    const [reader, second] = await startReplicas(2);
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    try {
      reader.topic.publish("a state");
      await expect.poll(() => second?.published).toEqual(["a state"]);
      expect(await second?.topic.request("a request")).toBe("answer to a request");
      openServices().statuses.set("status", "text");
      expect(await redis.command("KEYS", "*status*")).toEqual([]);
      await expect(openServices().counts.increment("caller", 1, 60_000)).rejects.toThrow("in time");
    } finally {
      await redis.command("CONFIG", "SET", "maxmemory", "0");
    }
  });

  test("everything works again after Redis was killed and started", async () => {
    const [reader, second] = await startReplicas(2);
    await redis.kill();
    await expect.poll(() => second?.services.stats().isConnected).toBe(false);
    expect(await second?.topic.request("while it is away")).toBeUndefined();
    await expect.poll(() => reader.topic.isReader()).toBe(false);
    await redis.start();
    const all = [reader, second].flatMap((replica) => replica ?? []);
    await expect.poll(() => all.filter(({ topic }) => topic.isReader())).toHaveLength(1);
    const other = all.find(({ topic }) => !topic.isReader());
    await expect.poll(() => other?.topic.request("again")).toBe("answer to again");
  });

  test("counts of callers are one over all replicas, and callers are not named in Redis", async () => {
    const replicas = [openServices(), openServices({ version: "1.0.1" }), openServices()];
    for (const { stats } of replicas) await expect.poll(() => stats().isConnected).toBe(true);
    const counts: number[] = [];
    for (let call = 0; call < 30; call++)
      counts.push((await replicas[call % 3]?.counts.increment("192.0.2.7", 1, 60_000))?.count ?? 0);
    expect(counts).toEqual(Array.from({ length: 30 }, (_, index) => index + 1));
    const [key] = (await redis.command("KEYS", "*count*")) as string[];
    expect(key).toMatch(/^hop-gateway:counts-1:count:60000:[\w-]{24}$/);
    // Whatever somebody else put there, callers are counted.
    for (const planted of ["text", "-5", "9223372036854775807"]) {
      await redis.command("SET", key ?? "", planted);
      expect(await replicas[0]?.counts.increment("192.0.2.7", 1, 60_000)).toEqual({ count: 1, msLeft: 60_000 });
    }
  });

  test("budgets of callers are one over all replicas", async () => {
    const [first, second] = [openServices(), openServices()];
    for (const { stats } of [first, second]) await expect.poll(() => stats().isConnected).toBe(true);
    const rate = { kind: "test", capacity: 100, refillPerSecond: 0.001 };
    const spend = async ({ buckets }: RedisServices, tokens: number) =>
      Math.round((await buckets.take(rate, new Map([["192.0.2.7", tokens]]))).get("192.0.2.7") ?? Number.NaN);
    expect(await spend(first, 30)).toBe(30);
    expect(await spend(second, 40)).toBe(70);
    expect(await spend(first, 1_000)).toBe(100);
    const [key] = (await redis.command("KEYS", "*bucket*")) as string[];
    for (const planted of ["text", "1", "99999999999999999999"]) {
      await redis.command("SET", key ?? "", planted);
      expect(await spend(second, 1)).toBe(1);
    }
  });

  test("everything works with the permissions that the documentation names, and no others", async () => {
    const rules = /`user hop on >password ([^`]+)`/.exec(await readFile("docs/operating.md", "utf8"))?.[1];
    await redis.command("ACL", "SETUSER", "hop", "on", `>${REDIS_PASSWORD}`, ...(rules?.split(" ") ?? ["documented"]));
    const user = { username: "hop" };
    const reader = join(openServices(user));
    await expect.poll(reader.topic.isReader).toBe(true);
    const second = join(openServices(user));
    await expect.poll(() => second.topic.request("a request")).toBe("answer to a request");
    reader.topic.publish("a state");
    await expect.poll(() => second.published).toEqual(["a state"]);
    const starting = join(openServices(user));
    await expect.poll(() => starting.published).toEqual(["a state"]);
    second.services.statuses.set("key", "a status");
    await expect.poll(() => reader.services.statuses.get("key")).toBe("a status");
    expect(await second.services.counts.increment("caller", 1, 60_000)).toEqual({ count: 1, msLeft: 60_000 });
    const rate = { kind: "test", capacity: 100, refillPerSecond: 1 };
    expect((await second.services.buckets.take(rate, new Map([["caller", 1]]))).size).toBe(1);
    await reader.services.close();
    await expect.poll(() => [second, starting].some(({ topic }) => topic.isReader())).toBe(true);
    for (const { services } of [reader, second, starting]) expect(services.stats().commands.refused).toBe(0);
  });

  test("a status is kept for other replicas of the same version", async () => {
    const [first, second, other] = [openServices(), openServices(), openServices({ version: "1.0.1" })];
    for (const { stats } of [first, second, other]) await expect.poll(() => stats().isConnected).toBe(true);
    first.statuses.set("key", "a status");
    await expect.poll(() => second.statuses.get("key")).toBe("a status");
    expect(await other.statuses.get("key")).toBeUndefined();
    await redis.command(
      "SET",
      "hop-gateway:1.0.0:status:other",
      (await redis.command("GET", "hop-gateway:1.0.0:status:key")) as string,
    );
    expect(await second.statuses.get("other")).toBeUndefined();
    expect(second.stats().refused.forged).toBe(1);
  });
});
