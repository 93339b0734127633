import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  AmountError,
  convertFromUsd,
  formatAmount,
  formatPercent,
  formatUsd,
  groupThousands,
  parseAmount,
  toRatio,
} from "../../../../../web/shared/format/amounts.js";

const decimals = fc.integer({ min: 0, max: 30 });
const raw = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });

describe("parseAmount and formatAmount", () => {
  test.each([
    ["25", 6, 25_000_000n],
    ["0.5", 18, 500_000_000_000_000_000n],
    [".5", 2, 50n],
    ["5.", 2, 500n],
    ["007", 0, 7n],
    [" 1.10 ", 1, 11n],
    ["0", 6, 0n],
    ["1.000000000000000000000", 0, 1n],
    ["0.000000000000000001", 18, 1n],
    // Not representable as a floating-point number.
    ["9007199254740993.1", 1, 90_071_992_547_409_931n],
  ])("parses %j with %i decimals as %s", (text, tokenDecimals, expected) => {
    expect(parseAmount(text, tokenDecimals)).toBe(expected);
  });

  test.each([
    ["", 6, /Enter an amount/],
    ["  ", 6, /Enter an amount/],
    [".", 6, /plain digits/],
    ["1,000", 6, /plain digits/],
    ["1e3", 6, /plain digits/],
    ["-1", 6, /plain digits/],
    ["+1", 6, /plain digits/],
    ["1.2.3", 6, /plain digits/],
    ["0x10", 6, /plain digits/],
    ["१", 6, /plain digits/],
    ["1.1234567", 6, /at most 6 decimals; the amount has 7/],
    ["1.5", 0, /no decimals; the amount has 1/],
  ])("rejects %j with %i decimals", (text, tokenDecimals, message) => {
    expect(() => parseAmount(text, tokenDecimals)).toThrow(AmountError);
    expect(() => parseAmount(text, tokenDecimals)).toThrow(message);
  });

  test("parses every formatted amount to the same value", () => {
    fc.assert(
      fc.property(raw, decimals, (amount, tokenDecimals) => {
        expect(parseAmount(formatAmount(amount, tokenDecimals), tokenDecimals)).toBe(amount);
      }),
    );
  });

  test("formats every parsed amount as it was written, unless it had redundant zeros", () => {
    const digits = fc.stringMatching(/^[1-9][0-9]{0,40}$/);
    const fractions = fc.stringMatching(/^[0-9]{0,11}[1-9]$/);
    fc.assert(
      fc.property(digits, fractions, fc.boolean(), (whole, fraction, hasFraction) => {
        const text = hasFraction ? `${whole}.${fraction}` : whole;
        expect(formatAmount(parseAmount(text, 12), 12)).toBe(text);
      }),
    );
  });
});

test.each([
  ["0", "0"],
  ["999", "999"],
  ["1000", "1,000"],
  ["1234567.1234567", "1,234,567.1234567"],
])("groupThousands formats %s as %s", (number, expected) => {
  expect(groupThousands(number)).toBe(expected);
});

test("toRatio is precise for amounts of any size", () => {
  expect(toRatio(1n, 3n)).toBeCloseTo(1 / 3, 14);
  expect(toRatio(975n * 10n ** 60n, 1000n * 10n ** 60n)).toBe(0.975);
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

test.each([
  [0, "$0.00"],
  [0.004, "< $0.01"],
  [1957.939, "$1,957.94"],
  [1.157e71, "$1.2e+71"],
])("formatUsd formats %d as %s", (dollars, text) => {
  expect(formatUsd(dollars)).toBe(text);
});

test.each([
  [1000, 1, 6, 1_000_000_000n],
  [1000, 0.5, 18, 2_000n * 10n ** 18n],
  [1000, 3000, 18, 333_333n * 10n ** 12n],
  [250.5, 1, 6, 250_500_000n],
  [1000, 1e9, 6, 1n],
  [1000, 65_000, 2, 2n],
])("convertFromUsd(%s dollars of a token of %s dollars with %s decimals)", (dollars, tokenUsd, decimals, expected) => {
  expect(convertFromUsd(dollars, tokenUsd, decimals)).toBe(expected);
});
