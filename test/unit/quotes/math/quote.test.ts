import { describe, expect, test, vi } from "vitest";
import { createQuoteExplainer, RouteQuoter } from "../../../../src/quotes/math/quote.js";
import type { BridgeSnapshot, CctpSnapshot } from "../../../../src/quotes/math/route-snapshot.js";
import { type StableSwapPool, SwapRevertError } from "../../../../src/quotes/math/stable-swap.js";

const NOW = 1_800_000_000;
const SEVEN_DAYS = 604_800;
const UNIT = 10n ** 6n;

const pool: StableSwapPool = {
  decimals: 6,
  balances: [900_000n * UNIT, 1_100_000n * UNIT],
  aPrecise: 20_000n,
  swapFee: 4_000_000n,
};
/** From ethereum, to a chain without a pool, with a relayer's fee of 100. */
const deposit: BridgeSnapshot = {
  kind: "bridge",
  decimals: 6,
  sourceSlug: "ethereum",
  sourceIsL1: true,
  destinationSlug: "polygon",
  destinationIsL1: false,
  feeMultiplier: 1,
  feeBps: 0,
  sourcePool: undefined,
  destinationPool: undefined,
  bonder: undefined,
  relayerFee: 100n,
};
/** Between two chains without pools: the bonder gets 10 of 10,000, and 50,000 wei are 50,000 of the token. */
const bonded: BridgeSnapshot = {
  ...deposit,
  sourceSlug: "gnosis",
  sourceIsL1: false,
  feeBps: 10,
  bonder: {
    minFee: 0n,
    delivery: { gasPrice: 0n, gas: 100n, l1Fee: 50_000n },
    nativeUsd: 1e12,
    tokenUsd: 1,
  },
  relayerFee: undefined,
};
const cctp: CctpSnapshot = {
  kind: "cctp",
  decimals: 6,
  sourceSlug: "polygon",
  sourceIsL1: false,
  destinationSlug: "arbitrum",
  destinationIsL1: false,
  feeMultiplier: 1,
  feeBps: 0,
  burnLimit: undefined,
  minBonderFee: 300n,
  sourceSwap: undefined,
  delivery: { gasPrice: 0n, gas: 0n, l1Fee: 0n },
  nativeUsd: 1,
  tokenUsd: 1,
};

describe("a quote", () => {
  test("from ethereum has the minimum received as both minimum outputs", () => {
    expect(new RouteQuoter(deposit).quote(1_000n, 0.5, NOW)).toEqual({
      amountIn: 1_000n,
      amountOutMin: 895n,
      destinationAmountOutMin: 895n,
      bonderFee: 100n,
      estimatedReceived: 900n,
      deadline: NOW + SEVEN_DAYS,
      destinationDeadline: NOW + SEVEN_DAYS,
    });
  });

  test("receives nothing where the fee is as high as the output, or higher", () => {
    const quoter = new RouteQuoter(deposit);
    expect(quoter.quote(101n, 0, NOW).estimatedReceived).toBe(1n);
    for (const amount of [100n, 99n]) {
      expect(quoter.quote(amount, 0, NOW)).toMatchObject({ estimatedReceived: 0n, bonderFee: 100n, amountOutMin: 0n });
    }
  });

  test("by CCTP pays out what the swap before it gave", () => {
    const quoter = new RouteQuoter(cctp);
    const quote = quoter.quote(1_000n, 0, NOW, 990n);
    expect(quote).toMatchObject({ amountIn: 1_000n, estimatedReceived: 690n, bonderFee: 300n });
    expect(quoter.quote(1_000n, 0, NOW)).toMatchObject({ estimatedReceived: 700n });
    const breakdown = { amountOut: 990n, totalFee: 300n };
    expect(quoter.explain(1_000n, 0, NOW, 990n)).toMatchObject({ quote, breakdown });
  });

  test.each([
    ["to an L2 is free up to 50,000 units", "arbitrum", 50_000n, 0n],
    ["to an L2 is charged above", "arbitrum", 50_001n, 50_001n],
    ["to ethereum is charged always", "ethereum", 50_000n, 50_000n],
  ])("by CCTP, the delivery %s", (_, destinationSlug, l1Fee, charged) => {
    const ends = { destinationSlug, destinationIsL1: destinationSlug === "ethereum", nativeUsd: 1e12 };
    const quoter = new RouteQuoter({ ...cctp, ...ends, delivery: { gasPrice: 0n, gas: 0n, l1Fee } });
    expect(quoter.quote(1_000_000n, 0, NOW).bonderFee).toBe(cctp.minBonderFee + charged);
  });

  test("fails where a pool cannot swap the amount", () => {
    const quoter = new RouteQuoter({ ...bonded, sourcePool: pool });
    expect(() => quoter.quote(2n ** 255n, 0, NOW)).toThrow(SwapRevertError);
  });
});

test("the price impact is undefined where the pools cannot swap 1,000 units, or give nothing for them", () => {
  const identity = (amount: bigint): bigint => amount;
  const steps = {
    ...{ bridge: identity, computeBonderFee: identity, transactionFee: 0n },
    ...{ computeRelativeFee: () => 0n, computeTransactionFee: () => 0n },
  };
  const empty = (amount: bigint): bigint => (amount === 1_000n ? 0n : amount);
  const reverting = (amount: bigint): bigint => {
    if (amount === 1_000n) throw new SwapRevertError("too small");
    return amount;
  };
  for (const payOut of [empty, reverting])
    expect(createQuoteExplainer(bonded, { ...steps, payOut })(5_000n)).toMatchObject({
      rate: 1,
      priceImpact: undefined,
    });
});

describe("the amount for an output", () => {
  test("brings it after fees, and one unit less does not", () => {
    const quoter = new RouteQuoter({ ...bonded, sourcePool: pool, destinationPool: pool });
    const amount = quoter.findAmountIn(1_000n * UNIT);
    if (amount === undefined) throw new Error("there is one");
    expect(quoter.quote(amount, 0, NOW).estimatedReceived).toBeGreaterThanOrEqual(1_000n * UNIT);
    expect(quoter.quote(amount - 1n, 0, NOW).estimatedReceived).toBeLessThan(1_000n * UNIT);
  });

  test("counts the swap before a CCTP transfer", () => {
    const halving = new RouteQuoter({ ...cctp, sourceSwap: (amount) => amount / 2n });
    expect(halving.findAmountIn(1_000n)).toBe(2_600n);
    expect(halving.findMinAmount()).toBe(602n);
    // The swap is not known beyond what was read.
    const limited = new RouteQuoter({ ...cctp, sourceSwap: (amount) => (amount > 10_000n ? undefined : amount) });
    expect(limited.findAmountIn(9_700n)).toBe(10_000n);
    expect(limited.findAmountIn(9_701n)).toBeUndefined();
  });

  test("by CCTP may be as large as amounts can be", () => {
    const quoter = new RouteQuoter({ ...cctp, minBonderFee: 0n });
    const largest = 2n ** 256n - 1n;
    expect(quoter.findAmountIn(largest)).toBe(largest);
    expect(quoter.findAmountIn(largest + 1n)).toBeUndefined();
    expect(new RouteQuoter({ ...deposit, relayerFee: undefined }).findAmountIn(largest)).toBe(largest);
  });

  test.each([
    ["destination", { destinationPool: 0, sourcePool: 1 }, 900_000n * UNIT],
    ["source, if the destination has none", { sourcePool: 1 }, 1_100_000n * UNIT],
  ] as const)(
    "is not searched where no amount can bring it: as much as the pool of the %s holds",
    (_, pools, balance) => {
      let reads = 0;
      const counting: StableSwapPool = {
        ...pool,
        get aPrecise() {
          reads += 1;
          return pool.aPrecise;
        },
      };
      const withPools = Object.fromEntries(Object.keys(pools).map((name) => [name, counting]));
      const quoter = new RouteQuoter({ ...bonded, ...withPools });
      expect(quoter.findAmountIn(balance)).toBeUndefined();
      expect(quoter.findAmountIn(balance + 1n)).toBeUndefined();
      expect(reads).toBe(0);
      expect(quoter.findAmountIn(balance / 2n)).toBeDefined();
      expect(reads).toBeGreaterThan(0);
    },
  );

  test("of one unit is computed once", () => {
    const sourceSwap = vi.fn((amount: bigint) => amount);
    const quoter = new RouteQuoter({ ...cctp, sourceSwap });
    expect(quoter.findMinAmount()).toBe(301n);
    const swaps = sourceSwap.mock.calls.length;
    expect(quoter.findMinAmount()).toBe(301n);
    expect(sourceSwap).toHaveBeenCalledTimes(swaps);
  });

  test("may be one that a pool swaps although smaller ones revert", () => {
    const sourceSwap = (amount: bigint): bigint => {
      if (amount < 5_000n) throw new SwapRevertError("too small");
      return amount;
    };
    expect(new RouteQuoter({ ...cctp, sourceSwap }).findAmountIn(1_000n)).toBe(5_000n);
  });

  test("does not hide other errors", () => {
    const sourceSwap = (): never => {
      throw new TypeError("a mistake");
    };
    expect(() => new RouteQuoter({ ...cctp, sourceSwap }).findAmountIn(1_000n)).toThrow("a mistake");
  });
});
