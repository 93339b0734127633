import { sdkConfig as packageConfig } from "@hop-protocol/sdk/config";
import { describe, expect, test } from "vitest";
import { type SdkNetwork, sdkConfig } from "../../../gen/hop/sdk-config.js";

// After an update of the SDK: `npm run generate`.

describe.each(["mainnet", "goerli"] as const)("the generated copy of the SDK's configuration of %s", (network) => {
  const { chains, addresses, settings } = sdkConfig[network];
  const source = packageConfig[network] as unknown as Omit<SdkNetwork, "chains" | "settings"> &
    Record<string, unknown> & { readonly chains: Readonly<Record<string, Readonly<Record<string, unknown>>>> };

  test("has the contracts, in their order", () => {
    expect(JSON.stringify(addresses)).toBe(JSON.stringify(source.addresses));
  });

  test("has the chains, in their order, with the fields in use", () => {
    const names = [
      "chainId",
      "fallbackPublicRpcUrls",
      "isL1",
      "multicall",
      "nativeTokenSymbol",
      "publicRpcUrl",
      "slug",
    ];
    const expected = Object.values(source.chains).map((chain) =>
      Object.fromEntries(names.filter((name) => chain[name] !== undefined).map((name) => [name, chain[name]])),
    );
    expect(chains).toEqual(expected);
  });

  test("has the fee settings", () => {
    const names = ["bonderFeeBps", "bonders", "bridgeDeprecated", "destinationFeeGasPriceMultiplier"];
    names.push("relayerFeeEnabled", "relayerFeeWei");
    expect(settings).toEqual(Object.fromEntries(names.map((name) => [name, source[name]])));
  });
});
