import { beforeEach, expect, test, vi } from "vitest";
import type { RpcCall } from "../../../../src/chain/chain-client.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import { createReadSet, createUintRead } from "../../../../src/quotes/state/read-set.js";
import { settle as settleAfter } from "../../../support/steady-timers.js";
import { createNumberedChain } from "../../../support/stubs/numbered-chain.js";

beforeEach(() => void vi.useFakeTimers({ now: 1_795_000_000_000 }));

const settle = <T>(result: T | Promise<T>, ms = 100): Promise<T> => settleAfter(result, ms);
const readOf = (name: string) => createUintRead({ to: "0x1", data: `0x0000000${name}` });

/** Subscriptions are named by a digit, and read one value each. */
function setup() {
  const { state, cache } = createNumberedChain();
  const listNames = (calls: readonly RpcCall[]): string[] =>
    calls.flatMap(({ params }) => (params[0] as { data?: string })?.data?.slice(-1) ?? []);
  function subscribe(name: string, refreshMs = 2_000) {
    const readSet = createReadSet({ contractReads: [readOf(name)] });
    if (readSet === undefined) throw new Error("nothing to read");
    return cache.subscribe(name, readSet, { refreshMs, maxAgeMs: 2 * refreshMs, maxStaleMs: 30_000 });
  }
  return { state, cache, subscribe, listBatches: () => state.batches.map(listNames), listNames };
}

const readValues = (state: ChainState, names: string) => [...names].map((name) => Number(state.get(readOf(name))));

test("reads all subscriptions in one request, then answers synchronously", async () => {
  const { cache, subscribe, listBatches } = setup();
  const subscriptions = [subscribe("1"), subscribe("2"), subscribe("3")];
  const first = await settle(cache.getTogether(subscriptions));
  expect(readValues(first, "123")).toEqual([1, 1, 1]);
  expect(listBatches().map((batch) => batch.length)).toEqual([3]);
  expect(cache.getTogether(subscriptions)).toBe(first);
});

test("gives one state for subscriptions that were read at different times", async () => {
  const { cache, subscribe } = setup();
  const [a, b] = [subscribe("1"), subscribe("2")];
  const alone = await settle(a.get());
  await settle(b.get());
  const together = await settle(cache.getTogether([a, b]));
  expect(together).not.toBe(alone);
  expect(readValues(together, "12")).toEqual([3, 3]);
});

test("reads nothing if one read got the state of all", async () => {
  const { state, cache, subscribe } = setup();
  const [a, b] = [subscribe("1"), subscribe("2")];
  const [first] = await settle(Promise.all([a.get(), b.get()]));
  expect(cache.getTogether([a, b])).toBe(first);
  expect(state.batches).toHaveLength(1);
  // The state is refreshed in the background from now on.
  await vi.advanceTimersByTimeAsync(2_200);
  expect(cache.getTogether([a, b])).not.toBe(first);
  expect(cache.getTogether([a, b])).not.toBeInstanceOf(Promise);
});

test("is refreshed as often as the most demanding subscription", async () => {
  const { cache, subscribe } = setup();
  const subscriptions = [subscribe("1", 12_000), subscribe("2", 2_000)];
  await settle(cache.getTogether(subscriptions));
  for (let seconds = 0; seconds < 10; seconds += 1) {
    await vi.advanceTimersByTimeAsync(1_000);
    const state = cache.getTogether(subscriptions);
    if (state instanceof Promise) throw new Error("had to wait");
    expect(Date.now() - state.readAt).toBeLessThanOrEqual(4_000);
    expect(new Set(readValues(state, "12")).size).toBe(1);
  }
});

test("does not read more often for more combinations", async () => {
  const { state, cache, subscribe } = setup();
  const subscriptions = ["1", "2", "3", "4", "5", "6"].map((name) => subscribe(name));
  await settle(cache.getTogether(subscriptions));
  for (const first of subscriptions)
    for (const second of subscriptions)
      if (first !== second) expect(cache.getTogether([first, second])).not.toBeInstanceOf(Promise);
  expect(state.batches).toHaveLength(1);
});

test("lets no batch wait for what only another one needs", async () => {
  const { cache, subscribe } = setup();
  const [a, b, c] = [subscribe("1"), subscribe("2"), subscribe("3")];
  const first = await settle(cache.getTogether([a, b]));
  const grown = cache.getTogether([a, b, c]);
  expect(grown).toBeInstanceOf(Promise);
  expect(cache.getTogether([a, b])).toBe(first);
  const second = await settle(grown);
  expect(cache.getTogether([a, b])).toBe(second);
});

test("has older state for a batch while the chain does not answer another one that needs more", async () => {
  const { state, cache, subscribe } = setup();
  const [a, b, c] = [subscribe("1"), subscribe("2"), subscribe("3")];
  const first = await settle(cache.getTogether([a, b]));
  state.isDown = true;
  await vi.advanceTimersByTimeAsync(5_000);
  await expect(settle(cache.getTogether([a, b, c]), 2_000)).rejects.toThrow("down");
  expect(await settle(cache.getTogether([a, b]), 2_000)).toBe(first);
});

test("stops to read what no batch has used for a while", async () => {
  const { cache, subscribe, listBatches } = setup();
  const [a, b, c] = [subscribe("1"), subscribe("2"), subscribe("3")];
  await settle(cache.getTogether([a, b, c]));
  for (let seconds = 0; seconds < 40; seconds += 1) {
    await vi.advanceTimersByTimeAsync(1_000);
    expect(cache.getTogether([a, b])).not.toBeInstanceOf(Promise);
  }
  expect(listBatches().at(-1)).toEqual(["1", "2"]);
});

test("leaves out what the node rejects, and gives the others one state", async () => {
  const { state, cache, subscribe, listNames } = setup();
  state.rejects = (calls) => listNames(calls).includes("2");
  const [a, b, c, d] = [subscribe("1"), subscribe("2"), subscribe("3"), subscribe("4")];
  const together = await settle(cache.getTogether([a, b, c, d]), 2_000);
  expect(new Set(readValues(together, "134")).size).toBe(1);
  for (const subscription of [a, c, d]) expect(() => subscription.assertCoveredBy(together)).not.toThrow();
  expect(() => b.assertCoveredBy(together)).toThrow(expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE" }));
});
