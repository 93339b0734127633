import { expect, test } from "vitest";
import { type Chain, findChain, getNetwork } from "../../../src/hop/networks.js";
import { RouteMap } from "../../../src/hop/routes.js";
import { findToken, type Token } from "../../../src/hop/tokens.js";

/** Finds a route as every request does. */
function findRoute(slug: "mainnet" | "goerli", token: string, from: string, to: string): [Token, Chain, Chain] {
  const network = getNetwork(slug);
  return [findToken(network, token), findChain(network, from), findChain(network, to)] as [Token, Chain, Chain];
}

test("tells routes apart by token, alias, chains, direction and network", () => {
  const map = new RouteMap<number>();
  const routes = [
    findRoute("mainnet", "ETH", "polygon", "gnosis"),
    findRoute("mainnet", "WETH", "polygon", "gnosis"),
    findRoute("mainnet", "DAI", "polygon", "gnosis"),
    findRoute("mainnet", "ETH", "gnosis", "polygon"),
    findRoute("mainnet", "ETH", "polygon", "base"),
    findRoute("goerli", "ETH", "polygon", "base"),
  ];
  for (const [index, route] of routes.entries()) {
    expect(map.get(...route)).toBeUndefined();
    map.set(...route, index);
  }
  expect(routes.map((route) => map.get(...route))).toEqual([0, 1, 2, 3, 4, 5]);
  expect(map.get(...findRoute("mainnet", "weth", "polygon", "gnosis"))).toBe(1);
  expect([...map.values()].sort()).toEqual([0, 1, 2, 3, 4, 5]);
});
