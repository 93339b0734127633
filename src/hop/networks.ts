import { sdkConfig } from "@hop-protocol/sdk/config";

/** The networks that this service knows; the SDK's `sepolia` has no bridges. */
export const networkSlugs = ["mainnet", "goerli"] as const;
export type NetworkSlug = (typeof networkSlugs)[number];

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
  readonly multicall: string | undefined;
  /** About how long a block takes, in milliseconds. */
  readonly blockMs: number;
}

/** The contracts of one token on one chain: name in the SDK's address book to address. */
export type Contracts = Readonly<Record<string, string | number | undefined>>;

export interface Network {
  readonly slug: NetworkSlug;
  /** The chains on which at least one token has contracts, in the SDK's order. */
  readonly chains: ReadonlyMap<string, Chain>;
  /** Token symbol to chain slug to contracts, in the SDK's order. */
  readonly contracts: ReadonlyMap<string, ReadonlyMap<string, Contracts>>;
}

/** What is read of a chain in the SDK's configuration, whose own types leave it open. */
interface SdkChain {
  readonly slug: string;
  readonly chainId: string;
  readonly isL1: boolean;
  readonly nativeTokenSymbol: string;
  readonly publicRpcUrl: string;
  readonly fallbackPublicRpcUrls?: readonly string[];
  readonly multicall?: string;
}

const blockMs: Readonly<Record<string, number>> = {
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
const otherBlockMs = 2_000;

/** Names that the SDK accepts for a chain beside its slug. */
const chainAliases: Readonly<Record<string, string>> = { xdai: "gnosis" };

const networks: Readonly<Record<NetworkSlug, Network>> = {
  mainnet: readNetwork("mainnet"),
  goerli: readNetwork("goerli"),
};

export function networkOf(slug: NetworkSlug): Network {
  return networks[slug];
}

/** The chain that a slug or alias names, or undefined. */
export function findChain(network: Network, name: string): Chain | undefined {
  return network.chains.get(Object.hasOwn(chainAliases, name) ? (chainAliases[name] as string) : name);
}

function readNetwork(slug: NetworkSlug): Network {
  const book: Record<string, Record<string, Contracts>> = sdkConfig[slug].addresses;
  const contracts = new Map(
    Object.entries(book).map(([token, byChain]) => [token, new Map(Object.entries(byChain))] as const),
  );
  const used = new Set([...contracts.values()].flatMap((byChain) => [...byChain.keys()]));
  const chains = new Map<string, Chain>();
  for (const chain of Object.values<SdkChain>(sdkConfig[slug].chains)) {
    if (!used.has(chain.slug)) continue;
    chains.set(chain.slug, {
      slug: chain.slug,
      chainId: Number(chain.chainId),
      isL1: chain.isL1,
      nativeToken: chain.nativeTokenSymbol,
      publicRpcUrls: [chain.publicRpcUrl, ...(chain.fallbackPublicRpcUrls ?? [])],
      multicall: chain.multicall,
      blockMs: blockMs[chain.slug] ?? otherBlockMs,
    });
  }
  return { slug, chains, contracts };
}
