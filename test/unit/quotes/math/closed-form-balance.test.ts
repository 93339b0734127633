import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createClosedFormSolver } from "../../../../src/quotes/math/stable-swap.js";

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
