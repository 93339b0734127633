import type { EndpointReport } from "../chain/diagnose/diagnose-endpoints.js";
import { MAX_BLOCKS_BEHIND, MAX_SECONDS_AHEAD, MAX_SECONDS_BEHIND } from "../chain/endpoints/head-tracker.js";
import { DEFAULT_HEDGE_DELAY_MS } from "../resilience/circuit-breaker.js";

/** What is wrong with an endpoint, worst first. */
export type EndpointProblem =
  | "unreachable"
  | "wrong chain"
  | "no contracts"
  | "stalled"
  | "wrong clock"
  | "lags"
  | "slow"
  | "no batch"
  | "no multicall"
  | "few logs"
  | "unsure";

export interface EndpointAssessment {
  readonly problems: readonly EndpointProblem[];
  /** Whether the service can work with it. */
  readonly isUsable: boolean;
  /** For people. */
  readonly summary: string;
}

/** What the service expects of the endpoints of a chain. */
export interface EndpointRequirements {
  readonly chainId: number;
  /** Whether the chain has Multicall3. */
  readonly hasMulticall: boolean;
}

const fatalProblems: ReadonlySet<EndpointProblem> = new Set(["unreachable", "wrong chain", "no contracts", "stalled"]);
/** Quiet chains make no block for a while; none is quiet for that long, in seconds. */
const STALLED_AFTER_SECONDS = 60 * 60;
/** What the service sends in one request at most, by and large. */
const MIN_BATCH_SIZE = 10;
/** A chain of 100 million blocks is searched in as many requests as fit into one answer's time. */
const MIN_LOG_BLOCK_RANGE = 10_000;

/** What to think of an endpoint: by the measures by which the service itself puts one behind another. */
export function assessEndpoint(report: EndpointReport, expected: EndpointRequirements): EndpointAssessment {
  const found = [...findProblems(report, expected)];
  const problems = found.map(([problem]) => problem);
  const words = found.map(([, each]) => each).join("; ");
  return {
    problems,
    isUsable: !problems.some((each) => fatalProblems.has(each)),
    summary: words === "" ? "ok" : words,
  };
}

function* findProblems(
  report: EndpointReport,
  { chainId, hasMulticall }: EndpointRequirements,
): Generator<[EndpointProblem, string]> {
  const { trouble, head, lag, latencyMs, contracts, batch, logBlocks } = report;
  if (report.chainId === undefined) return yield ["unreachable", `unreachable: ${trouble ?? "nothing is known"}`];
  if (report.chainId !== chainId) return yield ["wrong chain", `wrong chain: ${report.chainId}, not ${chainId}`];
  if (head === undefined) return yield ["unreachable", "unreachable: does not tell its newest block"];
  if (contracts === "none") yield ["no contracts", "calls no contracts: no quotes"];
  if (head.ageSeconds >= STALLED_AFTER_SECONDS)
    yield ["stalled", `newest block is ${Math.round(head.ageSeconds / 60)} min old`];
  if (head.ageSeconds < -MAX_SECONDS_AHEAD)
    yield ["wrong clock", "block of the future: its clock is wrong, or this one"];
  if (lag !== undefined && (lag.blocks >= MAX_BLOCKS_BEHIND || lag.seconds >= MAX_SECONDS_BEHIND)) {
    yield ["lags", "lags: asked last"];
  }
  if (latencyMs !== undefined && latencyMs >= DEFAULT_HEDGE_DELAY_MS)
    yield ["slow", "slow: another is asked beside it"];
  if (batch === 1) yield ["no batch", "no batch: more requests"];
  else if (batch !== undefined && batch < MIN_BATCH_SIZE) yield ["no batch", `batches of ${batch}: more requests`];
  if (hasMulticall && contracts === "singly") yield ["no multicall", "no Multicall3: more requests"];
  if (logBlocks === 0) yield ["few logs", "searches no logs: no look-ups"];
  else if (logBlocks !== undefined && logBlocks < MIN_LOG_BLOCK_RANGE)
    yield ["few logs", "few logs at once: slow look-ups"];
  if ([latencyMs, contracts, batch, logBlocks].includes(undefined)) yield ["unsure", "not all known: busy or slow"];
}
