import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CANONICAL_TOKEN_INDEX,
  createClosedFormSolver,
  createStableSwapCalculator,
  H_TOKEN_INDEX,
  type StableSwapPool,
  SwapRevertError,
} from "../../../../src/quotes/math/stable-swap.js";
import golden from "../../../golden/stableswap.json" with { type: "json" };
import { calculateSwap } from "../../../support/reference/stable-swap.js";

const TOKEN_INDEXES = [CANONICAL_TOKEN_INDEX, H_TOKEN_INDEX] as const;

describe("createStableSwapCalculator", () => {
  test("matches the recorded results and reverts of the deployed contract, as does the reference implementation", () => {
    expect(golden.vectors.length).toBeGreaterThan(1000);
    for (const vector of golden.vectors) {
      const pool = {
        decimals: vector.decimals,
        balances: vector.balances.map(BigInt) as unknown as [bigint, bigint],
        aPrecise: BigInt(vector.aPrecise),
        swapFee: BigInt(vector.swapFee),
      };
      const [from, amountIn] = [vector.i as 0 | 1, BigInt(vector.dx)];
      const expected = vector.dy === null ? "reverts" : BigInt(vector.dy);
      const ours = outcomeOf(() => createStableSwapCalculator(pool)(from, amountIn));
      const reference = outcomeOf(() => calculateSwap(pool, from, amountIn));
      expect({ vector, ours, reference }).toEqual({ vector, ours: expected, reference: expected });
    }
  });

  // Amounts of every magnitude: with a uniform distribution, nearly all would be close to the maximum.
  const magnitude = (bits: number): fc.Arbitrary<bigint> =>
    fc.integer({ min: 0, max: bits }).chain((n) => fc.bigInt({ min: 0n, max: (1n << BigInt(n)) - 1n + 1n }));
  const anyPool: fc.Arbitrary<StableSwapPool> = fc.record({
    decimals: fc.constantFrom(6, 8, 18),
    balances: fc.tuple(magnitude(256), magnitude(256)),
    aPrecise: fc.oneof(fc.bigInt({ min: 0n, max: 1_000_000n }), magnitude(256)),
    swapFee: fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 10n }), magnitude(256)),
  });
  const realPool: fc.Arbitrary<StableSwapPool> = fc.record({
    decimals: fc.constantFrom(6, 8, 18),
    balances: fc.tuple(magnitude(90), magnitude(90)),
    aPrecise: fc.bigInt({ min: 100n, max: 100_000n }),
    swapFee: fc.constantFrom(0n, 1_000_000n, 4_000_000n),
  });

  test.each([
    ["any pool of 256-bit values", anyPool, 256],
    ["realistic pools", realPool, 100],
  ] as const)("equals the step-by-step reference implementation for %s", (_, pools, bits) => {
    let reverted = 0;
    fc.assert(
      fc.property(pools, fc.constantFrom(...TOKEN_INDEXES), magnitude(bits), (pool, from, amountIn) => {
        const ours = outcomeOf(() => createStableSwapCalculator(pool)(from, amountIn));
        if (ours === "reverts") reverted += 1;
        expect(ours).toBe(outcomeOf(() => calculateSwap(pool, from, amountIn)));
      }),
      { numRuns: 10_000 },
    );
    expect(reverted).toBeGreaterThan(0);
    expect(reverted).toBeLessThan(10_000);
  });

  test("equals the reference at the borders of the arithmetic, where one more or less overflows", () => {
    const power = (bits: bigint) => 1n << bits;
    const largest = power(256n) - 1n;
    const balances = [
      ...[0n, 1n, 10n ** 3n, 10n ** 24n, power(112n), power(119n), power(120n)],
      ...[power(127n), power(128n) - 1n, power(128n), power(255n), largest],
    ];
    const amplifications = [
      ...[0n, 49n, 50n, 51n, 100n, 20_000n],
      ...[power(128n), power(254n), power(255n) - 1n, power(255n), largest],
    ];
    const fees = [4_000_000n, 10n ** 10n, 10n ** 10n + 1n, power(170n), largest];
    const amounts = [0n, 1n, 10n ** 20n, power(120n), power(128n), largest - 3n * 10n ** 24n, largest];
    const pools = balances.flatMap((first) =>
      balances.flatMap((second) => [
        ...amplifications.map((aPrecise) => ({ balances: [first, second] as const, aPrecise, swapFee: 4_000_000n })),
        ...fees.map((swapFee) => ({ balances: [first, second] as const, aPrecise: 20_000n, swapFee })),
      ]),
    );
    for (const values of pools) expectReference({ decimals: 18, ...values }, amounts);
  });

  test("equals the reference for every pool of a few units", () => {
    const few = Array.from({ length: 10 }, (_, units) => BigInt(units));
    const balances = few.flatMap((first) => few.map((second) => [first, second] as const));
    for (const pair of balances)
      for (const aPrecise of [50n, 100n, 1_000n, 20_000n])
        expectReference({ decimals: 18, balances: pair, aPrecise, swapFee: 0n }, [...few, 60n, 100n, 1_000n]);
  });

  test.each([
    ["division by zero", [0n, 10n ** 24n], 20_000n, 1n],
    ["a value overflows uint256", [10n ** 24n, 10n ** 24n], 20_000n, 1n << 255n],
    ["a value overflows uint256", [10n ** 24n, 10n ** 24n], 49n, 1n],
  ] as const)("says why it reverts: %s", (message, balances, aPrecise, amountIn) => {
    const swap = createStableSwapCalculator({ decimals: 18, balances, aPrecise, swapFee: 0n });
    expect(() => swap(CANONICAL_TOKEN_INDEX, amountIn)).toThrow(new SwapRevertError(message));
  });

  test("returns the same result on repeated use and after a revert", () => {
    const pool: StableSwapPool = {
      decimals: 18,
      balances: [10n ** 24n, 10n ** 24n],
      aPrecise: 20_000n,
      swapFee: 4_000_000n,
    };
    const swap = createStableSwapCalculator(pool);
    const first = swap(CANONICAL_TOKEN_INDEX, 10n ** 18n);
    expect(() => swap(CANONICAL_TOKEN_INDEX, 2n ** 255n)).toThrow(SwapRevertError);
    expect(swap(H_TOKEN_INDEX, 5n)).toBe(calculateSwap(pool, H_TOKEN_INDEX, 5n));
    expect(swap(CANONICAL_TOKEN_INDEX, 10n ** 18n)).toBe(first);
  });
});

/** Compares with the reference. Too many results for an expectation of each. */
function expectReference(pool: StableSwapPool, amounts: readonly bigint[]): void {
  const swap = createStableSwapCalculator(pool);
  for (const from of TOKEN_INDEXES) {
    for (const amountIn of amounts) {
      const outcome = outcomeOf(() => swap(from, amountIn));
      const expected = outcomeOf(() => calculateSwap(pool, from, amountIn));
      if (outcome !== expected) expect({ pool, from, amountIn, outcome }).toBe(expected);
    }
  }
}

function outcomeOf(swap: () => bigint): bigint | "reverts" {
  try {
    return swap();
  } catch (error) {
    if (error instanceof SwapRevertError || error instanceof RangeError) return "reverts";
    throw error;
  }
}

const LIMIT = 1n << 120n;

/** Returns where the loop of SwapUtils.getY ends: two steps within one of each other. */
function iterate(d: bigint, k: bigint, c: bigint): bigint | undefined {
  let y = d;
  for (let step = 0; step < 256; step++) {
    const slope = 2n * y + k;
    if (slope <= 0n) return undefined;
    const next = (y * y + c) / slope;
    if (next - y <= 1n && y - next <= 1n) return next;
    y = next;
  }
  return undefined;
}

/** k and c of a pool, like SwapUtils.getY. @param a amplification, precise to two decimals */
function toCoefficients(d: bigint, x: bigint, a: bigint): readonly [k: bigint, c: bigint] {
  const nA = 2n * a;
  return [x + (100n * d) / nA - d, (((d * d) / (2n * x)) * d * 100n) / (2n * nA)];
}

const bigInts = (min: bigint, max: bigint) => fc.bigInt({ min, max });

describe("the balance in closed form", () => {
  test("is where the loop ends, and is known for all real pools and amounts", () => {
    const property = fc.property(
      bigInts(10n ** 18n, 10n ** 27n),
      bigInts(1n, 999n),
      bigInts(100n, 100_000n),
      (d, thousandths, a) => {
        const [k, c] = toCoefficients(d, (d * thousandths) / 500n, a);
        const expected = iterate(d, k, c);
        expect(expected).toBeDefined();
        expect(createClosedFormSolver(d)(k, c)).toBe(expected);
      },
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  test("is unknown or where the loop ends, for any coefficients", () => {
    let known = 0;
    const property = fc.property(bigInts(1n, 200n), bigInts(1n, 300n), bigInts(0n, 40_000n), (d, b, c) => {
      // The sum of both is above 0 in the contract too.
      const k = b - d;
      const y = createClosedFormSolver(d)(k, c);
      if (y === undefined) return;
      known += 1;
      expect(y).toBe(iterate(d, k, c));
    });
    fc.assert(property, { numRuns: 20_000 });
    expect(known).toBeGreaterThan(0);
  });

  test.each([
    ["with a slope of 100 there, and the next integer far beyond the root", 40n, 20n, 40n * 60n, 40n],
    ["not with a slope of 99", 40n, 19n, 40n * 59n, undefined],
    ["with a root that is 9 away from the next integer", 40n, 20n, 41n * 61n - 10n, 40n],
    ["not with one that is nearer", 40n, 20n, 41n * 61n - 9n, undefined],
    ["of nothing", 1_000n, 1_000n, 0n, 0n],
    ["not where the slope is 0", 10n, 0n, 0n, undefined],
  ])("is known %s", (_, d, k, c, expected) => {
    expect(attempt(() => createClosedFormSolver(d)(k, c))).toBe(expected);
  });

  test("is unknown where the loop may overflow: from a D of 2^120, and for a c beyond 2^120 D", () => {
    const [k, c] = [10n ** 30n, 10n ** 50n];
    expect(createClosedFormSolver(LIMIT - 1n)(k, c)).toBeDefined();
    expect(createClosedFormSolver(LIMIT)(k, c)).toBeUndefined();
    expect(createClosedFormSolver(1n)(k, LIMIT)).toBeDefined();
    expect(createClosedFormSolver(1n)(k, LIMIT + 1n)).toBeUndefined();
    expect(createClosedFormSolver(1_000n)(k, 1_000n * LIMIT)).toBeDefined();
  });
});

/** Coefficients of 0 have no quotient; pools have none. */
function attempt(solve: () => bigint | undefined): bigint | undefined {
  try {
    return solve();
  } catch {
    return undefined;
  }
}
