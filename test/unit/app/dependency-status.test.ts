import { describe, expect, test } from "vitest";
import { createDependencyMonitor, type DependencyMonitorDeps } from "../../../src/app/dependency-status.js";
import type { ChainPoolState } from "../../../src/chain/chains.js";

const now = 1_795_000_000_000;
const steady = 5_000_000;
const base: ChainPoolState = {
  network: "mainnet",
  chain: "arbitrum",
  chainId: 1,
  endpoints: [],
  head: undefined,
  lastUsedAt: undefined,
};
const coverage = { fromBlock: 0, fromTimestamp: 0, toBlock: 100, observedAtMs: now - 60_000, finalizedBlock: 90 };
const off = { settings_mainnet: undefined, settings_goerli: undefined, prices: undefined, attestations: undefined };

function setup(states: readonly ChainPoolState[], deps: Partial<DependencyMonitorDeps["statuses"]> = {}) {
  const looked: string[] = [];
  const state = createDependencyMonitor({
    chains: { listStates: () => states, probe: (network, chain) => looked.push(`${network} ${chain}`) },
    upstreams: {
      health: () => ({ ...off, prices: { state: "ok", ageMs: 7 } }),
      refreshStale: () => looked.push("sources"),
    },
    statuses: { explorerHealth: () => ({ state: "failing", ageMs: undefined }), indexCoverage: undefined, ...deps },
    now: () => now,
    monotonicNow: () => steady,
  });
  return { state, looked };
}

test("sources that are off are told as such", () => {
  const { sources } = setup([]).state.read();
  expect(sources.map(({ source, state }) => `${source} ${state}`)).toEqual([
    ...["settings_mainnet off", "settings_goerli off", "prices ok", "explorer failing", "attestations off"],
  ]);
});

test("of other networks than mainnet only what somebody uses is told and looked at", () => {
  const goerli = { ...base, network: "goerli" };
  const used = { ...goerli, chain: "optimism", lastUsedAt: steady - 599_999 };
  const { state, looked } = setup([base, goerli, used, { ...goerli, chain: "polygon", lastUsedAt: steady - 600_000 }]);
  expect(state.read().chains).toEqual([base, used]);
  expect(looked).toEqual([]);
  state.probe();
  expect(looked).toEqual(["mainnet arbitrum", "goerli optimism", "sources"]);
});

describe("the index's lag", () => {
  const lag = (chain: Partial<ChainPoolState>, known: typeof coverage | undefined = coverage) =>
    setup([{ ...base, ...chain }], { indexCoverage: () => known }).state.read().index;

  test("is not there without an index, and empty before it has begun", () => {
    expect(setup([base]).state.read().index).toBeUndefined();
    expect(setup([base], { indexCoverage: () => undefined }).state.read().index).toEqual([]);
  });

  test("is what is missing to the chain's head", () => {
    const head = { number: 130, timestamp: 0, observedAt: 0 };
    expect(lag({ head })).toEqual([{ chain: "arbitrum", lagBlocks: 30 }]);
    expect(lag({ head: { ...head, number: 99 } })).toEqual([{ chain: "arbitrum", lagBlocks: 0 }]);
  });

  test("is reckoned by the time since the last look where no head is known", () => {
    // Four blocks a second.
    expect(lag({})).toEqual([{ chain: "arbitrum", lagBlocks: 240 }]);
  });
});
