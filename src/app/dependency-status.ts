import type { ChainPoolState, Chains } from "../chain/chains.js";
import { getNetwork } from "../hop/networks.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import type { TransfersModule } from "./compose-transfers.js";
import type { OffChainSources } from "./off-chain-sources.js";

/** How what the service depends on is, as far as it is known: to be asked at any time, at no cost to anybody. */
export interface DependencyStatus {
  /** Mainnet's, and those of other networks that somebody uses. */
  readonly chains: readonly ChainPoolState[];
  readonly sources: readonly SourceStatus[];
  /** undefined: there is no index. */
  readonly index: readonly IndexLag[] | undefined;
}

export interface SourceStatus {
  readonly source: string;
  readonly state: SourceHealth["state"] | "off";
  readonly ageMs: number | undefined;
}

/** By how many blocks the index is behind a chain. */
export interface IndexLag {
  readonly chain: string;
  readonly lagBlocks: number;
}

export interface DependencyMonitorDeps {
  readonly chains: Pick<Chains, "listStates" | "probe">;
  readonly upstreams: Pick<OffChainSources, "health" | "refreshStale">;
  readonly statuses: Pick<TransfersModule, "explorerHealth" | "indexCoverage">;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly monotonicNow: () => number;
}

export interface DependencyMonitor {
  read(): DependencyStatus;
  /** Has looked for what changes by itself, in the background and never often, however often it is called. */
  probe(): void;
}

/** For how long after the last use a network beside mainnet counts as used. */
const NETWORK_IN_USE_MS = 10 * 60_000;

export function createDependencyMonitor({
  chains,
  upstreams,
  statuses,
  now,
  monotonicNow,
}: DependencyMonitorDeps): DependencyMonitor {
  function chainsInUse(): readonly ChainPoolState[] {
    const isInUse = ({ network, lastUsedAt }: ChainPoolState): boolean =>
      network === "mainnet" || (lastUsedAt !== undefined && monotonicNow() - lastUsedAt < NETWORK_IN_USE_MS);
    return chains.listStates().filter(isInUse);
  }

  /** By the chain's head where that is known; else by what came meanwhile, as far as its blocks keep their time. */
  function lagOf({ chain, head }: ChainPoolState): IndexLag[] {
    const coverage = statuses.indexCoverage?.(chain);
    if (coverage === undefined) return [];
    const blockMs = getNetwork("mainnet").chains.get(chain)?.blockTimeMs ?? Number.POSITIVE_INFINITY;
    const lag = head === undefined ? (now() - coverage.observedAtMs) / blockMs : head.number - coverage.toBlock;
    return [{ chain, lagBlocks: Math.max(0, Math.floor(lag)) }];
  }

  return {
    read() {
      const inUse = chainsInUse();
      const { settings_mainnet, settings_goerli, prices, attestations } = upstreams.health();
      const health = { settings_mainnet, settings_goerli, prices, explorer: statuses.explorerHealth(), attestations };
      const sources = Object.entries(health).map(([source, known]): SourceStatus => {
        return { source, state: known?.state ?? "off", ageMs: known?.ageMs };
      });
      const ofMainnet = inUse.filter(({ network }) => network === "mainnet");
      return { chains: inUse, sources, index: statuses.indexCoverage && ofMainnet.flatMap(lagOf) };
    },
    probe() {
      for (const { network, chain } of chainsInUse()) chains.probe(network, chain);
      upstreams.refreshStale();
    },
  };
}
