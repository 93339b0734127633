import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBlockAgeMonitor } from "../../../../../src/chain/block-age/block-age-monitor.js";
import { STATE_SOURCE } from "../../../../../src/chain/block-age/chain-history.js";
import type { ChainClient } from "../../../../../src/chain/chain-client.js";
import { getNetwork } from "../../../../../src/hop/networks.js";
import type { ChainState } from "../../../../../src/quotes/state/chain-state.js";
import { createChainStateCache } from "../../../../../src/quotes/state/chain-state-cache.js";
import { EMPTY_READ_SET } from "../../../../../src/quotes/state/read-set.js";
import { createUniswapTickWindow } from "../../../../../src/quotes/state/uniswap-tick-window.js";
import { createSharedProcesses, type SharedProcesses } from "../../../../support/stubs/shared-processes.js";

// Several processes quote a chain that stands still: one of them reads it for all, and all judge alike.

const polygon = getNetwork("mainnet").chains.get("polygon");
if (polygon === undefined) throw new Error("no polygon");
const chain = { ...polygon, multicallAddress: undefined };
const POLICY = { refreshMs: 12_000, maxAgeMs: 24_000, maxStaleMs: 30_000 };
const limits = { mainnet: new Map([["polygon", { maxBlockAgeMs: 120_000, blockTimeMs: 2_000 }]]) };

let processes: SharedProcesses;
const node = { reads: 0, timestamp: 0 };
beforeEach(() => {
  vi.useFakeTimers({ now: 1_795_000_000_000 });
  processes = createSharedProcesses();
  Object.assign(node, { reads: 0, timestamp: Date.now() / 1000 - 600 });
});
afterEach(() => {
  processes.close();
  vi.useRealTimers();
});

function start(clockOffsetMs: number, wallOffsetMs = 0) {
  const clocks = { now: () => Date.now() + wallOffsetMs, monotonicNow: () => Date.now() + clockOffsetMs };
  const monitor = createBlockAgeMonitor({ limits, clocks });
  const client: ChainClient = {
    slug: "polygon",
    async send() {
      node.reads += 1;
      return { number: "0x10", timestamp: `0x${node.timestamp.toString(16)}` };
    },
    sendBatch: async () => [],
    getLogs: () => Promise.reject(new Error("not expected")),
  };
  const record = ({ block, readAt }: ChainState): void => {
    const read = { timestamp: Number(block.timeSeconds), readAt };
    monitor.recordHead("mainnet", "polygon", { source: STATE_SOURCE, ...read });
  };
  const { sharedState } = processes.start(clockOffsetMs);
  const cache = createChainStateCache({
    ...{ chain, client, clocks },
    isStalled: () => monitor.stalledCount() > 0,
    async onRead(_, run) {
      const state = await run();
      record(state);
      return state;
    },
    sharing: { sharedState, topic: "polygon", getTickWindow: createUniswapTickWindow, onReceived: record },
  });
  return { monitor, subscription: cache.subscribe("route", EMPTY_READ_SET, POLICY) };
}

test("they read it as often as one process, and see alike that it stands still and that it moves", async () => {
  const started = [start(0), start(500_000), start(-500_000)];
  const countStalled = () => started.filter(({ monitor }) => monitor.stalledCount() > 0).length;
  async function requestFor(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 100) {
      for (const { subscription } of started) void Promise.resolve(subscription.get()).catch(() => {});
      await vi.advanceTimersByTimeAsync(100);
    }
  }
  await requestFor(5_000);
  expect(countStalled()).toBe(3);
  node.reads = 0;
  await requestFor(60_000);
  expect(node.reads).toBeGreaterThan(20);
  expect(node.reads).toBeLessThanOrEqual(60);
  node.timestamp = Date.now() / 1000;
  await requestFor(5_000);
  expect(countStalled()).toBe(0);
});

test("a wrong wall clock of the process that reads makes the chain stand still for no other", async () => {
  node.timestamp = Date.now() / 1000;
  const [reader, other] = [start(0, 600_000), start(500_000)];
  await reader.subscription.get();
  const { block, readAtUnixSeconds } = await other.subscription.get();
  expect([node.reads, readAtUnixSeconds - Number(block.timeSeconds)]).toEqual([1, 600]);
  expect(other.monitor.stalledCount()).toBe(0);
});
