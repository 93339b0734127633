import { sdkConfig } from "../../gen/hop/sdk-config.js";

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
  /** Age of the newest block beyond which the chain is stalled, in milliseconds; 0: no limit. */
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

/** How often a chain produces blocks. */
interface BlockInterval {
  /** Usual time between blocks, in milliseconds. */
  readonly ms: number;
  /** Whether blocks only come with transactions, so that a healthy chain can be without one for minutes. */
  readonly isOnDemand: boolean;
}

/** The block intervals of the chains of mainnet, which goerli's chains share. */
const BLOCK_INTERVALS: Readonly<Record<string, BlockInterval>> = {
  // Consensus specification: SECONDS_PER_SLOT is 12.
  ethereum: { ms: 12_000, isOnDemand: false },
  // OP Stack: l2_block_time of the rollup configuration is 2.
  optimism: { ms: 2_000, isOnDemand: false },
  // Arbitrum documentation, "Block numbers and time": about 250 ms under load; the sequencer makes no empty blocks.
  arbitrum: { ms: 250, isOnDemand: true },
  // Bor's genesis: the period is 2.
  polygon: { ms: 2_000, isOnDemand: false },
  // Gnosis chain specification: SECONDS_PER_SLOT is 5.
  gnosis: { ms: 5_000, isOnDemand: false },
  // As arbitrum.
  nova: { ms: 250, isOnDemand: true },
  // As optimism.
  base: { ms: 2_000, isOnDemand: false },
  // Linea documentation, "Block time": 2 s.
  linea: { ms: 2_000, isOnDemand: false },
  // Polygon zkEVM documentation, "Trusted sequencer": batches of transactions, a few seconds apart; none without them.
  polygonzk: { ms: 3_000, isOnDemand: true },
};
/** For chains of the SDK that are not in the table. */
const DEFAULT_BLOCK_INTERVAL: BlockInterval = { ms: 2_000, isOnDemand: false };

const MAX_MISSED_BLOCKS = 20;
const MIN_MAX_BLOCK_AGE_MS = 2 * 60_000;
const ON_DEMAND_MAX_BLOCK_AGE_MS = 15 * 60_000;

const NETWORKS: Readonly<Record<NetworkSlug, Network>> = {
  mainnet: loadNetwork("mainnet"),
  goerli: loadNetwork("goerli"),
};

export function getNetwork(slug: NetworkSlug): Network {
  return NETWORKS[slug];
}

/** Returns the chain with a slug or alias; undefined if there is none. */
export function findChainBySlug(network: Network, slug: string): Chain | undefined {
  return network.chains.get(slug) ?? network.chains.get(CHAIN_ALIASES.get(slug) ?? "");
}

/** Returns the chain with a slug or alias, in any letter case, or with a chain ID; undefined if there is none. */
export function findChain(network: Network, name: string): Chain | undefined {
  return (
    findChainBySlug(network, name) ??
    findChainBySlug(network, name.toLowerCase()) ??
    [...network.chains.values()].find(({ chainId }) => String(chainId) === name)
  );
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
    const interval = BLOCK_INTERVALS[chain.slug] ?? DEFAULT_BLOCK_INTERVAL;
    chains.set(chain.slug, {
      slug: chain.slug,
      chainId: Number(chain.chainId),
      isL1: chain.isL1,
      nativeToken: chain.nativeTokenSymbol,
      publicRpcUrls: [chain.publicRpcUrl, ...(chain.fallbackPublicRpcUrls ?? [])],
      multicallAddress: chain.multicall,
      blockTimeMs: interval.ms,
      // Goerli was shut down: its chains are stalled for ever.
      maxBlockAgeMs: slug === "mainnet" ? getMaxBlockAgeMs(interval) : 0,
    });
  }
  return { slug, chains, contracts };
}

/** Returns the age of the newest block beyond which a chain with this block interval is stalled, in milliseconds. */
function getMaxBlockAgeMs({ ms, isOnDemand }: BlockInterval): number {
  return isOnDemand ? ON_DEMAND_MAX_BLOCK_AGE_MS : Math.max(MIN_MAX_BLOCK_AGE_MS, MAX_MISSED_BLOCKS * ms);
}

const MIN_POLL_INTERVAL_MS = 2_000;

/** Returns the time between two polls of a chain, in milliseconds. */
export function getPollIntervalMs({ blockTimeMs }: Pick<Chain, "blockTimeMs">): number {
  return Math.max(blockTimeMs, MIN_POLL_INTERVAL_MS);
}
