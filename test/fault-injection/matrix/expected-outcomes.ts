import type { FaultName } from "../faults.js";

// The expected outcome of each fault at each upstream. The tests check it, and docs/internals/faults.md shows it.

/**
 * What happens to the queries that need the upstream. "correct": all responses are those without the fault. "stale": a quote
 * uses the state that was read last, for up to QUOTE_MAX_STALE_MS and with its age in the Age header; a status and a
 * withdrawal are served for about a block; then all become unavailable. "unavailable": 503 or 504 that names the chain or source. Other
 * queries are not affected.
 */
export type Outcome = "correct" | "stale" | "unavailable";

export interface WarmAndColdOutcome {
  /** If the upstream worked before the fault. */
  readonly warm: Outcome;
  /** If it has not worked since the start. */
  readonly cold: Outcome;
}

export const UPSTREAMS = [
  "source chain",
  "destination chain",
  "one of two endpoints",
  "all endpoints",
  "prices",
  "settings",
  "explorer",
  "attestation",
] as const;
export type Upstream = (typeof UPSTREAMS)[number];

const ALWAYS_CORRECT: WarmAndColdOutcome = { warm: "correct", cold: "correct" };
const CHAIN_DOWN: WarmAndColdOutcome = { warm: "stale", cold: "unavailable" };
const DOCUMENT_DOWN: WarmAndColdOutcome = { warm: "correct", cold: "unavailable" };

const byUpstream = (
  ...outcomes: readonly (WarmAndColdOutcome | undefined)[]
): Readonly<Record<Upstream, WarmAndColdOutcome | undefined>> =>
  Object.fromEntries(UPSTREAMS.map((upstream, index) => [upstream, outcomes[index]])) as never;

/** Faults that make any upstream useless. Without the price document, prices come from the feeds on the chains. */
const disablesUpstream = byUpstream(
  CHAIN_DOWN,
  CHAIN_DOWN,
  ALWAYS_CORRECT,
  CHAIN_DOWN,
  ALWAYS_CORRECT,
  DOCUMENT_DOWN,
  CHAIN_DOWN,
  DOCUMENT_DOWN,
);
/** One host has the prices and the settings. */
const refusesConnections = { ...disablesUpstream, prices: DOCUMENT_DOWN };
/** Faults that make a node useless and do not apply to other upstreams. */
const disablesNode = byUpstream(CHAIN_DOWN, CHAIN_DOWN, ALWAYS_CORRECT, CHAIN_DOWN);
const harmlessEverywhere = byUpstream(
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
  ALWAYS_CORRECT,
);
const harmlessNode = byUpstream(ALWAYS_CORRECT, ALWAYS_CORRECT, ALWAYS_CORRECT, ALWAYS_CORRECT);

/** undefined where the fault does not apply to the upstream. */
export const expectedOutcomes: Readonly<Record<FaultName, Readonly<Record<Upstream, WarmAndColdOutcome | undefined>>>> =
  {
    latency: harmlessEverywhere,
    "2 s of latency": harmlessEverywhere,
    "4 s of latency": harmlessEverywhere,
    hang: disablesUpstream,
    "connection refused": refusesConnections,
    "connection reset": disablesUpstream,
    "slow drip": disablesUpstream,
    "truncated body": disablesUpstream,
    "half of the JSON": disablesUpstream,
    "garbage bytes": disablesUpstream,
    "endless body": disablesUpstream,
    "gzip bomb": disablesUpstream,
    "429, Retry-After 1 s": disablesUpstream,
    "429, Retry-After 3 years": disablesUpstream,
    "500": disablesUpstream,
    "HTML with status 200": disablesUpstream,
    "null for everything": disablesUpstream,
    "values of other types": disablesUpstream,
    "results of other types": disablesNode,
    "hex of 50,000 bytes": disablesNode,
    "empty 0x from contracts": disablesNode,
    // No response depends on a block of the destination.
    "null for every block": byUpstream(CHAIN_DOWN, ALWAYS_CORRECT, ALWAYS_CORRECT, CHAIN_DOWN),
    "another chain": disablesNode,
    "lagging head": harmlessNode,
    "block number going back": harmlessNode,
    "batch reordered": harmlessNode,
    "batch with a member missing": harmlessNode,
    "batch with a member twice": harmlessNode,
    "batch refused": harmlessNode,
    "one error for a batch": harmlessNode,
  };
