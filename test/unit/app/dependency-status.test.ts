import { describe, expect, test } from "vitest";
import { createStateReader, type StateDeps } from "../../../src/app/dependency-status.js";
import type { ChainState } from "../../../src/chain/chains.js";

const now = 1_795_000_000_000;
const steady = 5_000_000;
const base: ChainState = {
  network: "mainnet",
  chain: "arbitrum",
  chainId: 1,
  endpoints: [],
  head: undefined,
  usedAt: undefined,
};
const coverage = { from: 0, fromTimestamp: 0, to: 100, observedAt: now - 60_000, finalTo: 90 };
const off = { settings_mainnet: undefined, settings_goerli: undefined, prices: undefined, attestations: undefined };

function setup(states: readonly ChainState[], deps: Partial<StateDeps["statuses"]> = {}) {
  const looked: string[] = [];
  const state = createStateReader({
    chains: { states: () => states, look: (network, chain) => looked.push(`${network} ${chain}`) },
    upstreams: {
      health: () => ({ ...off, prices: { state: "ok", ageMs: 7 } }),
      look: () => looked.push("sources"),
    },
    statuses: { explorerHealth: () => ({ state: "failing", ageMs: undefined }), indexCoverage: undefined, ...deps },
    now: () => now,
    steady: () => steady,
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
  const used = { ...goerli, chain: "optimism", usedAt: steady - 599_999 };
  const { state, looked } = setup([base, goerli, used, { ...goerli, chain: "polygon", usedAt: steady - 600_000 }]);
  expect(state.read().chains).toEqual([base, used]);
  expect(looked).toEqual([]);
  state.look();
  expect(looked).toEqual(["mainnet arbitrum", "goerli optimism", "sources"]);
});

describe("the index's lag", () => {
  const lag = (chain: Partial<ChainState>, known: typeof coverage | undefined = coverage) =>
    setup([{ ...base, ...chain }], { indexCoverage: () => known }).state.read().index;

  test("is not there without an index, and empty before it has begun", () => {
    expect(setup([base]).state.read().index).toBeUndefined();
    expect(setup([base], { indexCoverage: () => undefined }).state.read().index).toEqual([]);
  });

  test("is what is missing to the chain's head", () => {
    const head = { number: 130, time: 0, seenAt: 0 };
    expect(lag({ head })).toEqual([{ chain: "arbitrum", lagBlocks: 30 }]);
    expect(lag({ head: { ...head, number: 99 } })).toEqual([{ chain: "arbitrum", lagBlocks: 0 }]);
  });

  test("is reckoned by the time since the last look where no head is known", () => {
    // Four blocks a second.
    expect(lag({})).toEqual([{ chain: "arbitrum", lagBlocks: 240 }]);
  });
});
