import type { ChainEndpointsState } from "../chain/chains.js";
import type { ClockEstimate } from "../chain/heads/chain-clock.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";
import type { TransferIndex } from "../transfers/index/transfer-index.js";

/** The last known state of everything the service depends on. */
export interface DependencyStatus {
  /** The chains of mainnet, and those of other networks that have been used recently. */
  readonly chains: readonly ChainEndpointsState[];
  /** The off-chain sources. */
  readonly sources: readonly {
    readonly source: string;
    readonly state: SourceHealth["state"] | "off";
    readonly ageMs: number | undefined;
    /** As in SourceHealth. */
    readonly failure?: string | undefined;
  }[];
  /** How many blocks the index is behind the chains; undefined: there is no index. */
  readonly index: readonly { readonly chain: string; readonly lagBlocks: number }[] | undefined;
  /** Absent: the index is not in PostgreSQL. */
  readonly indexDatabase?: ReturnType<TransferIndex["getServerStatus"]>;
  /** How far the sources of prices agree. Tokens are upper-case symbols. */
  readonly prices: {
    /** Differences between the first two sources that have a price, relative to the second. */
    readonly differences: readonly { readonly token: string; readonly difference: number }[];
    /** Tokens about which the preferred source is not believed. */
    readonly distrustedTokens: readonly string[];
    /** Price feeds that give no price, and why. */
    readonly refusedFeeds: readonly { readonly token: string; readonly reason: string }[];
  };
  /** The most that one CCTP message burns on a chain of mainnet, in USDC, by slug, where it is known. */
  readonly burnLimitsUsdc: ReadonlyMap<string, number>;
  /** The clock of this machine; absent: no chain has a limit for the age of its blocks. */
  readonly clock?: ClockEstimate | undefined;
}

export interface DependencyMonitor {
  /** Returns the last known state. Sends no request. */
  read(): DependencyStatus;
  /** Refreshes the state in the background. Rate limited, however often it is called. */
  probe(): void;
}
