import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { encodeWord } from "../../../../../src/chain/abi/abi-encoding.js";
import type { ChainClient, RpcCallResult } from "../../../../../src/chain/chain-client.js";
import { getNetwork } from "../../../../../src/hop/networks.js";
import { findUsdcSwapPool } from "../../../../../src/hop/usdc-swap-pools.js";
import type { ChainState } from "../../../../../src/quotes/state/chain-state.js";
import {
  type ChainStateSubscription,
  createChainStateCache,
} from "../../../../../src/quotes/state/chain-state-cache.js";
import type { ReadSet } from "../../../../../src/quotes/state/read-set.js";
import { createUniswapTickWindow, type SwapPoolState } from "../../../../../src/quotes/state/uniswap-tick-window.js";
import {
  createSharedProcesses,
  type SharedProcess,
  type SharedProcesses,
} from "../../../../support/stubs/shared-processes.js";

// Caches of several processes that share one chain. The gas price of the chain is the number of the read.

const polygon = getNetwork("mainnet").chains.get("polygon");
if (polygon === undefined) throw new Error("no polygon");
const chain = { ...polygon, multicallAddress: undefined };
const POLICY = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };
const READ_SET: ReadSet = {
  pools: new Map(),
  uintCalls: new Map([["a number", { to: `0x${"a1".repeat(20)}`, data: "0x12345678" }]]),
  optionalUintCalls: new Map([["an optional number", { to: `0x${"c3".repeat(20)}`, data: "0x12345678" }]]),
  deliveries: new Map(),
  tickWindows: new Map(),
  includesGasPrice: true,
};
const OTHER_READ_SET: ReadSet = {
  ...READ_SET,
  uintCalls: new Map([["another number", { to: `0x${"b2".repeat(20)}`, data: "0x12345678" }]]),
};

let processes: SharedProcesses;
const node = { reads: 0, latencyMs: 50, isDown: false };
beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_000_000_000 });
  processes = createSharedProcesses();
  Object.assign(node, { reads: 0, latencyMs: 50, isDown: false });
});
afterEach(() => {
  processes.close();
  vi.useRealTimers();
});

interface Participant extends SharedProcess {
  readonly subscription: ChainStateSubscription;
  readonly received: ChainState[];
  subscribe(key: string, readSet: ReadSet): ChainStateSubscription;
}

function start(clockOffsetMs = 0, canReach = () => true, latencyMs = () => node.latencyMs): Participant {
  const client: ChainClient = {
    slug: "polygon",
    send: async () => ({ number: `0x${(node.reads + 16).toString(16)}`, timestamp: "0x20" }),
    getLogs: () => Promise.reject(new Error("not expected")),
    async sendBatch(calls): Promise<readonly RpcCallResult[]> {
      node.reads += 1;
      const { reads } = node;
      await new Promise((resolve) => setTimeout(resolve, latencyMs()));
      if (node.isDown || !canReach()) throw new Error("down");
      return calls.map(({ method }) => ({
        result: method === "eth_call" ? `0x${encodeWord(BigInt(reads))}` : `0x${reads.toString(16)}`,
      }));
    },
  };
  const started = processes.start(clockOffsetMs);
  const received: ChainState[] = [];
  const cache = createChainStateCache({
    chain,
    client,
    clocks: { now: Date.now, monotonicNow: () => Date.now() + clockOffsetMs },
    sharing: {
      sharedState: started.sharedState,
      topic: "chain mainnet polygon",
      getTickWindow: createUniswapTickWindow,
      onReceived: (state) => received.push(state),
    },
  });
  const subscribe = (key: string, readSet: ReadSet) => cache.subscribe(key, readSet, POLICY);
  const exit = (): void => {
    cache.close();
    started.exit();
  };
  return { ...started, exit, subscription: subscribe("route", READ_SET), subscribe, received };
}

async function resolveState(result: ChainState | Promise<ChainState>, ms = 60): Promise<ChainState> {
  const state = Promise.resolve(result);
  state.catch(() => {});
  await vi.advanceTimersByTimeAsync(ms);
  return state;
}

/** Requests the state ten times a second. Returns the largest age in milliseconds, and how many requests failed. */
async function quoteFor(ms: number, participants: readonly Participant[]) {
  const outcome = { maxAgeMs: 0, failures: 0 };
  const ages: Promise<unknown>[] = [];
  for (let passed = 0; passed < ms; passed += 100) {
    for (const { subscription, sharedState } of participants) {
      const age = Promise.resolve(subscription.get()).then(({ readAt }) => {
        outcome.maxAgeMs = Math.max(outcome.maxAgeMs, Date.now() - sharedState.clock.toShared(readAt));
      });
      ages.push(age.catch(() => (outcome.failures += 1)));
    }
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(3_000);
  await Promise.all(ages);
  return outcome;
}

describe("several processes that quote one route", () => {
  test("read it as often as one process", async () => {
    const one = await quoteFor(60_000, [start()]);
    const readsOfOne = node.reads;
    await vi.advanceTimersByTimeAsync(60_000);
    node.reads = 0;
    processes.close();
    processes = createSharedProcesses();
    const all = [start(), start(), start()];
    // Their timers run at different times.
    for (const { subscription } of all) await resolveState(subscription.get(), 700);
    const three = await quoteFor(60_000, all);
    expect(readsOfOne).toBeGreaterThan(25);
    expect(node.reads / readsOfOne).toBeLessThanOrEqual(1.1);
    expect([one, three].map(({ failures }) => failures)).toEqual([0, 0]);
    expect(three.maxAgeMs).toBeLessThanOrEqual(POLICY.maxAgeMs);
    expect(all.map(({ received }) => received.length > 25)).toEqual([false, true, true]);
    // It is published: they rarely have to ask.
    for (const { sharedState } of all) expect(sharedState.stats().messages.answered).toBeLessThanOrEqual(3);
  });

  test.each([2_500, 4_500])("read it as often as one process although each read takes %i ms", async (latencyMs) => {
    node.latencyMs = latencyMs;
    await quoteFor(60_000, [start()]);
    const readsOfOne = node.reads;
    processes.close();
    processes = createSharedProcesses();
    await vi.advanceTimersByTimeAsync(60_000);
    node.reads = 0;
    const { failures } = await quoteFor(60_000, [start(), start(), start()]);
    expect(failures).toBe(0);
    // The first quotes have no state that they could use meanwhile: each process reads once.
    expect(node.reads).toBeLessThanOrEqual(readsOfOne + 3);
  });

  test("read it once for concurrent first quotes", async () => {
    const all = [start(), start(), start()];
    const states = await Promise.all(all.map(({ subscription }) => resolveState(subscription.get())));
    expect(states.map(({ gasPrice }) => gasPrice)).toEqual([1n, 1n, 1n]);
    expect(node.reads).toBe(1);
  });

  test("read as often where only a process that is not the reader quotes", async () => {
    const [, other] = [start(), start()];
    await vi.advanceTimersByTimeAsync(0);
    const { maxAgeMs } = await quoteFor(60_000, [other as Participant]);
    expect(node.reads).toBeLessThanOrEqual(33);
    expect(maxAgeMs).toBeLessThanOrEqual(POLICY.maxAgeMs);
    await vi.advanceTimersByTimeAsync(20_000);
    const { reads } = node;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(node.reads).toBe(reads);
  });

  test("join what they ask for in one turn into one read", async () => {
    const [, other] = [start(), start()] as [Participant, Participant];
    await vi.advanceTimersByTimeAsync(0);
    const results = [other.subscription.get(), other.subscribe("b", OTHER_READ_SET).get()];
    const states = await Promise.all(results.map((result) => resolveState(result)));
    expect(states.map(({ gasPrice }) => gasPrice)).toEqual([1n, 1n]);
    expect(states[1]?.getUint("another number")).toBe(1n);
    expect(node.reads).toBe(1);
  });

  test("agree on the age of a state although their clocks differ", async () => {
    const [reader, other] = [start(), start(5_000_000)];
    const readAt = Date.now();
    await resolveState(reader.subscription.get());
    await vi.advanceTimersByTimeAsync(1_000);
    const state = await resolveState(other.subscription.get(), 0);
    expect(state).toMatchObject({ readAt: readAt + 5_000_000, readAtUnixSeconds: readAt / 1000, gasPrice: 1n });
  });
});

describe("what another process has read", () => {
  test("does not replace the state of a route of which it lacks a value", async () => {
    const [, other] = [start(), start()];
    await vi.advanceTimersByTimeAsync(0);
    await resolveState(other.subscription.get());
    await resolveState(other.subscribe("b", OTHER_READ_SET).get());
    expect(other.received.map(({ gasPrice }) => gasPrice)).toContain(2n);
    const state = await resolveState(other.subscription.get(), 0);
    expect([state.gasPrice, state.getUint("a number")]).toEqual([1n, 1n]);
  });

  test("tells the tick windows of this one where the price is", async () => {
    const swapPool = findUsdcSwapPool("polygon") ?? expect.unreachable("USDC.e is swapped on polygon");
    const price = { tick: 7, feePips: 100n, tickSpacing: 1, liquidity: 1n, sqrtPriceX96: 2n ** 96n, zeroForOne: true };
    const pool: SwapPoolState = { ...price, bitmapWords: new Map(), liquidityNet: new Map() };
    const chainHas = { pool: undefined as SwapPoolState | undefined };
    const startWithWindow = () => {
      const participant = start();
      const followed: SwapPoolState[] = [];
      const planRead = () => ({ calls: new Map(), decodePool: () => chainHas.pool });
      const window = { pool: swapPool, follow: (state: SwapPoolState) => void followed.push(state), planRead };
      const swap = participant.subscribe("swap", { ...READ_SET, tickWindows: new Map([[swapPool.address, window]]) });
      // The window is in one of two read sets.
      const quote = () => Promise.all([participant.subscription, swap].map((each) => each.get()));
      return { ...participant, quote, followed };
    };
    const [reader, other] = [startWithWindow(), startWithWindow()];
    const quoteTwice = async () => {
      for (const process of [reader, other]) {
        const quoted = process.quote();
        await vi.advanceTimersByTimeAsync(2_500);
        await quoted;
      }
    };
    await quoteTwice();
    expect(other.received).not.toEqual([]);
    expect(other.followed).toEqual([]);
    chainHas.pool = pool;
    await quoteTwice();
    expect(other.followed.length).toBeGreaterThan(0);
    expect(other.followed).toEqual(other.followed.map(() => pool));
    expect(reader.followed).toEqual([]);
  });
});

describe("a process that starts later", () => {
  test("gets the present state without a read", async () => {
    const [first, second] = [start(), start()];
    await quoteFor(5_000, [first, second]);
    const { reads } = node;
    const state = await resolveState(start().subscription.get(), 0);
    expect(Date.now() - state.readAt).toBeLessThanOrEqual(POLICY.maxAgeMs);
    expect(node.reads).toBe(reads);
  });
});

describe("when the reader", () => {
  test("exits, another one goes on, and no quote fails or gets too old", async () => {
    const all = [start(), start(), start()] as const;
    await quoteFor(5_000, all);
    node.reads = 0;
    all[0].exit();
    const { maxAgeMs, failures } = await quoteFor(20_000, all.slice(1));
    expect(failures).toBe(0);
    expect(maxAgeMs).toBeLessThanOrEqual(POLICY.maxAgeMs);
    expect(node.reads).toBeLessThanOrEqual(13);
  });

  test("hangs, another one goes on, and no quote fails or gets too old", async () => {
    const all = [start(), start(), start()] as const;
    await quoteFor(5_000, all);
    all[0].stop();
    const { maxAgeMs, failures } = await quoteFor(20_000, all.slice(1));
    expect(failures).toBe(0);
    expect(maxAgeMs).toBeLessThanOrEqual(POLICY.maxAgeMs + 1_000);
    // What it publishes when it goes on is older than what the others have.
    all[0].resume();
    expect(await quoteFor(5_000, all)).toMatchObject({ failures: 0 });
  });

  test("hangs before it has answered a first quote, the quote is answered nevertheless", async () => {
    const [first, second] = [start(), start()];
    await vi.advanceTimersByTimeAsync(0);
    first.stop();
    const result = Promise.resolve(second.subscription.get());
    await vi.advanceTimersByTimeAsync(1_600);
    expect((await result).gasPrice).toBe(1n);
  });

  test("gives no answer, others read for themselves, and no quote fails or gets too old", async () => {
    // Its request to the chain hangs; it responds itself.
    const [first, second] = [
      start(
        0,
        () => true,
        () => 60_000,
      ),
      start(),
    ];
    await vi.advanceTimersByTimeAsync(0);
    const { failures, maxAgeMs } = await quoteFor(60_000, [second]);
    expect(failures).toBe(0);
    expect(first.sharedState.stats().readTopics).toEqual(["chain mainnet polygon"]);
    expect(maxAgeMs).toBeLessThanOrEqual(POLICY.maxAgeMs + 5_000);
  });

  test("cannot reach the chain, the others read for themselves", async () => {
    const isReachable = { value: false };
    const [first, second] = [start(0, () => isReachable.value), start()];
    await vi.advanceTimersByTimeAsync(0);
    const { failures, maxAgeMs } = await quoteFor(10_000, [second]);
    expect(failures).toBe(0);
    expect(maxAgeMs).toBeLessThanOrEqual(POLICY.maxAgeMs + 1_000);
    // It gets what the other one has read.
    expect(await resolveState(first.subscription.get(), 500)).toMatchObject({ gasPrice: BigInt(node.reads) });
  });
});

test("state that no process can read is an error everywhere, and old state is not served beyond its limit", async () => {
  const all = [start(), start()];
  await quoteFor(2_000, all);
  node.isDown = true;
  const { maxAgeMs, failures } = await quoteFor(40_000, all);
  expect(maxAgeMs).toBeLessThanOrEqual(POLICY.maxStaleMs);
  expect(failures).toBeGreaterThan(0);
});
