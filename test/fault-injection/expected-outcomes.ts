import type { FaultName } from "./faults.js";

// What is to come of each fault at each upstream. The tests read it, and docs/faults.md shows it.

/**
 * What becomes of the questions that need the upstream: "right": all are answered as if nothing were wrong; "kept": a
 * quote is made of what was read before, within QUOTE_MAX_STALE_MS and with its age shown, a status is given for about a
 * block, and then both are refused; "refused": 503 or 504, with the chain or source named. No other question notices.
 */
export type Outcome = "right" | "kept" | "refused";

export interface Outcomes {
  /** Where the upstream was well before. */
  readonly warm: Outcome;
  /** Where it was never well since the start. */
  readonly cold: Outcome;
}

export const upstreams = [
  "source chain",
  "destination chain",
  "one of two endpoints",
  "all endpoints",
  "prices",
  "settings",
  "explorer",
  "attestation",
] as const;
export type Upstream = (typeof upstreams)[number];

const right: Outcomes = { warm: "right", cold: "right" };
const chainDown: Outcomes = { warm: "kept", cold: "refused" };
const documentDown: Outcomes = { warm: "right", cold: "refused" };

const inOrder = (...outcomes: readonly (Outcomes | undefined)[]): Readonly<Record<Upstream, Outcomes | undefined>> =>
  Object.fromEntries(upstreams.map((upstream, index) => [upstream, outcomes[index]])) as never;

/** What makes an upstream useless. */
const useless = inOrder(chainDown, chainDown, right, chainDown, documentDown, documentDown, chainDown, documentDown);
/** What makes a node useless, and nothing else can have. */
const uselessNode = inOrder(chainDown, chainDown, right, chainDown);
const harmless = inOrder(right, right, right, right, right, right, right, right);
const harmlessNode = inOrder(right, right, right, right);

/** undefined: the fault does not apply to the upstream. */
export const outcomes: Readonly<Record<FaultName, Readonly<Record<Upstream, Outcomes | undefined>>>> = {
  latency: harmless,
  hang: useless,
  "connection refused": useless,
  "connection reset": useless,
  "slow drip": useless,
  "truncated body": useless,
  "half of the JSON": useless,
  "garbage bytes": useless,
  "endless body": useless,
  "gzip bomb": useless,
  "429, Retry-After 1 s": useless,
  "429, Retry-After 3 years": useless,
  "500": useless,
  "HTML with status 200": useless,
  "null for everything": useless,
  "values of other types": useless,
  "results of other types": uselessNode,
  "hex of 50,000 bytes": uselessNode,
  "empty 0x from contracts": uselessNode,
  // Of the destination no block is read without which the answer is another.
  "null for every block": inOrder(chainDown, right, right, chainDown),
  "another chain": uselessNode,
  "lagging head": harmlessNode,
  "block number going back": harmlessNode,
  "batch reordered": harmlessNode,
  "batch with a member missing": harmlessNode,
  "batch with a member twice": harmlessNode,
  "batch refused": harmlessNode,
  "one error for a batch": harmlessNode,
};
