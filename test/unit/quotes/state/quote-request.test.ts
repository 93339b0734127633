import { expect, test } from "vitest";
import { getNetwork } from "../../../../src/hop/networks.js";
import { getQuoteRoute, getTokenContracts, requireAddress } from "../../../../src/quotes/state/quote-request.js";
import { findQuoteRoute } from "../../../support/stubs/quote-routes.js";

test("the route of a request has its network", () => {
  const route = findQuoteRoute("ETH", "optimism", "base", "goerli");
  const { token, source, destination } = route;
  const request = { network: "goerli", token, source, destination, amountIn: 1n, slippagePercent: 0.5 } as const;
  expect(getQuoteRoute(request)).toEqual({ network: getNetwork("goerli"), token, source, destination });
});

test("a token has the contracts of its chain, or none", () => {
  const route = findQuoteRoute("ETH", "polygon", "gnosis");
  expect(getTokenContracts(route, route.source)).toBe(route.network.contracts.get("ETH")?.get("polygon"));
  expect(getTokenContracts(route, { ...route.source, slug: "elsewhere" })).toEqual({});
  expect(getTokenContracts({ ...route, token: { ...route.token, symbol: "NONE" } }, route.source)).toEqual({});
});

test("addresses are compared in lower case, and must be there", () => {
  expect(requireAddress("0xAb")).toBe("0xab");
  for (const missing of [undefined, 7]) {
    expect(() => requireAddress(missing)).toThrow("the address book has no such contract");
  }
});
