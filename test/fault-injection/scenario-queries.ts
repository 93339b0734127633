import type { FaultName } from "./faults.js";
import type { QueryName } from "./matrix/baseline.js";
import type { Upstream } from "./matrix/expected-outcomes.js";

export interface ScenarioQueries {
  /** Queries that need the upstream. */
  readonly affected: readonly QueryName[];
  /** Queries that must not notice its fault. */
  readonly others: readonly QueryName[];
}

const CHAIN_QUERIES: ScenarioQueries = {
  affected: ["quote", "batch of quotes", "status by hash", "status by id", "withdrawal"],
  others: ["other quote", "CCTP withdrawal", "routes"],
};
const DOCUMENT_QUERIES: ScenarioQueries = {
  affected: ["quote", "batch of quotes"],
  others: ["status by hash", "status by id", "withdrawal", "CCTP withdrawal", "routes"],
};

const queriesByUpstream: Readonly<Record<Upstream, ScenarioQueries>> = {
  "source chain": CHAIN_QUERIES,
  "destination chain": CHAIN_QUERIES,
  "one of two endpoints": CHAIN_QUERIES,
  "all endpoints": CHAIN_QUERIES,
  prices: DOCUMENT_QUERIES,
  settings: DOCUMENT_QUERIES,
  explorer: { affected: ["status by hash", "status by id"], others: ["other quote", "routes"] },
  attestation: {
    affected: ["CCTP quote", "batch of quotes", "CCTP withdrawal"],
    others: ["quote", "other quote", "status by hash", "withdrawal", "routes"],
  },
};

/** Queries that read nothing that the fault changes. */
const unaffectedQueries: { readonly [Fault in FaultName]?: (query: QueryName) => boolean } = {
  // Statuses are read from receipts and logs, quotes from contracts, and withdrawals from both.
  "empty 0x from contracts": (query) => query.startsWith("status"),
  "null for every block": (query) => query.includes("quote"),
};

/** Divides the queries into those that a fault of the upstream affects, and the others. */
export function selectQueries(fault: FaultName, upstream: Upstream): ScenarioQueries {
  const { affected, others } = queriesByUpstream[upstream];
  const isUnaffected = unaffectedQueries[fault];
  if (isUnaffected === undefined) return { affected, others };
  return {
    affected: affected.filter((query) => !isUnaffected(query)),
    others: [...others, ...affected.filter(isUnaffected)],
  };
}

/** How an error message names the upstream. */
export const UPSTREAM_PATTERNS: Readonly<Record<Upstream, RegExp>> = {
  "source chain": /polygon/,
  "destination chain": /arbitrum/,
  "one of two endpoints": /polygon/,
  "all endpoints": /polygon/,
  prices: /price|fee settings/,
  settings: /fee settings/,
  explorer: /polygon/,
  attestation: /attestation/,
};
