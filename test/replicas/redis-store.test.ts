import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { RedisStore } from "../../src/shared-state/redis-store.js";
import { SharedCache } from "../../src/shared-state/shared-cache.js";
import { REDIS_PASSWORD, type RedisServer, startRedis } from "./support/redis-server.js";
import { leftOut, redisProgram } from "./support/server-programs.js";
import { startTcpSwitch } from "./support/tcp-switch.js";

/** A request waits for 5 ms; this much longer only if the machine is busy. */
const SLOW_MACHINE_MS = 500;
const WAIT_MS = 1_000;
const LOCK = { expiryMs: 60_000, timeoutMs: WAIT_MS };

describe.skipIf(redisProgram === undefined)(`what processes keep in Redis${leftOut(redisProgram)}`, () => {
  let redis: RedisServer;
  const opened: RedisStore[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());
  afterEach(async () => {
    for (const store of opened.splice(0)) store.close();
    if (!redis.isRunning()) await redis.start();
    await redis.command("FLUSHALL");
  });

  async function open({ url = redis.url, prefix = "hop-gateway:test:" } = {}): Promise<RedisStore> {
    const store = openLater(url, prefix);
    await expect.poll(() => store.stats().isConnected).toBe(true);
    return store;
  }

  function openLater(
    url: string,
    prefix = "hop-gateway:test:",
    onStateChange = (_isConnected: boolean) => {},
  ): RedisStore {
    const store = new RedisStore({ url, prefix, random: Math.random, onStateChange });
    opened.push(store);
    return store;
  }

  test("a text is there for other processes, with its age, until it expires", async () => {
    const [first, second, other] = [await open(), await open(), await open({ prefix: "hop-gateway:other:" })];
    expect(await second.get("key", WAIT_MS)).toBeNull();
    await first.set("key", "text", { ttlMs: 60_000, ageMs: 20_000, rank: 7 });
    const found = await second.get("key", WAIT_MS);
    expect(found?.text).toBe("text");
    expect(found?.ageMs).toBeGreaterThanOrEqual(20_000);
    expect(found?.ageMs).toBeLessThan(40_000);
    expect(await other.get("key", WAIT_MS)).toBeNull();
    await first.set("brief", "text", { ttlMs: 100, ageMs: 0, rank: 0 });
    await expect.poll(() => second.get("brief", WAIT_MS)).toBeNull();
  });

  test("a text of a lower rank does not replace one of a higher rank", async () => {
    const store = await open();
    const setRank = (rank: number) => store.set("key", `rank ${rank}`, { ttlMs: 60_000, ageMs: 0, rank });
    for (const rank of [9, 10, 8]) await setRank(rank);
    expect((await store.get("key", WAIT_MS))?.text).toBe("rank 10");
    await setRank(10);
    expect((await store.get("key", WAIT_MS))?.text).toBe("rank 10");
  });

  test("one process at a time holds a lock, until it releases it or the time is over", async () => {
    const [first, second] = [await open(), await open()];
    expect(await first.lock("key", "first", LOCK)).toBe(true);
    expect(await second.lock("key", "second", LOCK)).toBe(false);
    await second.unlock("key", "second");
    expect(await second.lock("key", "second", LOCK)).toBe(false);
    await first.unlock("key", "first");
    expect(await second.lock("key", "second", { ...LOCK, expiryMs: 100 })).toBe(true);
    await expect.poll(() => first.lock("key", "first", LOCK)).toBe(true);
  });

  test("nobody waits for a lock whose holder did not learn of it in time, or releases it while Redis is slow", async () => {
    const [first, second] = [await open(), await open()];
    await redis.command("CLIENT", "PAUSE", "300", "ALL");
    expect(await first.lock("late", "first", { ...LOCK, timeoutMs: 5 })).toBeUndefined();
    await expect.poll(() => second.lock("late", "second", LOCK)).toBe(true);
    expect(await first.lock("key", "first", LOCK)).toBe(true);
    await redis.command("CLIENT", "PAUSE", "300", "ALL");
    expect(await first.get("key", 5)).toBeUndefined();
    void first.unlock("key", "first");
    await expect.poll(() => second.lock("key", "second", LOCK)).toBe(true);
  });

  test("names are demanded by any process, each for its time", async () => {
    const [first, second] = [await open(), await open()];
    await first.demand("key", ["brief"], 300);
    await second.demand("key", ["long", "brief"], 60_000);
    await first.demand("key", ["brief"], 300);
    expect(new Set(await first.listDemand("key", WAIT_MS))).toEqual(new Set(["long", "brief"]));
    await expect.poll(() => second.listDemand("key", WAIT_MS)).toEqual(["long"]);
  });

  test("a Redis that is full is read, and refuses what is written", async () => {
    const store = await open();
    await store.set("key", "text", { ttlMs: 60_000, ageMs: 0, rank: 1 });
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    try {
      await store.set("key", "newer text", { ttlMs: 60_000, ageMs: 0, rank: 2 });
      expect((await store.get("key", WAIT_MS))?.text).toBe("text");
      expect(await store.lock("key", "owner", LOCK)).toBeUndefined();
      expect(store.stats().commands.refused).toBe(2);
    } finally {
      await redis.command("CONFIG", "SET", "maxmemory", "0");
    }
    expect(await store.lock("key", "owner", LOCK)).toBe(true);
  });

  test("no command waits for a Redis that is frozen, and commands work again after it", async () => {
    const changes: boolean[] = [];
    const store = openLater(redis.url, undefined, (isConnected) => void changes.push(isConnected));
    await expect.poll(() => changes).toEqual([true]);
    await redis.signalAll("SIGSTOP");
    const startedAt = performance.now();
    expect(await store.get("key", 5)).toBeUndefined();
    expect(performance.now() - startedAt).toBeLessThan(SLOW_MACHINE_MS);
    // Nothing more is sent until it replies.
    await store.get("key", 60_000);
    expect(store.stats().commands).toMatchObject({ timed_out: 1, skipped: 1 });
    await expect.poll(() => changes).toEqual([true, false]);
    await redis.signalAll("SIGCONT");
    await expect.poll(() => store.get("key", WAIT_MS)).toBeNull();
    expect(changes).toEqual([true, false, true]);
  });

  test("a connection that is half open is closed, and replaced", async () => {
    const between = await startTcpSwitch(redis.port);
    try {
      const store = await open({ url: `redis://:${REDIS_PASSWORD}@127.0.0.1:${between.port}` });
      between.hold();
      expect(await store.get("key", 5)).toBeUndefined();
      await expect.poll(() => store.stats().isConnected).toBe(false);
      between.resume();
      await expect.poll(() => store.get("key", WAIT_MS)).toBeNull();
    } finally {
      await between.close();
    }
  });

  test("a process that starts without Redis uses it when it comes", async () => {
    await redis.kill();
    const changes: boolean[] = [];
    const store = openLater(redis.url, undefined, (isConnected) => void changes.push(isConnected));
    await expect.poll(() => changes).toEqual([false]);
    expect(await store.lock("key", "owner", LOCK)).toBeUndefined();
    await redis.start();
    await expect.poll(() => store.lock("key", "owner", LOCK)).toBe(true);
    expect(changes).toEqual([false, true]);
  });

  test("a user that Redis refuses is tried again", async () => {
    const changes: boolean[] = [];
    const url = redis.url.replace("//:", "//later:");
    openLater(url, undefined, (isConnected) => void changes.push(isConnected));
    await expect.poll(() => changes).toEqual([false]);
    await redis.command("ACL", "SETUSER", "later", "on", `>${REDIS_PASSWORD}`, "+@all");
    await expect.poll(() => changes).toEqual([false, true]);
  });

  test("of several processes one loads a value for all", async () => {
    const caches = await Promise.all(
      ["first", "second", "third"].map(async (owner) => new SharedCache(await open(), owner, () => performance.now())),
    );
    let loads = 0;
    const load = async () => {
      loads += 1;
      await sleep(100);
      return { value: `load ${loads}`, text: `load ${loads}`, ttlMs: 60_000, ageMs: 0, rank: 0 };
    };
    const values = await Promise.all(caches.map((cache) => cache.obtain("key", ({ text }) => text, load, WAIT_MS)));
    expect(values).toEqual(["load 1", "load 1", "load 1"]);
  });

  test("everything works with the permissions that the documentation names, and no others", async () => {
    const rules = /`user hop on >password ([^`]+)`/.exec(await readFile("docs/scaling.md", "utf8"))?.[1];
    await redis.command("ACL", "SETUSER", "hop", "on", `>${REDIS_PASSWORD}`, ...(rules?.split(" ") ?? ["documented"]));
    const store = await open({ url: redis.url.replace("//:", "//hop:") });
    await store.demand("key", ["name"], 60_000);
    expect(await store.listDemand("key", WAIT_MS)).toEqual(["name"]);
    expect(await store.lock("key", "owner", LOCK)).toBe(true);
    await store.set("key", "text", { ttlMs: 60_000, ageMs: 0, rank: 0 });
    await store.unlock("key", "owner");
    expect((await store.get("key", WAIT_MS))?.text).toBe("text");
    const limiter = new RateLimiterRedis({
      storeClient: store,
      useRedisPackage: true,
      keyPrefix: "hop-gateway",
      points: 1_000,
      duration: 60,
    });
    // Again if a busy machine takes longer than 5 ms.
    await expect
      .poll(() =>
        limiter.consume("192.0.2.7").then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    // A ping.
    await sleep(500);
    expect(store.stats()).toMatchObject({ isConnected: true, commands: { refused: 0 } });
  });
});
