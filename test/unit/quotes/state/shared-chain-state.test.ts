import { beforeEach, describe, expect, test, vi } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { BlockAgeMonitor } from "../../../../src/chain/heads/block-age-monitor.js";
import { STATE_SOURCE } from "../../../../src/chain/heads/head-tracker.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { ChainState, ChainStateValues } from "../../../../src/quotes/state/chain-state.js";
import { ChainStateCache, type ChainStateSubscription } from "../../../../src/quotes/state/chain-state-cache.js";
import { createReadSet, createUintRead, EMPTY_READ_SET, type ReadSet } from "../../../../src/quotes/state/read-set.js";
import { parseChainState, printChainState } from "../../../../src/quotes/state/shared-chain-state.js";
import { settle as settleAfter } from "../../../support/steady-timers.js";
import { createSharedStoreStub, type SharedStoreStub } from "../../../support/stubs/shared-store.js";

// Several processes quote one chain.

const polygon = getNetwork("mainnet").chains.get("polygon");
if (polygon === undefined) throw new Error("no polygon");
const chain = { ...polygon, multicallAddress: undefined };
const POLICY = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };
const SLOW_POLICY = { refreshMs: 12_000, maxAgeMs: 24_000, maxStaleMs: 30_000 };
const LATENCY_MS = 40;

const READ_SETS = new Map(
  ["1", "2", "3"].map((name) => {
    const read = createUintRead({ to: "0x1", data: `0x0000000${name}` });
    return [name, createReadSet({ contractReads: [read] })];
  }),
);

let store: SharedStoreStub;
const node = { reads: [] as string[], block: 16, timestamp: 0, isDown: false, latencyMs: LATENCY_MS };
beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_000_000_000 });
  store = createSharedStoreStub();
  Object.assign(node, { reads: [], block: 16, timestamp: Date.now() / 1000, isDown: false, latencyMs: LATENCY_MS });
});

/** Starts a process. @param clockOffsetMs of its monotonic clock @param wallOffsetMs of its wall clock */
function start(clockOffsetMs = 0, wallOffsetMs = 0) {
  const clocks = { now: () => Date.now() + wallOffsetMs, monotonicNow: () => Date.now() + clockOffsetMs };
  const limits = { mainnet: new Map([["polygon", { maxBlockAgeMs: 120_000, blockTimeMs: 2_000 }]]) };
  const monitor = new BlockAgeMonitor({ limits, clocks });
  const client: ChainClient = {
    slug: "polygon",
    async send() {
      return { number: `0x${node.block.toString(16)}`, timestamp: `0x${Math.floor(node.timestamp).toString(16)}` };
    },
    async sendBatch(calls) {
      const names = calls.flatMap(({ params }) => (params[0] as { data?: string })?.data?.slice(-1) ?? []);
      await new Promise((resolve) => setTimeout(resolve, node.latencyMs));
      if (node.isDown) throw new Error("down");
      return calls.map(() => ({ result: `0x${names.length.toString(16).padStart(64, "0")}` }));
    },
    getLogs: () => Promise.reject(new Error("not expected")),
  };
  const record = ({ block, readAt }: ChainState): void => {
    const head = { number: 1, timestamp: Number(block.timeSeconds) };
    monitor.getHeadTracker("mainnet", "polygon").record(STATE_SOURCE, head, readAt);
  };
  const known = new Set<string>();
  const cache = new ChainStateCache({
    chain,
    client,
    clocks,
    isStalled: () => monitor.stalledCount() > 0,
    async onRead({ readSetCount }, run) {
      node.reads.push(`${readSetCount}`);
      const state = await run();
      record(state);
      return state;
    },
    sharing: {
      cache: store.start(),
      key: "mainnet polygon",
      // As routes are planned: those of others are known from the second time on.
      findReadSet(name) {
        if (known.has(name)) return READ_SETS.get(name);
        known.add(name);
        return undefined;
      },
      onReceived: record,
    },
  });
  const subscribe = (name: string, policy = POLICY) => {
    known.add(name);
    return cache.subscribe(name, READ_SETS.get(name) as ReadSet, policy, [name]);
  };
  return { cache, monitor, subscribe };
}

/** Advances the time, and requests the subscriptions meanwhile. Returns how often that failed. */
async function requestFor(ms: number, subscriptions: readonly ChainStateSubscription[]): Promise<number> {
  let failures = 0;
  for (let passed = 0; passed < ms; passed += 100) {
    for (const subscription of subscriptions)
      void Promise.resolve()
        .then(() => subscription.get())
        .catch(() => (failures += 1));
    await vi.advanceTimersByTimeAsync(100);
  }
  return failures;
}

const settle = <T>(result: T | Promise<T>, ms = 3 * LATENCY_MS): Promise<T> => settleAfter(result, ms);

describe("several processes with the same routes", () => {
  test("read as often as one does, whatever their clocks show", async () => {
    const countReads = async (offsets: readonly number[]): Promise<number> => {
      store.flush();
      node.reads.length = 0;
      const started = offsets.map((offset) => start(offset).subscribe("1"));
      expect(await requestFor(30_000, started)).toBe(0);
      // All of them idle.
      const count = node.reads.length;
      await vi.advanceTimersByTimeAsync(60_000);
      return count;
    };
    const one = await countReads([0]);
    expect(one).toBeGreaterThan(10);
    expect(await countReads([0, 500_000, -500_000])).toBeLessThanOrEqual(one + 1);
  });

  test("wait for the one that reads, and get what it has read, with its age", async () => {
    const [first, second] = [start(), start(500_000)];
    const reading = first.subscribe("1").get();
    await vi.advanceTimersByTimeAsync(10);
    const waiting = second.subscribe("1").get();
    const state = await settle(waiting, 100);
    expect(state.readAt - 500_000).toBe((await reading).readAt);
    expect(node.reads).toHaveLength(1);
  });

  test("read for themselves when the one that reads takes longer than a second", async () => {
    const [first, second] = [start(), start()];
    node.latencyMs = 60_000;
    void first.subscribe("1").get();
    await vi.advanceTimersByTimeAsync(10);
    node.latencyMs = LATENCY_MS;
    const waiting = settle(second.subscribe("1").get(), 1_500);
    await expect(waiting).resolves.toBeDefined();
    expect(node.reads).toHaveLength(2);
  });

  test("read for themselves without the store, and share again when it is back", async () => {
    const started = [start(), start()].map(({ subscribe }) => subscribe("1"));
    store.isReachable = false;
    expect(await requestFor(10_000, started)).toBe(0);
    const alone = node.reads.length;
    store.isReachable = true;
    expect(await requestFor(10_000, started)).toBe(0);
    expect(node.reads.length - alone).toBeLessThanOrEqual(alone / 2 + 1);
  });

  test.each([2, 4, 50])(
    "keep requests waiting for 6 ms at most when the store takes %i ms to answer",
    async (latencyMs) => {
      store.latencyMs = latencyMs;
      const subscription = start().subscribe("1");
      const measureWait = async (result: ChainState | Promise<ChainState>): Promise<number> => {
        const startedAt = Date.now();
        const endedAt = Promise.resolve(result).then(() => Date.now());
        await vi.advanceTimersByTimeAsync(1_000);
        return (await endedAt) - startedAt - LATENCY_MS;
      };
      expect(await measureWait(subscription.get())).toBeLessThanOrEqual(6);
      // As a quote does whose swap needs more than the first read tells.
      expect(await measureWait(subscription.reload())).toBeLessThanOrEqual(6);
    },
  );

  test.each([
    ["flushed", () => store.flush()],
    ["full of nonsense", () => store.replaceTexts(() => "nonsense")],
    ["full of states of another chain", () => store.replaceTexts((text) => text.replace("polygon", "optimism"))],
  ])("answer when the store is %s", async (_, spoil) => {
    const started = [start(), start()].map(({ subscribe }) => subscribe("1"));
    await requestFor(3_000, started);
    spoil();
    expect(await requestFor(3_000, started)).toBe(0);
  });

  test("are not served state that is older than its maximum age, and no older block", async () => {
    const [first, second] = [start(), start()];
    await settle(first.subscribe("1").get());
    await vi.advanceTimersByTimeAsync(POLICY.maxAgeMs + 20_000);
    node.block = 15;
    expect((await settle(second.subscribe("1").get())).block.number).toBe(15n);
    // The store keeps the newer block until it expires, and nobody is hindered by it.
    const third = await settle(start().subscribe("1").get());
    expect(third.block.number).toBe(15n);
  });
});

describe("several processes with different routes", () => {
  test("read what all of them need in one block", async () => {
    const [first, second] = [start(), start()];
    const subscriptions = [first.subscribe("1"), second.subscribe("2"), second.subscribe("3")];
    await requestFor(5_000, subscriptions);
    node.reads.length = 0;
    await requestFor(20_000, subscriptions);
    expect(node.reads.length).toBeLessThanOrEqual(11);
    expect(new Set(node.reads)).toEqual(new Set(["3"]));
  });

  test("no longer read what nobody has needed for a minute", async () => {
    const [first, second] = [start(), start()];
    const [ours, theirs] = [first.subscribe("1"), second.subscribe("2")];
    await requestFor(5_000, [ours, theirs]);
    await requestFor(90_000, [ours]);
    expect(node.reads.at(-1)).toBe("1");
  });

  test("use the state of a batch of routes that another one has read", async () => {
    const [first, second] = [start(), start()];
    const readBoth = ({ cache, subscribe }: typeof first) =>
      settle(cache.getTogether([subscribe("1"), subscribe("2")]));
    const { block } = await readBoth(first);
    expect((await readBoth(second)).block).toEqual(block);
    expect(node.reads).toEqual(["2"]);
  });
});

describe("a chain that is stalled", () => {
  beforeEach(() => {
    node.timestamp = Date.now() / 1000 - 600;
  });

  test("is read as often as by one process, and all see that it is stalled and that it moves on", async () => {
    const started = [start(0), start(500_000), start(-500_000)];
    const countStalled = () => started.filter(({ monitor }) => monitor.stalledCount() > 0).length;
    const subscriptions = started.map(({ cache }) => cache.subscribe("route", EMPTY_READ_SET, SLOW_POLICY));
    await requestFor(5_000, subscriptions);
    expect(countStalled()).toBe(3);
    node.reads.length = 0;
    await requestFor(60_000, subscriptions);
    expect(node.reads.length).toBeGreaterThan(20);
    expect(node.reads.length).toBeLessThanOrEqual(60);
    node.timestamp = Date.now() / 1000;
    await requestFor(5_000, subscriptions);
    expect(countStalled()).toBe(0);
  });

  test("is not taken for stalled because the wall clock of the process that reads is wrong", async () => {
    node.timestamp = Date.now() / 1000;
    const [reader, other] = [start(0, 600_000), start(500_000)];
    const subscribe = ({ cache }: typeof reader) => cache.subscribe("route", EMPTY_READ_SET, SLOW_POLICY);
    await settle(subscribe(reader).get());
    const { block, readAtUnixSeconds } = await settle(subscribe(other).get());
    expect(node.reads).toHaveLength(1);
    expect(readAtUnixSeconds - Number(block.timeSeconds)).toBe(0);
    expect(other.monitor.stalledCount()).toBe(0);
  });
});

describe("chain state", () => {
  const KEY = "mainnet polygon";
  const TIMESTAMPS = { readAt: 1_795_000_000_123.25, readAtUnixSeconds: 1_795_000_000 };
  const MAX_UINT256 = 2n ** 256n - 1n;
  const swapPool = {
    ...{ zeroForOne: true, sqrtPriceX96: 2n ** 96n, tick: -1, liquidity: 10n ** 18n, feePips: 100n, tickSpacing: 1 },
    bitmapWords: new Map([[-1, MAX_UINT256]]),
    liquidityNet: new Map([[-5, -(2n ** 127n)]]),
  };
  const VALUES: ChainStateValues = {
    ...TIMESTAMPS,
    block: { number: 123_456_789n, timeSeconds: 1_795_000_000n },
    gasPrice: 30_000_000_001n,
    values: new Map<string, unknown>([
      ["pool", { decimals: 18, balances: [1n, MAX_UINT256], aPrecise: 20_000n, swapFee: 4_000_000n }],
      ["uint", 0n],
      ["delivery", { gas: 250_000n, l1Fee: MAX_UINT256 }],
      ["swap pool", swapPool],
      ["invalid", undefined],
    ]),
  };

  test.each([
    ["with everything", VALUES],
    ["without a gas price", { ...VALUES, gasPrice: undefined, values: new Map() }],
  ])("%s is the same in another process", (_, values) => {
    expect(parseChainState(printChainState(values, KEY, "1"), KEY, TIMESTAMPS)).toEqual(values);
  });

  test("of another chain is not taken", () => {
    const printed = printChainState(VALUES, "goerli polygon", "1");
    expect(() => parseChainState(printed, KEY, TIMESTAMPS)).toThrow(TypeError);
  });
});
