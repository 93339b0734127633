import { sdkConfig } from "../../gen/hop/sdk-config.js";
import { getBlockTime, getMaxBlockAgeMs } from "./block-times.js";

/** The supported networks. The SDK's `sepolia` has no bridges. */
export const NETWORK_SLUGS = ["mainnet", "goerli"] as const;
export type NetworkSlug = (typeof NETWORK_SLUGS)[number];

/** A chain of a network, as the SDK describes it. */
export interface Chain {
  readonly slug: string;
  readonly chainId: number;
  readonly isL1: boolean;
  /** Symbol of the gas token, as used in token prices. */
  readonly nativeToken: string;
  /** The SDK's public RPC endpoints, in its order of preference. */
  readonly publicRpcUrls: readonly string[];
  /** Address of Multicall3; undefined: not deployed. */
  readonly multicallAddress: string | undefined;
  /** Approximate block time in milliseconds. */
  readonly blockTimeMs: number;
  /** Age of the newest block beyond which the chain stands still, in milliseconds; 0: no limit. */
  readonly maxBlockAgeMs: number;
}

/** Contracts of one token on one chain: address by name in the SDK's address book. */
export type TokenContracts = Readonly<Record<string, string | number | undefined>>;

export interface Network {
  readonly slug: NetworkSlug;
  /** The chains on which at least one token has contracts, in the SDK's order. */
  readonly chains: ReadonlyMap<string, Chain>;
  /** Contracts by token symbol and chain slug, in the SDK's order. */
  readonly contracts: ReadonlyMap<string, ReadonlyMap<string, TokenContracts>>;
}

/** Names that the SDK accepts for a chain in addition to its slug. */
const CHAIN_ALIASES: ReadonlyMap<string, string> = new Map([["xdai", "gnosis"]]);

const NETWORKS: Readonly<Record<NetworkSlug, Network>> = {
  mainnet: loadNetwork("mainnet"),
  goerli: loadNetwork("goerli"),
};

export function getNetwork(slug: NetworkSlug): Network {
  return NETWORKS[slug];
}

/** Returns the chain with a slug or alias; undefined if there is none. */
export function findChain(network: Network, name: string): Chain | undefined {
  return network.chains.get(name) ?? network.chains.get(CHAIN_ALIASES.get(name) ?? "");
}

function loadNetwork(slug: NetworkSlug): Network {
  const { addresses, chains: sdkChains } = sdkConfig[slug];
  const contracts = new Map(
    Object.entries(addresses).map(([token, byChain]) => [token, new Map(Object.entries(byChain))] as const),
  );
  const usedSlugs = new Set([...contracts.values()].flatMap((byChain) => [...byChain.keys()]));
  const chains = new Map<string, Chain>();
  for (const chain of sdkChains) {
    if (!usedSlugs.has(chain.slug)) continue;
    const blockTime = getBlockTime(chain.slug);
    chains.set(chain.slug, {
      slug: chain.slug,
      chainId: Number(chain.chainId),
      isL1: chain.isL1,
      nativeToken: chain.nativeTokenSymbol,
      publicRpcUrls: [chain.publicRpcUrl, ...(chain.fallbackPublicRpcUrls ?? [])],
      multicallAddress: chain.multicall,
      blockTimeMs: blockTime.ms,
      // Goerli was shut down: its chains stand still for ever.
      maxBlockAgeMs: slug === "mainnet" ? getMaxBlockAgeMs(blockTime) : 0,
    });
  }
  return { slug, chains, contracts };
}
