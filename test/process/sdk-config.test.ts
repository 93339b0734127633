import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { type SdkNetwork, sdkConfig } from "../../gen/hop/sdk-config.js";

// After an update of the SDK: `npm run generate`.

type PackageNetwork = Omit<SdkNetwork, "chains" | "settings"> &
  Record<string, unknown> & { readonly chains: Readonly<Record<string, Readonly<Record<string, unknown>>>> };

/** The configuration in the package, read by another process: the SDK, which other tests use in this one, changes it. */
const packageConfig = JSON.parse(
  execFileSync(process.execPath, [
    "--input-type=module",
    "--eval",
    'console.log(JSON.stringify((await import("@hop-protocol/sdk/config")).sdkConfig))',
  ]).toString(),
) as Readonly<Record<"mainnet" | "goerli", PackageNetwork>>;

describe.each(["mainnet", "goerli"] as const)("the generated copy of the SDK's configuration of %s", (network) => {
  const { chains, addresses, settings } = sdkConfig[network];
  const source = packageConfig[network];

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
