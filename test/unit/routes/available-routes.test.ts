import { HopBridge } from "@hop-protocol/sdk";
import { describe, expect, test } from "vitest";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { findAvailableRoutes } from "../../../src/routes/available-routes.js";

const named = (route: { token: string; source: { slug: string }; destination: { slug: string } }): string =>
  `${route.token} ${route.source.slug}>${route.destination.slug}`;

/** The SDK's list less what its own functions refuse to send. */
async function sendable(network: "mainnet" | "goerli"): Promise<string[]> {
  const all = await new HopBridge({ network, token: "ETH" }).getAvailableRoutes();
  const kept: string[] = [];
  for (const { token, sourceChainSlug, destinationChainSlug } of all) {
    const bridge = new HopBridge({ network, token, configFileFetchEnabled: false });
    const isCctp = bridge.getShouldUseCctpBridge();
    if (isCctp && !bridge.getIsSupportedCctpRoute(sourceChainSlug, destinationChainSlug)) continue;
    if (sourceChainSlug === "ethereum" && (await bridge.getIsBridgeDeprecated(token))) continue;
    kept.push(`${token} ${sourceChainSlug}>${destinationChainSlug}`);
  }
  return kept;
}

describe("available routes", () => {
  test.each(["mainnet", "goerli"] as const)("of %s are those that the SDK would send, in its order", async (slug) => {
    const routes = findAvailableRoutes(getNetwork(slug), getBuiltInFeeSettings(slug));
    expect(routes.map(named)).toEqual(await sendable(slug));
  });

  test("are 240 of the SDK's 256 on mainnet", async () => {
    const all = await new HopBridge({ network: "mainnet", token: "ETH" }).getAvailableRoutes();
    expect(all).toHaveLength(256);
    expect(findAvailableRoutes(getNetwork("mainnet"), getBuiltInFeeSettings("mainnet"))).toHaveLength(240);
  });

  test("follow the settings: a deprecated bridge takes nothing from ethereum, and still sends back", () => {
    const settings = { ...getBuiltInFeeSettings("mainnet"), bridgeDeprecated: { MAGIC: true } };
    const routes = findAvailableRoutes(getNetwork("mainnet"), settings).map(named);
    expect(routes).not.toContain("MAGIC ethereum>nova");
    expect(routes).toContain("MAGIC nova>ethereum");
    expect(routes).toContain("SNX ethereum>optimism");
  });
});
