import { sdkConfig } from "@hop-protocol/sdk/config";

/** The networks that this service knows; the SDK's `sepolia` has no bridges. */
export const NETWORK_SLUGS = ["mainnet", "goerli"] as const;
export type NetworkSlug = (typeof NETWORK_SLUGS)[number];

/** A chain of a network, as the SDK describes it. */
export interface Chain {
  readonly slug: string;
  readonly chainId: number;
  readonly isL1: boolean;
  /** Symbol of the token in which gas is paid there, as token prices know it. */
  readonly nativeToken: string;
  /** The SDK's public RPC endpoints, in its order of preference. */
  readonly publicRpcUrls: readonly string[];
  /** Where Multicall3 stands; undefined: nowhere. */
  readonly multicallAddress: string | undefined;
  /** About how long a block takes, in milliseconds. */
  readonly blockTimeMs: number;
}

/** The contracts of one token on one chain: name in the SDK's address book to address. */
export type TokenContracts = Readonly<Record<string, string | number | undefined>>;

export interface Network {
  readonly slug: NetworkSlug;
  /** The chains on which at least one token has contracts, in the SDK's order. */
  readonly chains: ReadonlyMap<string, Chain>;
  /** Token symbol to chain slug to contracts, in the SDK's order. */
  readonly contracts: ReadonlyMap<string, ReadonlyMap<string, TokenContracts>>;
}

/** What is read of a chain in the SDK's configuration, whose own types leave it open. */
interface SdkChainConfig {
  readonly slug: string;
  readonly chainId: string;
  readonly isL1: boolean;
  readonly nativeTokenSymbol: string;
  readonly publicRpcUrl: string;
  readonly fallbackPublicRpcUrls?: readonly string[];
  readonly multicall?: string;
}

const BLOCK_TIMES_MS: Readonly<Record<string, number>> = {
  ethereum: 12_000,
  optimism: 2_000,
  arbitrum: 250,
  polygon: 2_000,
  gnosis: 5_000,
  nova: 250,
  base: 2_000,
  linea: 2_000,
  polygonzk: 3_000,
};
/** For a chain that the SDK knows and this table does not. */
const DEFAULT_BLOCK_TIME_MS = 2_000;

/** Names that the SDK accepts for a chain beside its slug. */
const CHAIN_ALIASES: Readonly<Record<string, string>> = { xdai: "gnosis" };

const networks: Readonly<Record<NetworkSlug, Network>> = {
  mainnet: loadNetwork("mainnet"),
  goerli: loadNetwork("goerli"),
};

export function getNetwork(slug: NetworkSlug): Network {
  return networks[slug];
}

/** The chain that a slug or alias names, or undefined. */
export function findChain(network: Network, name: string): Chain | undefined {
  return network.chains.get(Object.hasOwn(CHAIN_ALIASES, name) ? (CHAIN_ALIASES[name] as string) : name);
}

function loadNetwork(slug: NetworkSlug): Network {
  const book: Record<string, Record<string, TokenContracts>> = sdkConfig[slug].addresses;
  const contracts = new Map(
    Object.entries(book).map(([token, byChain]) => [token, new Map(Object.entries(byChain))] as const),
  );
  const used = new Set([...contracts.values()].flatMap((byChain) => [...byChain.keys()]));
  const chains = new Map<string, Chain>();
  for (const chain of Object.values<SdkChainConfig>(sdkConfig[slug].chains)) {
    if (!used.has(chain.slug)) continue;
    chains.set(chain.slug, {
      slug: chain.slug,
      chainId: Number(chain.chainId),
      isL1: chain.isL1,
      nativeToken: chain.nativeTokenSymbol,
      publicRpcUrls: [chain.publicRpcUrl, ...(chain.fallbackPublicRpcUrls ?? [])],
      multicallAddress: chain.multicall,
      blockTimeMs: BLOCK_TIMES_MS[chain.slug] ?? DEFAULT_BLOCK_TIME_MS,
    });
  }
  return { slug, chains, contracts };
}
