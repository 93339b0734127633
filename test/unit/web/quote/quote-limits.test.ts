import { expect, test } from "vitest";
import { estimateMaxAmount } from "../../../../web/quote/quote-limits.js";
import type { DetailedQuoteResponse } from "../../../../web/shared/api/api-types.js";

test.each([
  ["rounds down for a bonder", "BONDER_CREDIT", "649305237487", "1000", 649_000_000_000n],
  ["leaves room where a transfer needs more than its amount", "BONDER_CREDIT", "649305", "1100", 590_000n],
  ["does not rely on the small need of a large amount", "BONDER_CREDIT", "649305", "10", 649_000n],
  ["is exact for CCTP", "CCTP_BURN_LIMIT", "1234567", "1100", 1_234_567n],
  ["is undefined without a limit", "UNLIMITED", "", "1000", undefined],
  ["is undefined if the limit is not known", "UNKNOWN", "", "1000", undefined],
  ["is undefined if nothing can be sent", "CCTP_BURN_LIMIT", "0", "1000", undefined],
])("estimateMaxAmount %s", (_, liquidityBasis, availableLiquidity, requiredLiquidity, expected) => {
  const details = { requiredLiquidity, limits: { liquidityBasis, availableLiquidity } };
  expect(estimateMaxAmount({ amountIn: "1000", details } as DetailedQuoteResponse)).toBe(expected);
});
