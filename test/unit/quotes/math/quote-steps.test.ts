import { describe, expect, test } from "vitest";
import { createQuoteExplainer } from "../../../../src/quotes/math/quote.js";
import type { BridgeSnapshot, CctpSnapshot, RouteSteps } from "../../../../src/quotes/math/route-snapshot.js";
import { SwapRevertError } from "../../../../src/quotes/math/stable-swap.js";

/** Between two L2s. The SDK's pool fees are 4 bps, and 1 bps on nova. */
const bonded: BridgeSnapshot = {
  kind: "bridge",
  decimals: 6,
  sourceSlug: "gnosis",
  sourceIsL1: false,
  destinationSlug: "nova",
  destinationIsL1: false,
  feeMultiplier: 1,
  feeBps: 12,
  sourcePool: undefined,
  destinationPool: undefined,
  bonder: undefined,
  relayerFee: undefined,
};
const cctp: CctpSnapshot = {
  kind: "cctp",
  decimals: 6,
  sourceSlug: "gnosis",
  sourceIsL1: false,
  destinationSlug: "nova",
  destinationIsL1: false,
  feeMultiplier: 1,
  feeBps: 0,
  burnLimit: undefined,
  minBonderFee: 0n,
  sourceSwap: undefined,
  delivery: { gasPrice: 0n, gas: 0n, l1Fee: 0n },
  nativeUsd: 1,
  tokenUsd: 1,
};
/** Without pools and fees. */
const identity: RouteSteps = {
  bridge: (amount) => amount,
  payOut: (amount) => amount,
  computeRelativeFee: () => 0n,
  computeBonderFee: (fee) => fee,
  transactionFee: 0n,
  computeTransactionFee: () => 0n,
};

describe("an explained quote", () => {
  test("has the amounts after each step, and the sum of both fees", () => {
    const steps: RouteSteps = {
      bridge: (amount) => amount - 100n,
      payOut: (bridged) => bridged - 20n,
      computeRelativeFee: (bridged) => bridged / 100n,
      computeBonderFee: (relative) => relative + 7n,
      transactionFee: 300n,
      computeTransactionFee: () => 290n,
    };
    expect(createQuoteExplainer(bonded, steps)(20_000n)).toMatchObject({
      requiredLiquidity: 19_900n,
      amountOut: 19_880n,
      bonderFeeRelative: 199n,
      adjustedBonderFee: 206n,
      destinationTxFee: 300n,
      adjustedDestinationTxFee: 290n,
      totalFee: 496n,
      feeBps: 12,
    });
  });

  test.each([
    ["L2s", {}, 5n],
    ["L2s that have the same", { destinationSlug: "polygon" }, 8n],
    ["ethereum and an L2", { sourceSlug: "ethereum", sourceIsL1: true }, 1n],
    ["an L2 and ethereum", { destinationSlug: "ethereum", destinationIsL1: true }, 4n],
  ])("between %s counts the pool fees of the L2s", (_, ends, totalBps) => {
    const { lpFeeBps, lpFees } = createQuoteExplainer({ ...bonded, ...ends }, identity)(1_000_000n);
    expect(lpFees).toBe(totalBps * 100n);
    expect(lpFeeBps).toBe("destinationSlug" in ends ? 4 : 1);
  });

  test.each([
    [6, 2n, 25n, 12.5],
    [6, 3n, 2n, 0.666_666],
    [6, 30n, 1n, 0.033_333],
    [6, 1_000_001n, 1n, 0],
    [18, 3n, 2n, 2 / 3],
    [18, 10n ** 24n, 123_456_789n * 10n ** 18n, 123.456_789],
  ])("with %i decimals has the rate of %i to %i, rounded down: %d", (decimals, amountIn, amountOut, rate) => {
    const steps = { ...identity, payOut: () => amountOut };
    expect(createQuoteExplainer({ ...bonded, decimals }, steps)(amountIn).rate).toBe(rate);
  });
});

describe("the price impact", () => {
  test("compares the rate with that of 1,000 units, in percent", () => {
    // 1,000 units bring 800, and larger amounts three fifths.
    const steps = {
      ...identity,
      bridge: (amount: bigint) => amount + 1_000n,
      payOut: (bridged: bigint) => (bridged === 2_000n ? 800n : ((bridged - 1_000n) * 3n) / 5n),
    };
    const explain = createQuoteExplainer(bonded, steps);
    expect(explain(1_000n).priceImpact).toBe(0);
    expect(explain(5_000n).priceImpact).toBeCloseTo(25, 10);
  });

  test("is undefined where the pools cannot swap 1,000 units, or give nothing for them", () => {
    const reverting = {
      ...identity,
      payOut(amount: bigint) {
        if (amount === 1_000n) throw new SwapRevertError("too small");
        return amount;
      },
    };
    const empty = { ...identity, payOut: (amount: bigint) => (amount === 1_000n ? 0n : amount) };
    for (const steps of [reverting, empty]) {
      expect(createQuoteExplainer(bonded, steps)(5_000n)).toMatchObject({
        ...{ amountOut: 5_000n, rate: 1, priceImpact: undefined },
      });
    }
  });

  test("hides no other error", () => {
    const steps = {
      ...identity,
      bridge: (): never => {
        throw new TypeError("a mistake");
      },
    };
    expect(() => createQuoteExplainer(bonded, steps)).toThrow("a mistake");
  });
});

test("by CCTP, there are no pool fees and no price impact, and the output is that of the swap before", () => {
  const explain = createQuoteExplainer(cctp, identity);
  const expected = { priceImpact: 0, lpFeeBps: 0, lpFees: 0n };
  expect(explain(1_000_000n)).toMatchObject({ ...expected, amountOut: 1_000_000n, rate: 1 });
  expect(explain(1_000_000n, 900_000n)).toMatchObject({ ...expected, amountOut: 900_000n, rate: 0.9 });
});
