import type { FaultName } from "./faults.js";

// What is to come of each fault at each upstream. The tests read it, and docs/faults.md shows it.

/**
 * What becomes of the questions that need the upstream: "right": all are answered as if nothing were wrong; "kept": a
 * quote is made of what was read before, within QUOTE_MAX_STALE_MS and with its age shown, a status is given for about a
 * block, and then both are refused; "refused": 503 or 504, with the chain or source named. No other question notices.
 */
export type Outcome = "right" | "kept" | "refused";

export interface WarmAndColdOutcome {
  /** Where the upstream was well before. */
  readonly warm: Outcome;
  /** Where it was never well since the start. */
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

const ALWAYS_CORRECT: WarmAndColdOutcome = { warm: "right", cold: "right" };
const CHAIN_DOWN: WarmAndColdOutcome = { warm: "kept", cold: "refused" };
const DOCUMENT_DOWN: WarmAndColdOutcome = { warm: "right", cold: "refused" };

const byUpstream = (
  ...outcomes: readonly (WarmAndColdOutcome | undefined)[]
): Readonly<Record<Upstream, WarmAndColdOutcome | undefined>> =>
  Object.fromEntries(UPSTREAMS.map((upstream, index) => [upstream, outcomes[index]])) as never;

/** What makes an upstream useless. */
const disablesUpstream = byUpstream(
  CHAIN_DOWN,
  CHAIN_DOWN,
  ALWAYS_CORRECT,
  CHAIN_DOWN,
  DOCUMENT_DOWN,
  DOCUMENT_DOWN,
  CHAIN_DOWN,
  DOCUMENT_DOWN,
);
/** What makes a node useless, and nothing else can have. */
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

/** undefined: the fault does not apply to the upstream. */
export const expectedOutcomes: Readonly<Record<FaultName, Readonly<Record<Upstream, WarmAndColdOutcome | undefined>>>> =
  {
    latency: harmlessEverywhere,
    hang: disablesUpstream,
    "connection refused": disablesUpstream,
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
    // Of the destination no block is read without which the answer is another.
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
