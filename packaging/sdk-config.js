// Writes gen/hop/sdk-config.ts, the part of the SDK's configuration that the service uses: `npm run generate`. The SDK's own
// module holds half a megabyte of images of tokens, which cost 26 ms and 9 MB at every start.
import { writeFileSync } from "node:fs";
import { sdkConfig } from "@hop-protocol/sdk/config";

const NETWORKS = ["mainnet", "goerli"];
const CHAIN_FIELDS = [
  "slug",
  "chainId",
  "isL1",
  "nativeTokenSymbol",
  "publicRpcUrl",
  "fallbackPublicRpcUrls",
  "multicall",
];
const SETTINGS = [
  "bonders",
  "bonderFeeBps",
  "destinationFeeGasPriceMultiplier",
  "relayerFeeEnabled",
  "relayerFeeWei",
  "bridgeDeprecated",
];

/** Returns the given properties of an object, without those that it does not have. */
const pick = (source, names) =>
  Object.fromEntries(names.filter((name) => name in source).map((name) => [name, source[name]]));

const networks = NETWORKS.map((network) => {
  const { chains, addresses } = sdkConfig[network];
  const pickedChains = Object.values(chains).map((chain) => pick(chain, CHAIN_FIELDS));
  return [network, { chains: pickedChains, addresses, settings: pick(sdkConfig[network], SETTINGS) }];
});
const text = `// Written by packaging/sdk-config.js from @hop-protocol/sdk. Do not edit.

/** A chain, as the SDK describes it. */
export interface SdkChain {
  readonly slug: string;
  readonly chainId: string;
  readonly isL1: boolean;
  readonly nativeTokenSymbol: string;
  readonly publicRpcUrl: string;
  readonly fallbackPublicRpcUrls?: readonly string[];
  readonly multicall?: string;
}

export interface SdkNetwork {
  readonly chains: readonly SdkChain[];
  /** Contracts by token symbol, chain slug and name. */
  readonly addresses: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string | number>>>>>>;
  /** The built-in fee settings. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** The SDK's configuration by network. */
export const sdkConfig: Readonly<Record<${NETWORKS.map((name) => `"${name}"`).join(" | ")}, SdkNetwork>> = ${JSON.stringify(Object.fromEntries(networks), null, 2)};
`;
writeFileSync(new URL("../gen/hop/sdk-config.ts", import.meta.url), text);
