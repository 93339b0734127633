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

/** The fee exceeds the first amount. The swap rate is 0.999 for small amounts and 0.9 for the large one. */
const points = [
  point(1_000_000, 0, 6_000_000),
  point(10_000_000, 3_990_000, 6_000_000),
  point(100_000_000, 93_900_000, 6_000_000),
  point(10_000_000_000, 8_900_000_000, 100_000_000),
];

describe("price impact", () => {
  test("uses the smallest amount that arrives as its reference", () => {
    expect(findReferencePoint(points)).toBe(points[1]);
    expect(findReferencePoint(points.slice(0, 1))).toBeUndefined();
  });

  test("ignores amounts so small that rounding distorts the rate", () => {
    // One of two units arrives: rounding, not a rate of 0.5.
    const tiny = [point(2, 1, 0), point(100, 99, 0), point(999_999, 999_000, 0)];
    const precise = point(2_000_000, 1_998_000, 0);
    expect(findReferencePoint(tiny)).toBeUndefined();
    expect(findReferencePoint([...tiny, precise])).toBe(precise);
    for (const tinyPoint of tiny) expect(priceImpact(tinyPoint, precise)).toBeUndefined();
  });

  test("compares swap rates without the fee", () => {
    const [nothing, small, same, large] = points as [QuotePoint, QuotePoint, QuotePoint, QuotePoint];
    expect(priceImpact(same, small)).toBeCloseTo(0, 12);
    expect(priceImpact(large, small)).toBeCloseTo(1 - 0.9 / 0.999, 12);
    expect(priceImpact(nothing, small)).toBeUndefined();
    expect(priceImpact(large, nothing)).toBeUndefined();
  });

  test("finds the first amount above a threshold", () => {
    const small = points[1] as QuotePoint;
    expect(findFirstAboveImpact(0.01, points, small)).toBe(points[3]);
    expect(findFirstAboveImpact(0.1, points, small)).toBeUndefined();
  });

  test("effectiveRate includes the fee, swapRate does not", () => {
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
  ])("formatPercent formats %d as %s", (share, text) => {
    expect(formatPercent(share)).toBe(text);
  });
});
