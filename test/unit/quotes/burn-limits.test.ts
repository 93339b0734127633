import { expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { BurnLimits } from "../../../src/quotes/burn-limits.js";
import type { ChainState } from "../../../src/quotes/state/chain-state.js";
import { planBurnLimit } from "../../../src/quotes/state/route-liquidity.js";
import { createQuoteChainStub } from "../../support/stubs/quote-chain-stub.js";
import { createChainState } from "../../support/stubs/quote-routes.js";

const mainnet = getNetwork("mainnet");
const CCTP_CHAINS = ["arbitrum", "base", "ethereum", "optimism", "polygon"];

function setup(burnLimit: (slug: string) => bigint | undefined = () => undefined) {
  const state = { time: 0 };
  const reads: string[] = [];
  const getClient = (slug: string): ChainClient => {
    reads.push(slug);
    const limit = burnLimit(slug);
    return createQuoteChainStub({
      ...{ slug, pools: new Map(), gasPrice: 1n, minBonderFee: 1n },
      ...{ estimateGas: () => 1n, l1Fee: () => 1n, minBonderFeeAbsolute: () => 1n },
      ...(limit !== undefined && { burnLimit: limit }),
    });
  };
  const clocks = { now: () => 0, monotonicNow: () => state.time };
  const limits = new BurnLimits(mainnet, { getClient, hasCustomEndpoint: () => false }, clocks);
  return { limits, reads, state };
}

/** A state of optimism as quotes read it. */
function readState(minter: bigint, limit: bigint | undefined): ChainState {
  const source = mainnet.chains.get("optimism");
  if (source === undefined) throw new Error("no such chain");
  const { sourceReads } = planBurnLimit({ network: mainnet, source });
  return createChainState(sourceReads.map(({ key }, index) => [key, [minter, limit][index]]));
}

test("reads the limits that no quote reads, every ten minutes", async () => {
  let base: bigint | undefined = 12_500_000n;
  const { limits, reads, state } = setup((slug) => (slug === "base" ? base : 10n ** 12n));
  limits.refreshStale();
  limits.refreshStale();
  expect(reads.sort()).toEqual(CCTP_CHAINS);
  await expect.poll(() => limits.toUsdc().size).toBe(5);
  expect(Object.fromEntries(limits.toUsdc())).toMatchObject({ ethereum: 1_000_000, base: 12.5 });
  state.time += 10 * 60_000 - 1;
  limits.refreshStale();
  expect(reads).toHaveLength(5);
  base = undefined;
  state.time += 1;
  limits.refreshStale();
  expect(reads).toHaveLength(10);
  // A limit that is not known any more is not shown.
  await expect.poll(() => limits.toUsdc().has("base")).toBe(false);
});

test("takes the limits that quotes read", () => {
  const { limits, reads } = setup();
  const minter = BigInt("0x33E76C5C31cb928dc6FE6487AB3b2C0769B1A1e3");
  limits.record("optimism", readState(minter, 0n));
  limits.record("gnosis", readState(minter, 0n));
  expect([...limits.toUsdc()]).toEqual([["optimism", 0]]);
  // A state of routes of other tokens.
  limits.record("optimism", createChainState());
  expect(limits.toUsdc().get("optimism")).toBe(0);
  limits.refreshStale();
  expect(reads).not.toContain("optimism");
  limits.record("optimism", readState(minter + 1n, 5n));
  expect(limits.toUsdc().has("optimism")).toBe(false);
});
