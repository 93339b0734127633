import { expect, test } from "vitest";
import { toRouteValue } from "../../../../web/routes/route-value.js";
import type { QuoteResponse } from "../../../../web/shared/api/api-types.js";

test("toRouteValue returns dollars, or why there are none", () => {
  const result = { toChain: "base", amount: "1" };
  const quote = { estimatedReceived: "498500000000000000000" } as QuoteResponse;
  expect(toRouteValue({ ...result, quote }, 2, 18)).toEqual({ dollars: 997 });
  expect(toRouteValue({ ...result, error: { message: "no", reason: "" } }, 2, 18)).toEqual({ error: "no" });
});
