import { describe, expect, test } from "vitest";
import {
  type BridgeSnapshot,
  type CctpSnapshot,
  createRouteSteps,
} from "../../../../src/quotes/math/route-snapshot.js";
import type { StableSwapPool } from "../../../../src/quotes/math/stable-swap.js";
import { calculateSwap } from "../../../support/reference/stable-swap.js";

const UNIT = 10n ** 6n;

/** At which one wei of the native token is worth one unit of a token with 6 decimals. */
const unitPrices = { nativeUsd: 1e12, tokenUsd: 1 };
const deposit: BridgeSnapshot = {
  kind: "bridge",
  decimals: 6,
  sourceSlug: "ethereum",
  sourceIsL1: true,
  destinationSlug: "polygon",
  destinationIsL1: false,
  feeMultiplier: 2,
  feeBps: 25,
  sourcePool: undefined,
  destinationPool: undefined,
  bonder: undefined,
  relayerFee: 100n,
};
const bonder = { ...unitPrices, minFee: 0n, delivery: { gasPrice: 1_000n, gas: 100_000n, l1Fee: 7n } };
const bonded: BridgeSnapshot = { ...deposit, sourceSlug: "gnosis", sourceIsL1: false, bonder, relayerFee: undefined };
const cctp: CctpSnapshot = {
  ...unitPrices,
  kind: "cctp",
  decimals: 6,
  sourceSlug: "polygon",
  sourceIsL1: false,
  destinationSlug: "arbitrum",
  destinationIsL1: false,
  feeMultiplier: 1,
  feeBps: 25,
  burnLimit: undefined,
  minBonderFee: 300n,
  sourceSwap: undefined,
  delivery: { gasPrice: 3n, gas: 10_000n, l1Fee: 20_000n },
};
const pool = (canonical: bigint, hTokens: bigint): StableSwapPool => ({
  decimals: 6,
  balances: [canonical * UNIT, hTokens * UNIT],
  aPrecise: 20_000n,
  swapFee: 4_000_000n,
});
/** Of a pool that is short of hTokens, one brings more than one token; of one that is long of them, less. */
const shortOfHTokens = pool(3_000_000n, 300_000n);
const longOfHTokens = pool(300_000n, 3_000_000n);

describe("a transfer from ethereum", () => {
  test("costs the relayer's fee, with the factor of the destination", () => {
    const toPolygon = createRouteSteps(deposit);
    expect([toPolygon.transactionFee, toPolygon.computeTransactionFee()]).toEqual([100n, 100n]);
    const toBase = createRouteSteps({ ...deposit, destinationSlug: "base" });
    expect([toBase.transactionFee, toBase.computeTransactionFee()]).toEqual([200n, 200n]);
    expect(createRouteSteps({ ...deposit, relayerFee: undefined }).transactionFee).toBe(0n);
  });

  test("has no bonder's fee, and is swapped on the destination alone", () => {
    const steps = createRouteSteps({ ...deposit, destinationPool: longOfHTokens });
    expect(steps.bridge(1_000n * UNIT)).toBe(1_000n * UNIT);
    expect(steps.payOut(1_000n * UNIT)).toBe(calculateSwap(longOfHTokens, 1, 1_000n * UNIT));
    expect(steps.computeRelativeFee(1_000n * UNIT)).toBe(0n);
    expect(steps.computeBonderFee(0n)).toBe(0n);
  });
});

describe("a transfer from an L2", () => {
  test("costs the gas of delivery and settlement, and the L1 fee, converted to the token", () => {
    // Settlement on polygon takes 5,933.
    expect(createRouteSteps(bonded).transactionFee).toBe(1_000n * 105_933n + 7n);
    const cheaper = { ...bonded, bonder: { ...bonder, nativeUsd: 2.5e11 } };
    expect(createRouteSteps(cheaper).transactionFee).toBe((1_000n * 105_933n + 7n) / 4n);
  });

  test("costs the delivery in the token, at the rate of the destination's pool", () => {
    const steps = createRouteSteps({ ...bonded, destinationPool: shortOfHTokens });
    expect(steps.transactionFee).toBe(105_933_007n);
    expect(steps.computeTransactionFee()).toBe(calculateSwap(shortOfHTokens, 1, 105_933_007n));
    expect(steps.computeTransactionFee()).toBeGreaterThan(105_933_007n);
    expect(steps.computeTransactionFee()).toBe(steps.computeTransactionFee());
  });

  test("has a bonder's fee in proportion to what is bridged", () => {
    expect(createRouteSteps(bonded).computeRelativeFee(1_000_000n)).toBe(2_500n);
    expect(createRouteSteps(bonded).computeRelativeFee(399n)).toBe(0n);
  });

  test.each([
    ["as the pool prices it, where that is more", shortOfHTokens, calculateSwap(shortOfHTokens, 1, 50n * UNIT)],
    ["as it is, where the pool gives less for it", longOfHTokens, 50n * UNIT],
    ["as it is, without a pool", undefined, 50n * UNIT],
  ])("charges the relative fee %s", (_, destinationPool, expected) => {
    const steps = createRouteSteps({ ...bonded, destinationPool });
    expect(steps.computeBonderFee(50n * UNIT)).toBe(expected);
    if (destinationPool === shortOfHTokens) expect(expected).toBeGreaterThan(50n * UNIT);
    if (destinationPool === longOfHTokens) expect(calculateSwap(longOfHTokens, 1, 50n * UNIT)).toBeLessThan(50n * UNIT);
  });

  test("charges the minimum fee if the relative one is lower", () => {
    const { computeBonderFee } = createRouteSteps({ ...bonded, bonder: { ...bonder, minFee: 1_000n } });
    expect([0n, 999n, 1_000n, 1_001n].map(computeBonderFee)).toEqual([1_000n, 1_000n, 1_000n, 1_001n]);
  });

  test("asks no pool about an amount of 0", () => {
    const steps = createRouteSteps({ ...bonded, sourcePool: pool(0n, 0n), destinationPool: pool(0n, 0n) });
    expect([steps.bridge(0n), steps.payOut(0n), steps.computeBonderFee(0n)]).toEqual([0n, 0n, 0n]);
    expect(() => steps.payOut(1n)).toThrow();
  });
});

describe("a transfer by CCTP", () => {
  test("passes on the whole amount, for the bridge's own fee", () => {
    const steps = createRouteSteps(cctp);
    expect([steps.bridge(1_000n), steps.payOut(1_000n)]).toEqual([1_000n, 1_000n]);
    expect(steps.computeRelativeFee(1_000_000n)).toBe(0n);
    expect(steps.computeBonderFee(0n)).toBe(300n);
  });

  test.each([
    ["to an L2 is free up to 50,000 units", "arbitrum", 20_000n, 50_000n, 0n],
    ["to an L2 is charged above", "arbitrum", 20_001n, 50_001n, 50_001n],
    ["to ethereum is charged always", "ethereum", 20_000n, 50_000n, 50_000n],
  ])("%s of gas and L1 fee", (_, destinationSlug, l1Fee, cost, charged) => {
    const delivery = { ...cctp.delivery, l1Fee };
    const ends = { destinationSlug, destinationIsL1: destinationSlug === "ethereum" };
    const steps = createRouteSteps({ ...cctp, ...ends, delivery });
    expect([steps.transactionFee, steps.computeTransactionFee()]).toEqual([cost, charged]);
  });
});
