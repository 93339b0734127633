import { beforeEach, describe, expect, test, vi } from "vitest";
import { BlockAgeMonitor } from "../../../../src/chain/heads/block-age-monitor.js";
import { STATE_SOURCE } from "../../../../src/chain/heads/head-tracker.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import type { ChainStateSubscription } from "../../../../src/quotes/state/chain-state-cache.js";
import { createUintRead, EMPTY_READ_SET, type ReadSet } from "../../../../src/quotes/state/read-set.js";
import { settle } from "../../../support/steady-timers.js";
import { createNumberedChain } from "../../../support/stubs/numbered-chain.js";

const READ_SET: ReadSet = { ...EMPTY_READ_SET, includesGasPrice: true };
const POLICY = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };
const SLOW_POLICY = { refreshMs: 12_000, maxAgeMs: 24_000, maxStaleMs: 30_000 };

beforeEach(() => void vi.useFakeTimers({ now: 1_795_000_000_000 }));

/** Advances the time and returns the gas price of the result. */
const resolveGasPrice = async (result: ChainState | Promise<ChainState>, ms = 60): Promise<bigint | undefined> =>
  (await settle(result, ms)).gasPrice;

/** Subscribes to state and reads it once. */
async function startRead(policy = POLICY) {
  const { state, cache } = createNumberedChain();
  const subscription = cache.subscribe("a", READ_SET, policy);
  await resolveGasPrice(subscription.get());
  return { state, cache, subscription };
}

/** Returns the state that is served at once. */
function getCached(subscription: ChainStateSubscription): ChainState {
  const state = subscription.get();
  if (state instanceof Promise) throw new Error("the state is not cached");
  return state;
}

describe("requested state", () => {
  test("is read once for concurrent requests, then served synchronously", async () => {
    const { state, cache } = createNumberedChain();
    const subscription = cache.subscribe("a", READ_SET, POLICY);
    const first = [
      subscription.get(),
      subscription.get(),
      cache.subscribe("a", READ_SET, POLICY).get(),
      cache.subscribe("b", READ_SET, POLICY).get(),
    ];
    expect(await Promise.all(first.map((result) => resolveGasPrice(result)))).toEqual([1n, 1n, 1n, 1n]);
    expect(state.reads).toBe(1);
    expect(subscription.get()).not.toBeInstanceOf(Promise);
  });

  test("is refreshed at its interval while it is requested, and not after", async () => {
    const { state, subscription } = await startRead();
    for (let second = 0; second < 20; second++) {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(Date.now() - getCached(subscription).readAt).toBeLessThan(4_000);
    }
    expect(state.reads).toBeGreaterThanOrEqual(10);
    expect(state.reads).toBeLessThanOrEqual(11);
    await vi.advanceTimersByTimeAsync(20_000);
    const { reads } = state;
    await vi.advanceTimersByTimeAsync(600_000);
    expect(state.reads).toBe(reads);
    expect(vi.getTimerCount()).toBe(0);
    // A new request starts the refreshes again.
    expect(await resolveGasPrice(subscription.get())).toBe(BigInt(reads + 1));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(state.reads).toBe(reads + 2);
  });

  test("of several routes converges to common reads", async () => {
    const { state, cache } = createNumberedChain();
    const [first, second] = [cache.subscribe("a", READ_SET, POLICY), cache.subscribe("b", READ_SET, POLICY)];
    await resolveGasPrice(first.get());
    await vi.advanceTimersByTimeAsync(700);
    await resolveGasPrice(second.get());
    const before = state.reads;
    for (let seconds = 0; seconds < 10; seconds++) {
      first.get();
      second.get();
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(state.reads - before).toBeLessThanOrEqual(6);
  });

  test("that is too old is read again before it is served", async () => {
    const { subscription } = await startRead();
    await vi.advanceTimersByTimeAsync(25_000);
    const pending = subscription.get();
    expect(pending).toBeInstanceOf(Promise);
    expect(Date.now() - (await Promise.all([pending, vi.advanceTimersByTimeAsync(60)]))[0].readAt).toBeLessThan(100);
  });
});

describe("state that nobody requests any more is removed", () => {
  /** Requests state for a while. */
  async function request(subscriptions: readonly ChainStateSubscription[], seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      for (const subscription of subscriptions) void subscription.get();
      await vi.advanceTimersByTimeAsync(1_000);
    }
  }

  test("of a batch", async () => {
    const { cache } = createNumberedChain();
    const [first, second, other] = ["a", "b", "c"].map((key) => cache.subscribe(key, READ_SET, POLICY)) as [
      ChainStateSubscription,
      ChainStateSubscription,
      ChainStateSubscription,
    ];
    await resolveGasPrice(cache.getTogether([first, second]));
    await request([other], 60);
    expect(other.get()).not.toBeInstanceOf(Promise);
    const state = cache.getTogether([first, second]);
    expect(state).toBeInstanceOf(Promise);
    await resolveGasPrice(state);
  });

  test("but not what has replaced it", async () => {
    const { cache } = createNumberedChain();
    const [replaced, other] = [cache.subscribe("a", READ_SET, POLICY), cache.subscribe("b", READ_SET, POLICY)];
    await resolveGasPrice(replaced.get());
    await request([other], 60);
    const current = cache.subscribe("a", READ_SET, POLICY);
    expect(current).not.toBe(replaced);
    await resolveGasPrice(replaced.get());
    await request([current], 60);
    expect(cache.subscribe("a", READ_SET, POLICY)).toBe(current);
  });
});

describe("while the chain does not respond", () => {
  test("serves the last state synchronously until it is too old, then fails", async () => {
    const { state, subscription } = await startRead();
    state.isDown = true;
    for (let second = 1; second < 29; second++) {
      await vi.advanceTimersByTimeAsync(1_000);
      expect(subscription.get(), `after ${second} s`).not.toBeInstanceOf(Promise);
    }
    await vi.advanceTimersByTimeAsync(2_000);
    await expect(resolveGasPrice(subscription.get(), 1_100)).rejects.toThrow("down");
    state.isDown = false;
    await resolveGasPrice(subscription.get(), 1_100);
    expect(Date.now() - getCached(subscription).readAt).toBeLessThanOrEqual(1_100);
  });

  test("waits at most a second for a read that hangs while older state is usable", async () => {
    const { state, subscription } = await startRead();
    await vi.advanceTimersByTimeAsync(20_000);
    const last = BigInt(state.reads);
    state.latencyMs = 60_000;
    const pending = Promise.resolve(subscription.get());
    let served: ChainState | undefined;
    void pending.then((result) => {
      served = result;
    });
    await vi.advanceTimersByTimeAsync(900);
    expect(served).toBeUndefined();
    await vi.advanceTimersByTimeAsync(200);
    expect(served?.gasPrice).toBe(last);
  });

  test("has one read at a time where reads take four seconds, however often it is requested", async () => {
    const { state, cache } = createNumberedChain();
    const subscription = cache.subscribe("a", READ_SET, POLICY);
    state.latencyMs = 4_000;
    await resolveGasPrice(subscription.get(), 4_100);
    const readsBefore = state.reads;
    const ages: number[] = [];
    for (let ms = 0; ms < 60_000; ms += 100) {
      const served = Promise.resolve(subscription.get()).then(({ readAt }) => ages.push(Date.now() - readAt));
      await vi.advanceTimersByTimeAsync(100);
      void served;
    }
    await vi.advanceTimersByTimeAsync(4_000);
    expect(ages).toHaveLength(600);
    // The state is four seconds old when it arrives, and the next one comes four seconds later.
    expect(Math.max(...ages)).toBeLessThanOrEqual(9_100);
    expect(state.reads - readsBefore).toBeLessThanOrEqual(16);
  });
});

/** Subscribes to state with a delivery whose estimate the node rejects, and to other state. */
function startRejected() {
  const { state, cache } = createNumberedChain();
  const delivery = {
    ...{ from: undefined, to: "0x", calldata: "0xbad", deadlineSeconds: undefined },
    ...{ fallbackGas: 1n, gasMargin: 0n, hasL1Fee: false },
  };
  const rejected = cache.subscribe("rejected", { ...READ_SET, deliveries: new Map([["odd", delivery]]) }, POLICY);
  const other = cache.subscribe("other", READ_SET, POLICY);
  state.rejects = (calls) => calls.some(({ method }) => method === "eth_estimateGas");
  return { state, rejected, other };
}

test("a rejected call only affects the routes that read it", async () => {
  const { rejected, other } = startRejected();
  const both = Promise.allSettled([rejected.get(), other.get()]);
  await vi.advanceTimersByTimeAsync(110);
  const [bad, good] = await both;
  expect(bad).toMatchObject({ status: "rejected", reason: { message: "no endpoint" } });
  expect(good).toMatchObject({ status: "fulfilled", value: { gasPrice: 3n } });
  expect(other.get()).not.toBeInstanceOf(Promise);
});

test("a route with a rejected call is read separately for a while", async () => {
  const { state, rejected, other } = startRejected();
  Promise.resolve(rejected.get()).catch(() => {});
  for (let second = 0; second < 10; second++) {
    Promise.resolve(other.get()).catch(() => {});
    await vi.advanceTimersByTimeAsync(1_000);
  }
  // Three reads detect it; then each of the two is read every two seconds. Together they would take three reads each time.
  expect(state.reads).toBeLessThanOrEqual(3 + 5 * 2);
});

test("stops after three reads when the node rejects everything", async () => {
  const { state, cache } = createNumberedChain();
  state.rejects = () => true;
  const many = Array.from({ length: 50 }, (_, index) => cache.subscribe(`route ${index}`, { ...READ_SET }, POLICY));
  const results = Promise.allSettled(many.map((subscription) => subscription.get()));
  await vi.advanceTimersByTimeAsync(200);
  expect((await results).every(({ status }) => status === "rejected")).toBe(true);
  expect(state.reads).toBe(3);
});

test("an older block does not replace a newer one that is fresh", async () => {
  const { state, subscription } = await startRead();
  state.block = "0xf";
  await vi.advanceTimersByTimeAsync(2_100);
  expect(subscription.get()).toMatchObject({ block: { number: 16n } });
  await vi.advanceTimersByTimeAsync(2_000);
  await Promise.all([subscription.get(), vi.advanceTimersByTimeAsync(100)]);
  expect(subscription.get()).toMatchObject({ block: { number: 15n } });
});

test("a subscription with a short interval is refreshed next to a slow one", async () => {
  const { state, cache } = createNumberedChain();
  const slow = cache.subscribe("slow", READ_SET, SLOW_POLICY);
  await resolveGasPrice(slow.get());
  const fast = cache.subscribe("fast", READ_SET, POLICY);
  await resolveGasPrice(fast.get());
  for (let second = 0; second < 10; second++) {
    await vi.advanceTimersByTimeAsync(1_000);
    expect(fast.get(), `after ${second} s`).not.toBeInstanceOf(Promise);
  }
  expect(state.reads).toBeLessThan(9);
});

test("a subscription is kept until its state cannot be served any more, and is active for 15 s", async () => {
  const { cache } = createNumberedChain();
  const [idle, used] = [cache.subscribe("idle", READ_SET, POLICY), cache.subscribe("used", READ_SET, POLICY)];
  await resolveGasPrice(idle.get());
  expect([idle.isActive(), used.isActive()]).toEqual([true, false]);
  const useFor = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      used.get();
      await vi.advanceTimersByTimeAsync(1_000);
    }
  };
  await useFor(16);
  expect([idle.isActive(), used.isActive()]).toEqual([false, true]);
  await useFor(27);
  expect(cache.subscribe("idle", READ_SET, POLICY)).toBe(idle);
  await useFor(5);
  expect(cache.subscribe("idle", READ_SET, POLICY)).not.toBe(idle);
  expect(cache.subscribe("used", READ_SET, POLICY)).toBe(used);
});

test("a reload reads fresh state again, and joins the read in progress", async () => {
  const { state, cache } = createNumberedChain();
  const [first, second] = [cache.subscribe("a", READ_SET, POLICY), cache.subscribe("b", READ_SET, POLICY)];
  expect(await resolveGasPrice(first.get())).toBe(1n);
  const [reloaded, joined] = [first.reload(), first.reload()];
  expect(await resolveGasPrice(reloaded)).toBe(2n);
  expect(await resolveGasPrice(joined)).toBe(2n);
  expect(first.get()).toMatchObject({ gasPrice: 2n });
  const both = [first, second];
  expect(await resolveGasPrice(cache.getTogether(both))).toBe(3n);
  expect(await resolveGasPrice(cache.reloadTogether(both))).toBe(4n);
  expect(state.reads).toBe(4);
  // One alone is the same as by itself.
  expect(cache.getTogether([first])).toBe(first.get());
});

test("a request while no refresh is planned plans one", async () => {
  const { state, subscription } = await startRead({ ...POLICY, maxAgeMs: 25_000 });
  // The last refresh of an idle subscription; then nothing is planned.
  await vi.advanceTimersByTimeAsync(20_000);
  expect(vi.getTimerCount()).toBe(0);
  const { reads } = state;
  expect(subscription.get()).not.toBeInstanceOf(Promise);
  await vi.advanceTimersByTimeAsync(2_100);
  expect(state.reads).toBe(reads + 1);
});

test("a wall clock that is set back has no effect", async () => {
  const { state, subscription } = await startRead();
  state.wallOffset = -3_600_000;
  for (let second = 0; second < 10; second++) {
    await vi.advanceTimersByTimeAsync(1_000);
    expect(Date.now() - getCached(subscription).readAt).toBeLessThan(4_000);
  }
  expect(state.reads).toBeGreaterThan(4);
});

test("close stops the background refreshes", async () => {
  const { state, cache } = createNumberedChain();
  await resolveGasPrice(cache.subscribe("a", READ_SET, POLICY).get());
  cache.close();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(state.reads).toBe(1);
});

describe("incomplete state", () => {
  const read = createUintRead({ to: `0x${"a1".repeat(20)}`, data: "0x12345678" });
  const readSet = { ...READ_SET, contractReads: new Map([[read.key, read]]) };

  test("does not replace older state, and is an error without any", async () => {
    const { state, cache } = createNumberedChain();
    state.isEmpty = () => true;
    const subscription = cache.subscribe("a", readSet, POLICY);
    await expect(resolveGasPrice(subscription.get())).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    state.isEmpty = () => false;
    const first = await resolveGasPrice(subscription.get(), 400);
    state.isEmpty = ({ method }) => method === "eth_call";
    await vi.advanceTimersByTimeAsync(POLICY.maxAgeMs + 1);
    expect(await resolveGasPrice(subscription.get())).toBe(first);
    expect(getCached(subscription).get(read)).toBe(first);
  });
});

describe("state of a stalled chain", () => {
  /** Requests the state every 100 ms. */
  async function requestFor(ms: number, request: () => unknown): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      request();
      await vi.advanceTimersByTimeAsync(100);
    }
  }

  test("is read about every one and a half seconds while it is requested, however often, and then no more", async () => {
    const { state, cache } = createNumberedChain();
    const subscriptions = ["a", "b", "c"].map((key) => cache.subscribe(key, READ_SET, SLOW_POLICY));
    state.isStalled = true;
    await requestFor(60_000, () => subscriptions.map((subscription) => subscription.get()));
    expect(state.reads).toBeGreaterThan(30);
    expect(state.reads).toBeLessThanOrEqual(60);
    await vi.advanceTimersByTimeAsync(16_000);
    state.reads = 0;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.reads).toBe(0);
  });

  test("is read as seldom as before once the chain moves again", async () => {
    const { state, cache } = createNumberedChain();
    const subscription = cache.subscribe("a", READ_SET, SLOW_POLICY);
    state.isStalled = true;
    await requestFor(3_000, () => subscription.get());
    state.isStalled = false;
    state.reads = 0;
    await requestFor(60_000, () => subscription.get());
    expect(state.reads).toBeGreaterThan(0);
    expect(state.reads).toBeLessThanOrEqual(11);
  });

  test("does not count as fresh after a pause, although the chain responds", async () => {
    const { state, subscription } = await startRead(SLOW_POLICY);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(subscription.get()).not.toBeInstanceOf(Promise);
    state.isStalled = true;
    expect(await resolveGasPrice(subscription.get())).toBe(2n);
  });
});

test("a chain that stops and moves on is known to be stalled within its limit, and to move within five seconds", async () => {
  const LIMIT_MS = 120_000;
  const clocks = { now: () => Date.now(), monotonicNow: () => Date.now() };
  const limits = { mainnet: new Map([["polygon", { maxBlockAgeMs: LIMIT_MS, blockTimeMs: 12_000 }]]) };
  const monitor = new BlockAgeMonitor({ limits, clocks });
  const isStalled = (): boolean => monitor.stalledCount() > 0;
  const { state, cache } = createNumberedChain({
    isStalled,
    async onRead(_, run) {
      const read = await run();
      const head = { number: 1, timestamp: Number(read.block.timeSeconds) };
      monitor.getHeadTracker("mainnet", "polygon").record(STATE_SOURCE, head, read.readAt);
      return read;
    },
  });
  const subscription = cache.subscribe("a", READ_SET, SLOW_POLICY);
  let moves = true;
  async function requestUntil(isDone: () => boolean): Promise<number> {
    const startedAt = Date.now();
    while (!isDone()) {
      if (moves) state.timestamp = `0x${Math.floor(Date.now() / 1000).toString(16)}`;
      await Promise.all([subscription.get(), vi.advanceTimersByTimeAsync(100)]);
      if (Date.now() - startedAt > 10 * LIMIT_MS) throw new Error("never");
    }
    return Date.now() - startedAt;
  }

  await requestUntil(() => state.reads > 3);
  expect(isStalled()).toBe(false);
  moves = false;
  // Its block is at most one refresh old already; its age is judged at the next refresh.
  expect(await requestUntil(isStalled)).toBeLessThanOrEqual(LIMIT_MS + 12_000);
  const readsBefore = state.reads;
  await requestUntil(() => Date.now() > Number(state.timestamp) * 1000 + 10 * 60_000);
  const pollsPerSecond = (state.reads - readsBefore) / (10 * 60 - LIMIT_MS / 1000);
  expect(pollsPerSecond).toBeLessThanOrEqual(1);
  moves = true;
  expect(await requestUntil(() => !isStalled())).toBeLessThanOrEqual(5_000);
});
