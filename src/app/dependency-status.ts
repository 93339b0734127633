import type { ChainState, Chains } from "../chain/chains.js";
import { networkOf } from "../hop/networks.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import type { Statuses } from "./compose-transfers.js";
import type { Upstreams } from "./off-chain-sources.js";

/** How what the service depends on is, as far as it is known: to be asked at any time, at no cost to anybody. */
export interface ServiceState {
  /** Mainnet's, and those of other networks that somebody uses. */
  readonly chains: readonly ChainState[];
  readonly sources: readonly SourceState[];
  /** undefined: there is no index. */
  readonly index: readonly IndexLag[] | undefined;
}

export interface SourceState {
  readonly source: string;
  readonly state: SourceHealth["state"] | "off";
  readonly ageMs: number | undefined;
}

/** By how many blocks the index is behind a chain. */
export interface IndexLag {
  readonly chain: string;
  readonly lagBlocks: number;
}

export interface StateDeps {
  readonly chains: Pick<Chains, "states" | "look">;
  readonly upstreams: Pick<Upstreams, "health" | "look">;
  readonly statuses: Pick<Statuses, "explorerHealth" | "indexCoverage">;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly steady: () => number;
}

export interface StateReader {
  read(): ServiceState;
  /** Has looked for what changes by itself, in the background and never often, however often it is called. */
  look(): void;
}

/** For how long after the last use a network beside mainnet counts as used. */
const inUseMs = 10 * 60_000;

export function createStateReader({ chains, upstreams, statuses, now, steady }: StateDeps): StateReader {
  function chainsInUse(): readonly ChainState[] {
    const isInUse = ({ network, usedAt }: ChainState): boolean =>
      network === "mainnet" || (usedAt !== undefined && steady() - usedAt < inUseMs);
    return chains.states().filter(isInUse);
  }

  /** By the chain's head where that is known; else by what came meanwhile, as far as its blocks keep their time. */
  function lagOf({ chain, head }: ChainState): IndexLag[] {
    const coverage = statuses.indexCoverage?.(chain);
    if (coverage === undefined) return [];
    const blockMs = networkOf("mainnet").chains.get(chain)?.blockMs ?? Number.POSITIVE_INFINITY;
    const lag = head === undefined ? (now() - coverage.observedAt) / blockMs : head.number - coverage.to;
    return [{ chain, lagBlocks: Math.max(0, Math.floor(lag)) }];
  }

  return {
    read() {
      const inUse = chainsInUse();
      const { settings_mainnet, settings_goerli, prices, attestations } = upstreams.health();
      const health = { settings_mainnet, settings_goerli, prices, explorer: statuses.explorerHealth(), attestations };
      const sources = Object.entries(health).map(([source, known]): SourceState => {
        return { source, state: known?.state ?? "off", ageMs: known?.ageMs };
      });
      const ofMainnet = inUse.filter(({ network }) => network === "mainnet");
      return { chains: inUse, sources, index: statuses.indexCoverage && ofMainnet.flatMap(lagOf) };
    },
    look() {
      for (const { network, chain } of chainsInUse()) chains.look(network, chain);
      upstreams.look();
    },
  };
}
