import type { EndpointReport } from "../chain/diagnose/diagnose-endpoints.js";
import { DEFAULT_HEDGE_DELAY_MS } from "../chain/endpoints/attempts.js";
import { MAX_BLOCKS_BEHIND, MAX_SECONDS_AHEAD, MAX_SECONDS_BEHIND } from "../chain/heads/head-tracker.js";
import type { Chain } from "../hop/networks.js";

/** Problems of an endpoint, most severe first. The values are public: `check --json` prints them. */
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
  /** Whether the service can work with the endpoint. */
  readonly isUsable: boolean;
  /** The problems in words, or `ok`. */
  readonly summary: string;
}

const FATAL_PROBLEMS: ReadonlySet<EndpointProblem> = new Set(["unreachable", "wrong chain", "no contracts", "stalled"]);
/** Age of the latest block, in seconds, from which a chain counts as stalled: even quiet chains make blocks more often. */
const STALLED_AFTER_SECONDS = 60 * 60;
/** The service rarely sends larger batches. */
const MIN_BATCH_SIZE = 10;
/** With smaller ranges, a search over 100 million blocks does not fit into the request timeout. */
const MIN_LOG_BLOCK_RANGE = 10_000;

type ExpectedChain = Pick<Chain, "chainId" | "multicallAddress">;

/** Assesses an endpoint of a chain by the thresholds with which the service ranks endpoints. */
export function assessEndpoint(report: EndpointReport, chain: ExpectedChain): EndpointAssessment {
  const findings = [...findProblems(report, chain)];
  const problems = findings.map(([problem]) => problem);
  const summary = findings.map(([, text]) => text).join("; ");
  return {
    problems,
    isUsable: !problems.some((problem) => FATAL_PROBLEMS.has(problem)),
    summary: summary === "" ? "ok" : summary,
  };
}

function* findProblems(
  report: EndpointReport,
  { chainId, multicallAddress }: ExpectedChain,
): Generator<[EndpointProblem, string]> {
  const { trouble, head, lag, latencyMs, contracts, batch, logBlocks } = report;
  if (report.chainId === undefined) return yield ["unreachable", `unreachable: ${trouble ?? "unknown reason"}`];
  if (report.chainId !== chainId) return yield ["wrong chain", `wrong chain: ${report.chainId}, not ${chainId}`];
  if (head === undefined) return yield ["unreachable", "unreachable: does not return its latest block"];
  if (contracts === "none") yield ["no contracts", "contract calls fail: no quotes"];
  if (head.ageSeconds >= STALLED_AFTER_SECONDS)
    yield ["stalled", `latest block is ${Math.round(head.ageSeconds / 60)} min old`];
  if (head.ageSeconds < -MAX_SECONDS_AHEAD)
    yield ["wrong clock", "latest block is in the future: clock of the endpoint or of this machine is wrong"];
  if (lag !== undefined && (lag.blocks >= MAX_BLOCKS_BEHIND || lag.seconds >= MAX_SECONDS_BEHIND)) {
    yield ["lags", "lags: used last"];
  }
  if (latencyMs !== undefined && latencyMs >= DEFAULT_HEDGE_DELAY_MS) yield ["slow", "slow: requests are hedged"];
  if (batch === 1) yield ["no batch", "no batches: more requests"];
  else if (batch !== undefined && batch < MIN_BATCH_SIZE) yield ["no batch", `batches of ${batch}: more requests`];
  if (multicallAddress !== undefined && contracts === "singly") yield ["no multicall", "no Multicall3: more requests"];
  if (logBlocks === 0) yield ["few logs", "no log search: no transfer lookups"];
  else if (logBlocks !== undefined && logBlocks < MIN_LOG_BLOCK_RANGE)
    yield ["few logs", "small log ranges: slow transfer lookups"];
  if ([latencyMs, contracts, batch, logBlocks].includes(undefined))
    yield ["unsure", "incomplete results: busy or slow"];
}
