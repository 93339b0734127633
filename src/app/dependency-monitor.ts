import type { ChainClients, ChainEndpointsState } from "../chain/chains.js";
import type { BlockAgeMonitor } from "../chain/heads/block-age-monitor.js";
import { getNetwork } from "../hop/networks.js";
import type { DependencyMonitor } from "../observability/dependency-status.js";
import type { BurnLimits } from "../quotes/burn-limits.js";
import type { TransferIndex } from "../transfers/index/transfer-index.js";
import type { TransfersModule } from "./compose-transfers.js";
import type { OffChainSources } from "./off-chain-sources.js";

export interface DependencyMonitorDeps {
  readonly chains: Pick<ChainClients, "listStates" | "probe">;
  /** Estimates the clock of this machine; undefined: no chain has a limit for the age of its blocks. */
  readonly getClock?: BlockAgeMonitor["clock"] | undefined;
  readonly offChainSources: Pick<OffChainSources, "health" | "refreshStale" | "prices" | "listRefusedFeeds">;
  readonly quotes: { readonly burnLimits: Pick<BurnLimits, "refreshStale" | "toUsdc"> };
  readonly transfers: Pick<TransfersModule, "explorerHealth">;
  /** Of mainnet; undefined: there is none. */
  readonly index: Pick<TransferIndex, "getCoverage" | "getServerStatus"> | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a monotonic clock. */
  readonly monotonicNow: () => number;
}

/** A network other than mainnet counts as used for this long after its last request. */
const NETWORK_IN_USE_MS = 10 * 60_000;

export function createDependencyMonitor({
  chains,
  getClock,
  offChainSources,
  quotes: { burnLimits },
  transfers,
  index,
  now,
  monotonicNow,
}: DependencyMonitorDeps): DependencyMonitor {
  function listChainsInUse(): readonly ChainEndpointsState[] {
    const isInUse = ({ network, lastUsedAt }: ChainEndpointsState): boolean =>
      network === "mainnet" || (lastUsedAt !== undefined && monotonicNow() - lastUsedAt < NETWORK_IN_USE_MS);
    return chains.listStates().filter(isInUse);
  }

  /** Compares the index with the chain's head; without a known head, estimates the blocks produced since the last poll. */
  function computeIndexLag({ chain, head }: ChainEndpointsState) {
    const coverage = index?.getCoverage(chain);
    if (coverage === undefined) return [];
    const blockMs = getNetwork("mainnet").chains.get(chain)?.blockTimeMs ?? Number.POSITIVE_INFINITY;
    const lag = head === undefined ? (now() - coverage.observedAtMs) / blockMs : head.number - coverage.toBlock;
    return [{ chain, lagBlocks: Math.max(0, Math.floor(lag)) }];
  }

  return {
    read() {
      const inUse = listChainsInUse();
      const { attestations, ...assets } = offChainSources.health();
      const healthBySource = { ...assets, explorer: transfers.explorerHealth(), attestations };
      const sources = Object.entries(healthBySource).map(([source, health]) => {
        return { source, state: health?.state ?? "off", ageMs: health?.ageMs, failure: health?.failure } as const;
      });
      const mainnetChains = inUse.filter(({ network }) => network === "mainnet");
      const { comparisons: differences, distrustedTokens } = offChainSources.prices.compareSources();
      return {
        chains: inUse,
        sources,
        index: index && mainnetChains.flatMap(computeIndexLag),
        indexDatabase: index?.getServerStatus(),
        clock: getClock?.(),
        burnLimitsUsdc: burnLimits.toUsdc(),
        prices: { differences, distrustedTokens, refusedFeeds: offChainSources.listRefusedFeeds() },
      };
    },
    probe() {
      for (const { network, chain } of listChainsInUse()) chains.probe(network, chain);
      offChainSources.refreshStale();
      burnLimits.refreshStale();
    },
  };
}
