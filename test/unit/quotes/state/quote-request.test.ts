import { expect, test } from "vitest";
import { getTokenContracts, requireContractAddress } from "../../../../src/quotes/state/quote-request.js";
import { findQuoteRoute } from "../../../support/stubs/quote-routes.js";

test("a token has the contracts of its chain, or none", () => {
  const route = findQuoteRoute("ETH", "polygon", "gnosis");
  expect(getTokenContracts(route, route.source)).toBe(route.network.contracts.get("ETH")?.get("polygon"));
  expect(getTokenContracts(route, { ...route.source, slug: "elsewhere" })).toEqual({});
  expect(getTokenContracts({ ...route, token: { ...route.token, symbol: "NONE" } }, route.source)).toEqual({});
});

test("addresses are compared in lower case, and must be there", () => {
  expect(requireContractAddress("0xAb")).toBe("0xab");
  for (const missing of [undefined, 7]) {
    expect(() => requireContractAddress(missing)).toThrow("the address book has no such contract");
  }
});
