import { HopBridge } from "@hop-protocol/sdk";
import { describe, expect, test } from "vitest";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { type Chain, findChain, getNetwork } from "../../../src/hop/networks.js";
import { findAvailableRoutes, RouteMap } from "../../../src/hop/routes.js";
import { findToken, type Token } from "../../../src/hop/tokens.js";

const formatRoute = (route: { token: string; source: { slug: string }; destination: { slug: string } }): string =>
  `${route.token} ${route.source.slug}>${route.destination.slug}`;

/** Returns the SDK's list without the routes that its own functions refuse to send. */
async function listSendableRoutes(network: "mainnet" | "goerli"): Promise<string[]> {
  const all = await new HopBridge({ network, token: "ETH" }).getAvailableRoutes();
  const routes: string[] = [];
  for (const { token, sourceChainSlug, destinationChainSlug } of all) {
    const bridge = new HopBridge({ network, token, configFileFetchEnabled: false });
    const isCctp = bridge.getShouldUseCctpBridge();
    if (isCctp && !bridge.getIsSupportedCctpRoute(sourceChainSlug, destinationChainSlug)) continue;
    if (sourceChainSlug === "ethereum" && (await bridge.getIsBridgeDeprecated(token))) continue;
    routes.push(`${token} ${sourceChainSlug}>${destinationChainSlug}`);
  }
  return routes;
}

describe("findAvailableRoutes", () => {
  test.each(["mainnet", "goerli"] as const)(
    "returns the routes of %s that the SDK can send, in its order",
    async (slug) => {
      const routes = findAvailableRoutes(getNetwork(slug), getBuiltInFeeSettings(slug));
      expect(routes.map(formatRoute)).toEqual(await listSendableRoutes(slug));
    },
  );

  test("omits routes from ethereum over a deprecated bridge, but keeps the way back", () => {
    const settings = { ...getBuiltInFeeSettings("mainnet"), bridgeDeprecated: { MAGIC: true } };
    const routes = findAvailableRoutes(getNetwork("mainnet"), settings).map(formatRoute);
    expect(routes).not.toContain("MAGIC ethereum>nova");
    expect(routes).toContain("MAGIC nova>ethereum");
    expect(routes).toContain("SNX ethereum>optimism");
  });
});

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
