import { HopBridge } from "@hop-protocol/sdk";
import { describe, expect, test } from "vitest";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { findAvailableRoutes } from "../../../src/hop/routes.js";

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

  test("returns 240 of the SDK's 256 routes on mainnet", async () => {
    const all = await new HopBridge({ network: "mainnet", token: "ETH" }).getAvailableRoutes();
    expect(all).toHaveLength(256);
    expect(findAvailableRoutes(getNetwork("mainnet"), getBuiltInFeeSettings("mainnet"))).toHaveLength(240);
  });

  test("omits routes from ethereum over a deprecated bridge, but keeps the way back", () => {
    const settings = { ...getBuiltInFeeSettings("mainnet"), bridgeDeprecated: { MAGIC: true } };
    const routes = findAvailableRoutes(getNetwork("mainnet"), settings).map(formatRoute);
    expect(routes).not.toContain("MAGIC ethereum>nova");
    expect(routes).toContain("MAGIC nova>ethereum");
    expect(routes).toContain("SNX ethereum>optimism");
  });
});
