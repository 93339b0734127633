// Writes what is used of the SDK's configuration: `npm run generate`. gen/hop/sdk-config.ts is for the service: the SDK's own
// module holds half a megabyte of images of tokens, which cost 26 ms and 9 MB at every start. gen/hop/withdrawal-contracts.ts
// is for clients, in browsers too: the addresses of bridges alone.
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

/** Returns the contracts that pay withdrawals, by chain ID; no two networks share a chain. */
function listWithdrawalContracts() {
  const contracts = {};
  for (const network of NETWORKS) {
    const { chains, addresses } = sdkConfig[network];
    for (const [token, byChain] of Object.entries(addresses)) {
      for (const [slug, found] of Object.entries(byChain)) {
        const { chainId } = chains[slug];
        contracts[chainId] ??= { slug, bridges: {} };
        const chain = contracts[chainId];
        const bridge = found.l1Bridge ?? found.l2Bridge;
        if (bridge !== undefined) chain.bridges[token] = bridge.toLowerCase();
        if (found.cctpMessageTransmitter === undefined) continue;
        chain.cctpBridge = (found.cctpL1Bridge ?? found.cctpL2Bridge).toLowerCase();
        chain.messageTransmitter = found.cctpMessageTransmitter.toLowerCase();
      }
    }
  }
  return contracts;
}

const withdrawalText = `// Written by packaging/sdk-config.js from @hop-protocol/sdk. Do not edit.

/** Contracts of a chain, lower case. */
export interface WithdrawalContracts {
  readonly slug: string;
  /** Hop's bridges by token symbol. */
  readonly bridges: Readonly<Record<string, string>>;
  /** Hop's contract that burns USDC for CCTP. */
  readonly cctpBridge?: string;
  /** Circle's MessageTransmitter. */
  readonly messageTransmitter?: string;
}

/** The contracts that pay withdrawals, by chain ID. */
export const withdrawalContracts: Readonly<Record<number, WithdrawalContracts>> = ${JSON.stringify(listWithdrawalContracts(), null, 2)};
`;
writeFileSync(new URL("../gen/hop/withdrawal-contracts.ts", import.meta.url), withdrawalText);
