import fc from "fast-check";
import { expect, test } from "vitest";
import { RouteQuoter } from "../../src/quotes/math/quote.js";
import type { BridgeSnapshot, CctpSnapshot, RouteSnapshot } from "../../src/quotes/math/route-snapshot.js";
import { type StableSwapPool, SwapRevertError } from "../../src/quotes/math/stable-swap.js";
import { createUniswapSwapCalculator } from "../../src/quotes/math/uniswap-v3.js";
import { isFullEffort } from "../support/effort.js";

// The amount found for an output brings it, and one unit less does not; where none is found, none of many amounts does.

const RUNS = isFullEffort ? 10_000 : 1_000;
const MAX_AMOUNT = 2n ** 256n - 1n;
/** Where the fees are as high as the outputs, their floors leave single amounts that bring some units all the same. */
const FLOORS = 8n;
/**
 * Higher fees than this, a multiple of Hop's, can make what an amount brings fall and rise again: the fee is priced by the same
 * pool, and an almost empty pool prices its first units far higher. A search may then miss the second rise.
 */
const MAX_RISING_FEE_BPS = 1_000;

const bigInts = (min: bigint, max: bigint) => fc.bigInt({ min, max });
/** Numbers of every magnitude up to this many bits. */
const magnitude = (bits: number): fc.Arbitrary<bigint> =>
  fc.integer({ min: 0, max: bits }).chain((n) => bigInts(0n, 1n << BigInt(n)));
const prices = fc.oneof(
  fc.constantFrom(1, 3000, 0.99, 65_000.5),
  fc.double({ min: 0.0001, max: 100_000, noNaN: true }),
);
const decimals = fc.constantFrom(6, 8, 18);

function pools(tokenDecimals: number): fc.Arbitrary<StableSwapPool> {
  const unit = 10n ** BigInt(tokenDecimals);
  const balance = bigInts(10n ** 3n * unit, 10n ** 7n * unit);
  return fc.record({
    decimals: fc.constant(tokenDecimals),
    balances: fc.tuple(balance, balance),
    aPrecise: bigInts(100n, 100_000n),
    swapFee: fc.constantFrom(0n, 1_000_000n, 4_000_000n),
  });
}

const deliveries = fc.record({ gasPrice: magnitude(40), gas: magnitude(24), l1Fee: magnitude(52) });
const commonFields = {
  destinationSlug: fc.constantFrom("optimism", "polygon", "gnosis", "arbitrum"),
  feeMultiplier: fc.constantFrom(1, 1.9, 10),
};

const bridgeSnapshots: fc.Arbitrary<BridgeSnapshot> = decimals.chain((tokenDecimals) =>
  fc
    .record({
      ...commonFields,
      kind: fc.constantFrom("l2", "deposit", "to ethereum", "without pools"),
      sourcePool: pools(tokenDecimals),
      destinationPool: pools(tokenDecimals),
      feeBps: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 10_000 })),
      minFee: fc.oneof(fc.constant(0n), magnitude(80)),
      delivery: fc.oneof(deliveries, fc.constant({ gasPrice: 0n, gas: 0n, l1Fee: 0n })),
      nativeUsd: prices,
      tokenUsd: prices,
      relayerFee: fc.option(magnitude(60), { nil: undefined }),
    })
    .map(({ kind, minFee, delivery, nativeUsd, tokenUsd, relayerFee, ...drawn }): BridgeSnapshot => {
      const hasPools = kind !== "without pools";
      const isDeposit = kind === "deposit";
      const destinationIsL1 = kind === "to ethereum";
      return {
        ...drawn,
        kind: "bridge",
        decimals: tokenDecimals,
        sourceSlug: isDeposit ? "ethereum" : "base",
        sourceIsL1: isDeposit,
        ...(destinationIsL1 ? { destinationSlug: "ethereum" } : {}),
        destinationIsL1,
        sourcePool: hasPools && !isDeposit ? drawn.sourcePool : undefined,
        destinationPool: hasPools && !destinationIsL1 ? drawn.destinationPool : undefined,
        bonder: isDeposit ? undefined : { minFee, delivery, nativeUsd, tokenUsd },
        relayerFee: isDeposit ? relayerFee : undefined,
      };
    }),
);

/** A pool of USDC near its price of 1, of which a few ticks are known. */
const usdcSwaps = fc
  .record({
    liquidity: bigInts(10n ** 9n, 10n ** 16n),
    steps: fc.array(fc.tuple(fc.integer({ min: 1, max: 200 }), bigInts(-(10n ** 8n), 10n ** 12n)), { maxLength: 6 }),
    words: fc.integer({ min: 1, max: 3 }),
  })
  .map(({ liquidity, steps, words }) => {
    const ticks = new Map(steps.map(([distance, net]) => [-distance, net]));
    const bitmapWords = new Map(
      Array.from({ length: words }, (_, index) => {
        const position = -index;
        const bits = [...ticks.keys()].filter((tick) => Math.floor(tick / 256) === position);
        return [position, bits.reduce((word, tick) => word | (1n << BigInt(tick - position * 256)), 0n)];
      }),
    );
    return createUniswapSwapCalculator(
      {
        ...{ sqrtPriceX96: 2n ** 96n, tick: 0, liquidity, feePips: 100n, tickSpacing: 1 },
        ...{ bitmapWords, liquidityNet: ticks },
      },
      true,
    );
  });

const cctpSnapshots: fc.Arbitrary<CctpSnapshot> = fc.record({
  ...commonFields,
  kind: fc.constant("cctp"),
  decimals: fc.constant(6),
  sourceSlug: fc.constant("polygon"),
  sourceIsL1: fc.boolean(),
  destinationIsL1: fc.boolean(),
  feeBps: fc.constant(12),
  burnLimit: fc.constant(undefined),
  minBonderFee: magnitude(30),
  sourceSwap: fc.option(usdcSwaps, { nil: undefined }),
  delivery: deliveries,
  nativeUsd: prices,
  tokenUsd: fc.constantFrom(1, 0.99),
});

/**
 * A pool that is almost out of hTokens pays a thousand times as much for the first ones as for many. It prices the fee too,
 * so that only amounts from 7,400 to some 30,000 tokens bring anything.
 */
const emptyPool: BridgeSnapshot = {
  kind: "bridge",
  decimals: 18,
  sourceSlug: "base",
  sourceIsL1: false,
  destinationSlug: "optimism",
  destinationIsL1: false,
  feeMultiplier: 10,
  feeBps: 94,
  sourcePool: {
    decimals: 18,
    balances: [5_060_452n * 10n ** 18n, 786_086n * 10n ** 18n],
    aPrecise: 79_646n,
    swapFee: 0n,
  },
  destinationPool: {
    decimals: 18,
    balances: [4_696_794n * 10n ** 18n, 1_000n * 10n ** 18n],
    aPrecise: 66_609n,
    swapFee: 1_000_000n,
  },
  bonder: {
    minFee: 0n,
    delivery: { gasPrice: 14_150_006n, gas: 62n, l1Fee: 20_038_580_978_616n },
    nativeUsd: 65_000.5,
    tokenUsd: 0.002_492,
  },
  relayerFee: undefined,
};

const snapshots: fc.Arbitrary<RouteSnapshot> = fc.oneof({ weight: 3, arbitrary: bridgeSnapshots }, cctpSnapshots);
const targets = fc.oneof(fc.constant(1n), magnitude(90), magnitude(40), magnitude(250)).map((target) => target || 1n);

/** Returns the quote's amount received; undefined if it cannot be swapped, or if that is not known. */
function receive(quoter: RouteQuoter, amountIn: bigint): bigint | undefined {
  const received = compute(quoter, amountIn, (input) => quoter.quote(...input).estimatedReceived);
  return received === "reverts" ? undefined : received;
}

/** Calls back with the input of a quote; undefined: the output of the swap before a CCTP transfer is not known. */
function compute<T>(
  { snapshot }: RouteQuoter,
  amountIn: bigint,
  run: (input: Parameters<RouteQuoter["quote"]>) => T,
): T | "reverts" | undefined {
  const sourceSwap = snapshot.kind === "cctp" ? snapshot.sourceSwap : undefined;
  try {
    const swapped = sourceSwap?.(amountIn);
    return sourceSwap !== undefined && swapped === undefined ? undefined : run([amountIn, 0.5, 0, swapped]);
  } catch (error) {
    if (error instanceof SwapRevertError) return "reverts";
    throw error;
  }
}

/** Returns whether a larger amount brings more, up to where the pools give no more. */
function isRising(snapshot: RouteSnapshot): boolean {
  return snapshot.kind === "cctp" || snapshot.feeBps <= MAX_RISING_FEE_BPS;
}

/** Amounts of every magnitude, and closer ones around what an output of the target takes. */
function listProbes(target: bigint): bigint[] {
  const powers = Array.from({ length: 256 }, (_, bit) => 1n << BigInt(bit));
  const factors = Array.from({ length: 200 }, (_, index) => (target * BigInt(50 + index)) / 100n);
  return [...powers, ...factors].filter((amount) => amount > 0n && amount <= MAX_AMOUNT);
}

function expectCrossing(quoter: RouteQuoter, amountIn: bigint, target: bigint): void {
  expect(receive(quoter, amountIn)).toBeGreaterThanOrEqual(target);
  compute(quoter, amountIn, (input) => expect(quoter.explain(...input).quote).toStrictEqual(quoter.quote(...input)));
  if (amountIn > 1n) expect(receive(quoter, amountIn - 1n) ?? 0n).toBeLessThan(target);
}

test("receiveAmount and minAmount: the amount found brings it, and one unit less does not", () => {
  const counts = { found: 0, none: 0 };
  const property = fc.property(snapshots, targets, (snapshot, target) => {
    const quoter = new RouteQuoter(snapshot);
    for (const [output, amountIn] of [
      [target, quoter.findAmountIn(target)],
      [1n, quoter.findMinAmount()],
    ] as const) {
      counts[amountIn === undefined ? "none" : "found"] += 1;
      if (amountIn !== undefined) expectCrossing(quoter, amountIn, output);
      else if (isRising(snapshot))
        for (const probe of listProbes(output)) expect(receive(quoter, probe) ?? 0n).toBeLessThan(output + FLOORS);
    }
  });
  const examples = [1n, 32n, 10n ** 18n, 10n ** 21n].map((target): [RouteSnapshot, bigint] => [emptyPool, target]);
  fc.assert(property, { numRuns: RUNS, endOnFailure: true, examples });
  // Each run counts twice.
  const runs = (counts.found + counts.none) / 2;
  expect(counts.found).toBeGreaterThan(runs / 2);
  expect(counts.none).toBeGreaterThan(runs / 100);
});

test("an amount that brings as much as another is found whenever that one is not above the most that a route carries", () => {
  let [runs, compared] = [0, 0];
  const property = fc.property(snapshots, magnitude(90), (snapshot, amountIn) => {
    runs += 1;
    const quoter = new RouteQuoter(snapshot);
    const received = amountIn === 0n ? undefined : receive(quoter, amountIn);
    if (received === undefined || received < 1000n || !isRising(snapshot)) return;
    // Within a thousandth of the most, floors decide.
    const target = (received * 999n) / 1000n;
    const found = quoter.findAmountIn(target);
    expect(found).toBeDefined();
    expectCrossing(quoter, found ?? 0n, target);
    compared += 1;
  });
  fc.assert(property, { numRuns: RUNS, endOnFailure: true });
  expect(compared).toBeGreaterThan(runs / 10);
});
