import { describe, expect, test } from "vitest";
import { UpstreamError } from "../../../src/resilience/http-client/upstream-error.js";
import {
  StaleWhileRevalidateCache,
  type StaleWhileRevalidateOptions,
} from "../../../src/resilience/stale-while-revalidate.js";

function setup(share?: StaleWhileRevalidateOptions<string>["share"]) {
  let time = 1_000_000;
  const loads: { resolve: (value: string) => void; reject: (error: Error) => void; signal: AbortSignal }[] = [];
  const errors: unknown[] = [];
  const cache = new StaleWhileRevalidateCache<string>({
    load: (signal) => new Promise((resolve, reject) => loads.push({ resolve, reject, signal })),
    now: () => time,
    freshMs: 100,
    staleMs: 1000,
    errorTtlMs: 10,
    onError: (error) => errors.push(error),
    share,
  });
  const latest = () => {
    const load = loads.at(-1);
    if (load === undefined) throw new Error("no load was started");
    return load;
  };
  return { cache, loads, errors, latest, pass: (ms: number) => (time += ms) };
}

describe("stale-while-revalidate cache", () => {
  test("loads once for concurrent callers and again when the entry is old", async () => {
    const { cache, loads, latest, pass } = setup();
    const both = Promise.all([cache.get(), cache.get()]);
    latest().resolve("one");
    expect(await both).toEqual(Array(2).fill({ value: "one", readAt: 1_000_000 }));
    pass(99);
    await cache.get();
    expect(loads).toHaveLength(1);
    pass(900);
    const again = cache.get();
    expect(loads).toHaveLength(2);
    latest().resolve("two");
    // The entry is 999 ms old; at 1000 ms it is no longer served during a reload.
    expect((await again).value).toBe("one");
    pass(1000);
    const waiting = cache.get();
    latest().resolve("three");
    expect((await waiting).value).toBe("three");
  });

  test("keeps the last entry when a load fails and retries only after the error TTL", async () => {
    const { cache, loads, errors, latest, pass } = setup();
    const first = cache.get();
    latest().resolve("good");
    await first;
    pass(100);
    expect(await cache.get()).toEqual({ value: "good", readAt: 1_000_000 });
    latest().reject(new Error("down"));
    await expect.poll(() => errors.length).toBe(1);
    await cache.get();
    expect(loads).toHaveLength(2);
    pass(1000);
    // After a failure, an entry of any age is served, because the source may hang.
    expect((await cache.get()).value).toBe("good");
    expect(loads).toHaveLength(3);
    latest().resolve("better");
    await expect.poll(async () => (await cache.get()).value).toBe("better");
  });

  test("rejects until the first successful load, then recovers", async () => {
    const { cache, latest, pass } = setup();
    const first = cache.get();
    latest().reject(new Error("down"));
    await expect(first).rejects.toThrow("down");
    await expect(cache.get()).rejects.toThrow("down");
    pass(10);
    const again = cache.get();
    latest().resolve("up");
    expect((await again).value).toBe("up");
  });

  test("aborts a pending load on close", () => {
    const { cache, latest } = setup();
    cache.get().catch(() => {});
    cache.close();
    expect(latest().signal.aborted).toBe(true);
  });

  test("returns an entry from peek without waiting and refreshes it", async () => {
    const { cache, loads, latest, pass } = setup();
    expect(cache.peek()).toBeUndefined();
    expect(loads).toHaveLength(1);
    latest().resolve("one");
    const reading = await cache.get();
    expect(cache.peek()).toBe(reading);
    pass(500);
    expect(cache.peek()).toBe(reading);
    expect(loads).toHaveLength(2);
    pass(500);
    // Too old to be served during a reload.
    expect(cache.peek()).toBeUndefined();
    latest().reject(new Error("gone"));
    await cache.get();
    // The reload failed, so the last entry is served again.
    expect(cache.peek()).toBe(reading);
  });
});

test("reports health by the last load without starting one", async () => {
  const { cache, loads, latest, pass } = setup();
  expect([cache.health(), cache.peekStale()]).toEqual([{ state: "unknown", ageMs: undefined }, undefined]);
  expect(loads).toHaveLength(0);
  const first = cache.get();
  latest().resolve("one");
  await first;
  pass(70);
  expect(cache.health()).toEqual({ state: "ok", ageMs: 70 });
  pass(1_000);
  const second = cache.get();
  latest().reject(new Error("gone"));
  await second;
  expect(cache.health()).toEqual({ state: "failing", ageMs: 1_070 });
  pass(1_000);
  const third = cache.get();
  latest().reject(new Error("https://secret.example", { cause: new UpstreamError("DNS lookup failed") }));
  await third;
  expect(cache.health()).toMatchObject({ failure: "DNS lookup failed" });
  expect(cache.peekStale()).toEqual({ value: "one", readAt: 1_000_000 });
});

test("takes what is loaded once for several processes, with its time", async () => {
  const { cache, loads, pass } = setup(async () => ({ value: "theirs", readAt: 999_950 }));
  expect(await cache.get()).toEqual({ value: "theirs", readAt: 999_950 });
  expect(loads).toHaveLength(0);
  pass(49);
  expect(cache.peek()?.value).toBe("theirs");
});
