import type { EndpointReport } from "../chain/diagnose/diagnose-endpoints.js";
import { BURST_CALLS, PROBED_BATCH_SIZES } from "../chain/diagnose/endpoint-capabilities.js";
import type { EndpointAssessment } from "./endpoint-assessment.js";

/** A chain with the reports of its endpoints. */
export interface CheckedChain {
  readonly slug: string;
  readonly chainId: number;
  readonly endpoints: readonly CheckedEndpoint[];
}

export interface CheckedEndpoint {
  readonly report: EndpointReport;
  readonly assessment: EndpointAssessment;
}

const COLUMN_HEADERS = ["chain", "endpoint", "chain id", "head", "age", "lag", "latency", "batch", "logs", "verdict"];
/** Indexes of the numeric columns. */
const RIGHT_ALIGNED_COLUMNS = new Set([2, 3, 4, 5, 6, 7, 8]);
const COLUMN_GAP = "  ";
const BUDGET_SHARE = 0.8;
const UNKNOWN_CELL = "-";
const LARGEST_PROBED_BATCH = Math.max(...PROBED_BATCH_SIZES);

/** Formats a table of all endpoints, followed by a summary. */
export function formatCheckTable(chains: readonly CheckedChain[], variablePrefix: string): string {
  const rows = chains.flatMap(({ slug, endpoints }) => endpoints.map((endpoint) => [slug, ...formatRow(endpoint)]));
  const widths = COLUMN_HEADERS.map((header, column) =>
    Math.max(header.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = [COLUMN_HEADERS, ...rows].map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return RIGHT_ALIGNED_COLUMNS.has(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(COLUMN_GAP)
      .trimEnd(),
  );
  return `${lines.join("\n")}\n\n${formatSummary(chains, variablePrefix)}\n`;
}

function formatRow({ report, assessment }: CheckedEndpoint): readonly string[] {
  const { name, chainId, head, lag, latencyMs, batch, logBlocks } = report;
  return [
    name,
    formatCell(chainId, String),
    formatCell(head, ({ number }) => String(number)),
    formatCell(head, ({ ageSeconds }) => formatDuration(ageSeconds)),
    formatCell(lag, ({ blocks }) => String(blocks)),
    formatCell(latencyMs, (ms) => `${Math.round(ms)} ms`),
    formatCell(batch, (calls) => (calls === 1 ? "no" : `${calls}${calls === LARGEST_PROBED_BATCH ? "+" : ""}`)),
    formatCell(logBlocks, (blocks) =>
      blocks === 0 ? "no" : blocks === Number.POSITIVE_INFINITY ? "all" : `${blocks}`,
    ),
    assessment.summary,
  ];
}

function formatCell<T>(value: T | undefined, print: (value: T) => string): string {
  return value === undefined ? UNKNOWN_CELL : print(value);
}

/** Formats an age. A negative age, which small clock differences cause, is shown as zero. */
function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.max(seconds, 0).toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

function formatSummary(chains: readonly CheckedChain[], variablePrefix: string): string {
  const assessments = chains.flatMap(({ endpoints }) => endpoints.map(({ assessment }) => assessment));
  const count = (predicate: (assessment: EndpointAssessment) => boolean): number =>
    assessments.filter(predicate).length;
  const okCount = count(({ problems }) => problems.length === 0);
  const unusableCount = count(({ isUsable }) => !isUsable);
  const unservedSlugs = chains.filter((chain) => !isChainServed(chain)).map(({ slug }) => slug);
  const budget = suggestRpcBudget(chains);
  const lines = [
    `${chains.length} chains, ${assessments.length} endpoints: ${okCount} ok, ${assessments.length - okCount - unusableCount} with warnings, ${unusableCount} unusable.`,
    ...unservedSlugs.map(
      (slug) => `${slug} has no usable endpoint: add one to ${variablePrefix}${slug.toUpperCase()}.`,
    ),
    ...(budget === undefined
      ? []
      : [
          `${budget.endpoint} throttles: it answered ${budget.callsAtOnce} of ${BURST_CALLS} calls at once. RPC_BUDGET=${budget.callsPerSecond} stays below that.`,
        ]),
  ];
  return lines.join("\n");
}

/** A value for RPC_BUDGET, and the endpoint that needs it. */
export interface RpcBudgetSuggestion {
  readonly callsPerSecond: number;
  readonly endpoint: string;
  readonly callsAtOnce: number;
}

/**
 * Suggests a value for RPC_BUDGET: four fifths of what the usable endpoint that throttles first answers at once, since the
 * budget permits a burst of half a second's worth. Returns undefined when none throttles.
 */
export function suggestRpcBudget(chains: readonly CheckedChain[]): RpcBudgetSuggestion | undefined {
  const throttling = chains
    .flatMap(({ endpoints }) => endpoints)
    .filter(({ assessment }) => assessment.isUsable)
    .map(({ report: { name, callsAtOnce } }) => ({ endpoint: name, callsAtOnce: callsAtOnce ?? BURST_CALLS }))
    .filter(({ callsAtOnce }) => callsAtOnce < BURST_CALLS)
    .sort((a, b) => a.callsAtOnce - b.callsAtOnce);
  const [lowest] = throttling;
  return lowest && { ...lowest, callsPerSecond: Math.max(1, Math.floor(lowest.callsAtOnce * BUDGET_SHARE)) };
}

/** Returns whether the chain has a usable endpoint. */
export function isChainServed({ endpoints }: CheckedChain): boolean {
  return endpoints.some(({ assessment }) => assessment.isUsable);
}
