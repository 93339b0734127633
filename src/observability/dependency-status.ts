import type { ClockEstimate } from "../chain/block-age/judge-block-ages.js";
import type { ChainPoolState } from "../chain/chains.js";
import type { SourceHealth } from "../resilience/stale-while-revalidate.js";

/** The last known state of everything the service depends on. */
export interface DependencyStatus {
  /** The chains of mainnet, and those of other networks that have been used recently. */
  readonly chains: readonly ChainPoolState[];
  readonly sources: readonly SourceStatus[];
  /** undefined: there is no index. */
  readonly index: readonly IndexLag[] | undefined;
  /** Absent: the index is not in PostgreSQL. */
  readonly indexDatabase?: IndexDatabaseStatus | undefined;
  readonly prices: PriceStatus;
  /** The clock of this machine; absent: no chain has a limit for the age of its blocks. */
  readonly clock?: ClockEstimate | undefined;
}

/** An index in PostgreSQL as this process sees it. */
export interface IndexDatabaseStatus {
  readonly isAvailable: boolean;
  /** Connections by pool and use, and requests that wait for one. */
  readonly connections: Readonly<
    Record<string, { readonly active: number; readonly idle: number; readonly waiting: number }>
  >;
  /** Failed statements and connections since the start, by code. */
  readonly failures: ReadonlyMap<string, number>;
  /** Number of leases that this process holds, by kind. */
  readonly leases: Readonly<Record<"follow" | "history", number>>;
}

/** How far the sources of prices agree. Tokens are upper-case symbols. */
export interface PriceStatus {
  /** Differences between the first two sources that have a price, relative to the second. */
  readonly differences: readonly { readonly token: string; readonly difference: number }[];
  /** Tokens about which the preferred source is not believed. */
  readonly distrustedTokens: readonly string[];
  readonly refusedFeeds: readonly RefusedFeed[];
}

/** A price feed that gives no price, and why. */
export interface RefusedFeed {
  readonly token: string;
  readonly reason: string;
}

/** The state of an off-chain source. */
export interface SourceStatus {
  readonly source: string;
  readonly state: SourceHealth["state"] | "off";
  readonly ageMs: number | undefined;
}

/** How many blocks the index is behind a chain. */
export interface IndexLag {
  readonly chain: string;
  readonly lagBlocks: number;
}

export interface DependencyMonitor {
  /** Returns the last known state. Sends no request. */
  read(): DependencyStatus;
  /** Refreshes the state in the background. Rate limited, however often it is called. */
  probe(): void;
}
