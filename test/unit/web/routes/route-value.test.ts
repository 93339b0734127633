import { expect, test } from "vitest";
import { toRouteValue, toSampleAmount } from "../../../../web/routes/route-value.js";
import type { QuoteResponse } from "../../../../web/shared/api/api-types.js";

test.each([
  [1, 6, 1_000_000_000n],
  [0.5, 18, 2_000n * 10n ** 18n],
  [3000, 18, 333_333n * 10n ** 12n],
  [1e9, 6, 1n],
  [65_000, 2, 2n],
])("toSampleAmount of a token of %s dollars with %s decimals", (tokenUsd, decimals, expected) => {
  expect(toSampleAmount(tokenUsd, decimals)).toBe(expected);
});

test("toRouteValue returns dollars, or why there are none", () => {
  const result = { toChain: "base", amount: "1" };
  const quote = { estimatedReceived: "498500000000000000000" } as QuoteResponse;
  expect(toRouteValue({ ...result, quote }, 2, 18)).toEqual({ dollars: 997 });
  expect(toRouteValue({ ...result, error: { message: "no", reason: "" } }, 2, 18)).toEqual({ error: "no" });
});
