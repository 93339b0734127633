import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findAmountIn, type NetAmount } from "../../../../src/quotes/math/find-amount-in.js";

const MAX_AMOUNT = 2n ** 256n - 1n;

/** Searches, and checks that the amount found brings the target and one unit less does not. Returns the number of quotes. */
function search(getNet: NetAmount, target: bigint): { readonly amount: bigint | undefined; readonly quotes: number } {
  let quotes = 0;
  const amount = findAmountIn((amountIn) => {
    if (amountIn < 1n || amountIn > MAX_AMOUNT) throw new RangeError(`${amountIn} is no amount`);
    quotes += 1;
    return getNet(amountIn);
  }, target);
  if (amount !== undefined) {
    const isEnough = (net: ReturnType<NetAmount>) => typeof net === "bigint" && net >= target;
    expect(isEnough(getNet(amount)), `${amount} brings ${target}`).toBe(true);
    if (amount > 1n) expect(isEnough(getNet(amount - 1n)), `${amount} less 1 brings ${target}`).toBe(false);
  }
  return { amount, quotes };
}

/** Rises to a peak and falls after it; rates are in thousandths. */
function createPeak(
  peak: bigint,
  rise: bigint,
  fall: bigint,
): { readonly getNet: NetAmount; readonly highest: bigint } {
  const highest = (peak * rise) / 1_000n;
  const getNet = (amount: bigint) =>
    amount <= peak ? (amount * rise) / 1_000n : highest - ((amount - peak) * fall) / 1_000n;
  return { getNet, highest };
}

const bigInts = (min: bigint, max: bigint) => fc.bigInt({ min, max });
const magnitudes = (minBits: number, maxBits: number): fc.Arbitrary<bigint> =>
  fc.integer({ min: minBits, max: maxBits }).chain((bits) => bigInts(1n << BigInt(bits), 2n << BigInt(bits)));

describe("an amount is found", () => {
  test("at a peak, however steep it is on either side", () => {
    const property = fc.property(
      magnitudes(24, 90),
      bigInts(100n, 20_000n),
      bigInts(1n, 20_000n),
      fc.constantFrom(999_990n, 999_000n, 900_000n, 500_000n),
      (peak, rise, fall, millionths) => {
        const { getNet, highest } = createPeak(peak, rise, fall);
        expect(search(getNet, (highest * millionths) / 1_000_000n).amount).toBeDefined();
      },
    );
    fc.assert(property, { numRuns: 500 });
  });

  test("as large as amounts can be", () => {
    expect(search((amount) => amount, MAX_AMOUNT).amount).toBe(MAX_AMOUNT);
    expect(search((amount) => amount / 2n, MAX_AMOUNT / 2n).amount).toBe(MAX_AMOUNT - 1n);
  });
});

test("no amount is found that brings more than the peak", () => {
  for (const fall of [1n, 500n, 5_000n]) {
    const { getNet, highest } = createPeak(10n ** 12n, 990n, fall);
    expect(search(getNet, highest + 1n)).toMatchObject({ amount: undefined });
    expect(search(getNet, highest * 100n)).toMatchObject({ amount: undefined });
  }
});

/** What a pool of this reserve on both sides brings, at a constant product and without a fee. */
const swapIn =
  (reserve: bigint): NetAmount =>
  (amount) =>
    (amount * reserve) / (reserve + amount);

describe("few quotes are needed", () => {
  test.each<readonly [string, number, number, (target: bigint) => NetAmount]>([
    ["where all of the amount arrives", 3, 3, () => (amount) => amount],
    ["with a relative fee", 4, 4, () => (amount) => (amount * 9_996n) / 10_000n],
    ["with a fixed fee too", 4, 4, () => (amount) => (amount * 9_996n) / 10_000n - 10n ** 6n],
    ["from a pool with ten times as much", 8, 9, (target) => swapIn(target * 10n)],
    ["from a pool with little more", 18, 21, (target) => swapIn((target * 11n) / 10n)],
    ["where larger amounts have a better rate", 20, 30, (target) => (amount) => amount ** 2n / (target * 100n)],
    [
      "with a minimum fee, from some amount on",
      7,
      7,
      (target) => (amount) => (amount < target * 2n ? amount / 10n : amount - (target * 18n) / 10n),
    ],
    ["where smaller amounts revert", 26, 65, (target) => (amount) => (amount < target * 3n ? "reverts" : amount)],
    [
      "near the most that arrives",
      42,
      40,
      (target) => (amount) => amount - amount ** 2n / (target * 4n + target / 100n),
    ],
    [
      "near the end of what is known",
      19,
      20,
      (target) => (amount) => (amount <= (target * 95n) / 100n ? (amount * 110n) / 100n : undefined),
    ],
  ])("%s: at most %i for a million, and %i for 10^18", (_, forMillion, forMore, createNet) => {
    for (const [target, quotes] of [
      [10n ** 6n, forMillion],
      [10n ** 18n, forMore],
    ] as const) {
      const found = search(createNet(target), target);
      expect(found.amount).toBeDefined();
      expect(found.quotes).toBeLessThanOrEqual(quotes);
    }
  });

  test.each<readonly [string, number, (target: bigint) => NetAmount]>([
    ["where no amount brings anything", 54, () => () => 0n],
    ["where every amount reverts", 70, () => () => "reverts"],
    ["where no swap is known", 11, () => () => undefined],
    ["where half of it is the most", 54, (target) => (amount) => (amount < target / 2n ? amount : target / 2n)],
    [
      "where more than half of it brings less",
      54,
      (target) => (amount) => (amount < target / 2n ? amount : target - amount),
    ],
  ])("to find none %s: at most %i", (_, maxQuotes, createNet) => {
    for (const target of [1n, 1_000n, 10n ** 6n, 10n ** 18n, 7n * 10n ** 24n]) {
      const found = search(createNet(target), target);
      expect(found.amount).toBeUndefined();
      expect(found.quotes).toBeLessThanOrEqual(maxQuotes);
    }
  });
});
