import { describe, expect, test } from "vitest";
import {
  effectiveRate,
  findFirstAboveImpact,
  findReferencePoint,
  formatPercent,
  priceImpact,
  type QuotePoint,
  swapRate,
} from "../../../../web/quote/price-impact.js";

const point = (sent: number, received: number, fee: number): QuotePoint => ({
  sent: BigInt(sent),
  received: BigInt(received),
  fee: BigInt(fee),
});

/** The fee takes all of the first; the swaps give 0.999 for each unit of a small amount, and 0.9 of a large one. */
const points = [
  point(1_000_000, 0, 6_000_000),
  point(10_000_000, 3_990_000, 6_000_000),
  point(100_000_000, 93_900_000, 6_000_000),
  point(10_000_000_000, 8_900_000_000, 100_000_000),
];

describe("price impact", () => {
  test("is held against the smallest amount of which something arrives", () => {
    expect(findReferencePoint(points)).toBe(points[1]);
    expect(findReferencePoint(points.slice(0, 1))).toBeUndefined();
  });

  test("is not held against an amount that rounding makes another rate of, and not told of one", () => {
    // Two units of which one arrives: that is no rate of a half.
    const tiny = [point(2, 1, 0), point(100, 99, 0), point(999_999, 999_000, 0)];
    const telling = point(2_000_000, 1_998_000, 0);
    expect(findReferencePoint(tiny)).toBeUndefined();
    expect(findReferencePoint([...tiny, telling])).toBe(telling);
    for (const each of tiny) expect(priceImpact(each, telling)).toBeUndefined();
  });

  test("is what the swaps give less for each unit, whatever the fee is", () => {
    const [nothing, small, same, large] = points as [QuotePoint, QuotePoint, QuotePoint, QuotePoint];
    expect(priceImpact(same, small)).toBeCloseTo(0, 12);
    expect(priceImpact(large, small)).toBeCloseTo(1 - 0.9 / 0.999, 12);
    expect(priceImpact(nothing, small)).toBeUndefined();
    expect(priceImpact(large, nothing)).toBeUndefined();
  });

  test("is first above a share where it is", () => {
    const small = points[1] as QuotePoint;
    expect(findFirstAboveImpact(0.01, points, small)).toBe(points[3]);
    expect(findFirstAboveImpact(0.1, points, small)).toBeUndefined();
  });

  test("a rate has the fee taken off, or not", () => {
    const large = points[3] as QuotePoint;
    expect(effectiveRate(large)).toBe(0.89);
    expect(swapRate(large)).toBe(0.9);
  });

  test.each([
    [0, "0 %"],
    [0.000_001, "0 %"],
    [-0.000_001, "0 %"],
    [0.000_12, "0.012 %"],
    [-0.000_12, "−0.012 %"],
    [0.0241, "2.41 %"],
    [0.25, "25 %"],
    [0.2525, "25.3 %"],
    [0.01, "1 %"],
    [1, "100 %"],
  ])("the share %d reads %s", (share, text) => {
    expect(formatPercent(share)).toBe(text);
  });
});
