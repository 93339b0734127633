import fc from "fast-check";
import { expect, test } from "vitest";
import {
  describeCurve,
  effectiveRate,
  formatAxisValues,
  type QuotePoint,
  sampleAmounts,
  selectQuotedPoints,
  swapRate,
  toCurvePoints,
} from "../../../../web/quote/rate-curve.js";
import type { DetailedQuoteResponse } from "../../../../web/shared/api/api-types.js";

test("toCurvePoints keeps the order of the amounts and the message of an error", () => {
  const limits = { isLiquidityAvailable: false };
  const details = { amountOut: "3", priceImpact: 0.5, limits };
  const quote = { amountIn: "2", estimatedReceived: "1", bonderFee: "1", details } as DetailedQuoteResponse;
  const result = { toChain: "base", amount: "" };
  const points = toCurvePoints(
    [1n, 2n, 3n],
    [
      { ...result, error: { message: "no", reason: "" } },
      { ...result, quote },
    ],
  );
  expect(points).toEqual([
    { sent: 1n, error: "no" },
    { sent: 2n, quote: { sent: 2n, received: 1n, fee: 1n, swapped: 3n, priceImpact: 0.5, canBeDelivered: false } },
    { sent: 3n, error: "No quote." },
  ]);
  expect(selectQuotedPoints(points).map(({ sent }) => sent)).toEqual([2n]);
});

const MAX_UINT256 = 2n ** 256n - 1n;

test("sampleAmounts returns 21 amounts from a hundredth to a hundred times the amount", () => {
  const amounts = sampleAmounts(25_000_000n);
  expect(amounts).toHaveLength(21);
  expect(amounts[0]).toBe(250_000n);
  expect(amounts[10]).toBe(25_000_000n);
  expect(amounts[20]).toBe(2_500_000_000n);
  expect(amounts.slice(10, 16)).toEqual(
    [25_000_000, 39_600_000, 62_700_000, 99_500_000, 157_000_000, 250_000_000].map(BigInt),
  );
});

test("sampleAmounts returns ascending amounts without duplicates, and within its bounds, around any amount", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: MAX_UINT256 }), (amount) => {
      const amounts = sampleAmounts(amount);
      expect(amounts).toContain(amount);
      expect(amounts.length).toBeGreaterThan(1);
      for (const [index, sample] of amounts.entries()) {
        expect(sample >= 1n && sample <= MAX_UINT256 && sample * 102n >= amount && sample <= amount * 100n).toBe(true);
        if (index > 0) expect(sample > (amounts[index - 1] ?? sample)).toBe(true);
      }
    }),
    { examples: [[1n], [2n], [99n], [MAX_UINT256 / 100n]] },
  );
});

const point = (sent: bigint, priceImpact: number | undefined, canBeDelivered = true): QuotePoint => {
  return { sent, received: sent - 1n, fee: 1n, swapped: sent, priceImpact, canBeDelivered };
};

test("effectiveRate includes the fee, swapRate does not", () => {
  expect(effectiveRate(point(10n, 0))).toBe(0.9);
  expect(swapRate(point(10n, 0))).toBe(1);
  expect(swapRate({ ...point(10n, 0), swapped: 0n })).toBeUndefined();
});

test.each<[readonly QuotePoint[], string]>([
  [[], "There is no quote for these amounts."],
  [[point(1n, 100)], "Nothing arrives for any of these amounts."],
  [[point(2n, 0), point(3n, 1)], "The price impact is at most 1 % up to 3."],
  [[point(2n, 0), point(3n, 1.1), point(4n, 9)], "The price impact is more than 1 % from 3 on."],
  // Rounding.
  [[point(2n, 50), point(3n, -1), point(4n, 2)], "The price impact is more than 1 % from 4 on."],
  [[point(2n, 50), point(3n, 60)], "The price impact is more than 1 % for all of these amounts."],
  [
    [point(2n, undefined), point(3n, 0, false)],
    "The price impact is at most 1 % up to 3. The amounts in the shaded range cannot be delivered now.",
  ],
])("describeCurve, example %#", (points, text) => {
  expect(describeCurve(points, String)).toBe(text);
});

test.each([
  [
    [0.99, 0.9925, 0.995, 0.9975, 1],
    ["0.9900", "0.9925", "0.9950", "0.9975", "1.0000"],
  ],
  [
    [0, 0.2, 0.4, 0.6],
    ["0.0", "0.2", "0.4", "0.6"],
  ],
  [
    [0.99998, 0.99999, 1],
    ["0.99998", "0.99999", "1.00000"],
  ],
  [
    [0, 25],
    ["0", "25"],
  ],
  [[1], ["1"]],
])("formatAxisValues gives each value of %j all decimals of a step", (values, formatted) => {
  expect(formatAxisValues(values)).toEqual(formatted);
});
