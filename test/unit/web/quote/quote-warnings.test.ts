import { describe, expect, test } from "vitest";
import { findWarnings } from "../../../../web/quote/quote-warnings.js";
import type { DetailedQuoteResponse, QuoteLimits } from "../../../../web/shared/api/api-types.js";

const route = { token: "USDT", to: "nova", decimals: 6 };
const limits: QuoteLimits = {
  minAmount: "352243",
  availableLiquidity: "5000000",
  isLiquidityAvailable: true,
  liquidityBasis: "BONDER_CREDIT",
};

function createQuote(estimatedReceived: string, changed: Partial<QuoteLimits> = {}): DetailedQuoteResponse {
  const details = {
    amountOut: "0",
    requiredLiquidity: "9990000",
    limits: { ...limits, ...changed },
    prices: { tokenUsd: 1 },
  };
  return {
    ...{ amountIn: "10000000", estimatedReceived, bonderFee: "0", amountOutMin: "0", destinationAmountOutMin: "0" },
    ...{ deadline: 0, destinationDeadline: 0, details },
  };
}

describe("findWarnings", () => {
  test("accepts a transfer that loses 3 %", () => {
    expect(findWarnings(createQuote("9700000"), route)).toEqual([]);
    expect(findWarnings(createQuote("10010000"), route)).toEqual([]);
  });

  test("warns where more than 3 % are lost", () => {
    expect(findWarnings(createQuote("9699999"), route)).toEqual([
      "This transfer loses 3.00 %. Only 9.699999 USDT of 10 USDT arrive.",
    ]);
  });

  test("names what a transfer needs and what is available", () => {
    expect(findWarnings(createQuote("9900000", { isLiquidityAvailable: false }), route)).toEqual([
      "This transfer cannot be delivered now: it needs 9.99 USDT on Arbitrum Nova, where 5 USDT are available.",
    ]);
  });

  test("names the limit of a CCTP message", () => {
    const quote = createQuote("9900000", { isLiquidityAvailable: false, liquidityBasis: "CCTP_BURN_LIMIT" });
    expect(findWarnings(quote, { ...route, token: "USDC" })).toEqual([
      "This transfer cannot be sent: one CCTP message carries at most 5 USDC, and the amount is 10 USDC.",
    ]);
  });

  test("warns of both a shortage and a loss", () => {
    expect(findWarnings(createQuote("1", { isLiquidityAvailable: false }), route)).toHaveLength(2);
  });

  test("names the smallest amount of which something arrives", () => {
    expect(findWarnings(createQuote("0"), route)).toEqual([
      "Nothing arrives: the fee is higher than what the amount is worth. Send at least 0.352243 USDT.",
    ]);
    expect(findWarnings(createQuote("0", { minAmount: "" }), route)).toEqual([
      "Nothing arrives: the fee is higher than what the amount is worth.",
    ]);
  });

  test("uses the smallest unit if the decimals are not known", () => {
    expect(findWarnings(createQuote("9000000"), { ...route, decimals: undefined })).toEqual([
      "This transfer loses 10 %. Only 9,000,000 × smallest unit of USDT of 10,000,000 × smallest unit of USDT arrive.",
    ]);
  });
});
