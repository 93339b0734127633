import { describe, expect, test } from "vitest";
import { createDependencyMonitor, type DependencyMonitorDeps } from "../../../src/app/dependency-monitor.js";
import type { ChainEndpointsState } from "../../../src/chain/chains.js";
import { ComparedTokenPrices } from "../../../src/prices/token-prices.js";

const NOW = 1_795_000_000_000;
const MONOTONIC_NOW = 5_000_000;
const arbitrum: ChainEndpointsState = {
  network: "mainnet",
  chain: "arbitrum",
  chainId: 1,
  endpoints: [],
  head: undefined,
  isStalled: false,
  isChecked: true,
  lastUsedAt: undefined,
};
const coverage = {
  fromBlock: 0,
  fromTimestamp: 0,
  toBlock: 100,
  toTimestamp: 0,
  observedAtMs: NOW - 60_000,
  finalizedBlock: 90,
};
const noSources = {
  settings_mainnet: undefined,
  settings_goerli: undefined,
  prices: undefined,
  chainlink_ethereum: undefined,
  chainlink_arbitrum: undefined,
  attestations: undefined,
};

function setup(states: readonly ChainEndpointsState[], index?: DependencyMonitorDeps["index"]) {
  const probed: string[] = [];
  const monitor = createDependencyMonitor({
    chains: { listStates: () => states, probe: (network, chain) => probed.push(`${network} ${chain}`) },
    offChainSources: {
      health: () => ({ ...noSources, prices: { state: "ok", ageMs: 7 } }),
      refreshStale: () => probed.push("sources"),
      prices: Object.assign(new ComparedTokenPrices({ fixedPricesUsd: new Map(), sources: [] }), {
        compareSources: () => ({ comparisons: [{ token: "ETH", difference: 0.03 }], distrustedTokens: ["DAI"] }),
      }),
      listRefusedFeeds: () => [{ token: "SNX", reason: "stale" }],
    },
    quotes: {
      burnLimits: { refreshStale: () => probed.push("burn limits"), toUsdc: () => new Map([["optimism", 0]]) },
    },
    transfers: { explorerHealth: () => ({ state: "failing", ageMs: undefined }) },
    index,
    now: () => NOW,
    monotonicNow: () => MONOTONIC_NOW,
  });
  return { monitor, probed };
}

test("reports disabled sources as off", () => {
  const { sources } = setup([]).monitor.read();
  expect(sources.map(({ source, state }) => `${source} ${state}`)).toEqual([
    ...["settings_mainnet off", "settings_goerli off", "prices ok", "chainlink_ethereum off"],
    ...["chainlink_arbitrum off", "explorer failing", "attestations off"],
  ]);
});

test("reports how far the sources of prices agree", () => {
  expect(setup([]).monitor.read().prices).toEqual({
    differences: [{ token: "ETH", difference: 0.03 }],
    distrustedTokens: ["DAI"],
    refusedFeeds: [{ token: "SNX", reason: "stale" }],
  });
});

test("reports the burn limits of CCTP", () => {
  expect(setup([]).monitor.read().burnLimitsUsdc).toEqual(new Map([["optimism", 0]]));
});

test("reports and probes networks other than mainnet only while they are in use", () => {
  const goerli = { ...arbitrum, network: "goerli" };
  const used = { ...goerli, chain: "optimism", lastUsedAt: MONOTONIC_NOW - 599_999 };
  const unused = { ...goerli, chain: "polygon", lastUsedAt: MONOTONIC_NOW - 600_000 };
  const { monitor, probed } = setup([arbitrum, goerli, used, unused]);
  expect(monitor.read().chains).toEqual([arbitrum, used]);
  expect(probed).toEqual([]);
  monitor.probe();
  expect(probed).toEqual(["mainnet arbitrum", "goerli optimism", "sources", "burn limits"]);
});

describe("the index lag", () => {
  const readLag = (chain: Partial<ChainEndpointsState>, covered: typeof coverage | null = coverage) => {
    const index = { getCoverage: () => covered ?? undefined, getServerStatus: () => undefined };
    return setup([{ ...arbitrum, ...chain }], index).monitor.read().index;
  };

  test("is undefined without an index and empty before the index covers any block", () => {
    expect(setup([arbitrum]).monitor.read().index).toBeUndefined();
    expect(readLag({}, null)).toEqual([]);
  });

  test("is the distance to the chain's head", () => {
    const head = { number: 130, timestamp: 0, observedAt: 0 };
    expect(readLag({ head })).toEqual([{ chain: "arbitrum", lagBlocks: 30 }]);
    expect(readLag({ head: { ...head, number: 99 } })).toEqual([{ chain: "arbitrum", lagBlocks: 0 }]);
  });

  test("is estimated from the time since the last poll when no head is known", () => {
    // Four blocks a second.
    expect(readLag({})).toEqual([{ chain: "arbitrum", lagBlocks: 240 }]);
  });
});
