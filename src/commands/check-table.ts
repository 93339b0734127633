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

/** What the check has found of one thing besides the RPC endpoints. The keys are public: `check --json` prints them. */
export interface DependencyReport {
  readonly name: string;
  readonly state: "ok" | "off" | "failing";
  /** How it fails, in words without a URL. */
  readonly detail?: string | undefined;
  /** Whether the service cannot quote, or not start, without it. */
  readonly isNeeded?: boolean;
  /** A line for the environment with which the service does without it. */
  readonly remedy?: string;
}

const COLUMN_HEADERS = ["chain", "endpoint", "chain id", "head", "age", "lag", "latency", "batch", "logs", "verdict"];
/** Indexes of the numeric columns. */
const RIGHT_ALIGNED_COLUMNS = new Set([2, 3, 4, 5, 6, 7, 8]);
const COLUMN_GAP = "  ";
const BUDGET_SHARE = 0.8;
const UNKNOWN_CELL = "-";
const LARGEST_PROBED_BATCH = Math.max(...PROBED_BATCH_SIZES);

/** Formats tables of all endpoints and of the other dependencies, a summary, and lines to copy into the environment. */
export function formatCheckTable(
  chains: readonly CheckedChain[],
  dependencies: readonly DependencyReport[],
  variablePrefix: string,
): string {
  const rows = chains.flatMap(({ slug, endpoints }) => endpoints.map((endpoint) => [slug, ...formatRow(endpoint)]));
  const others = dependencies.map(({ name, state, detail = "" }) => [name, state, detail]);
  return [
    formatColumns([COLUMN_HEADERS, ...rows], RIGHT_ALIGNED_COLUMNS),
    formatColumns([["also used", "state", "detail"], ...others], new Set()),
    formatSummary(chains, variablePrefix),
    ...formatAdvice(chains, dependencies, variablePrefix),
  ]
    .join("\n\n")
    .concat("\n");
}

/** Formats lines that mend what can be mended by a variable, or get around it; none if there is nothing to do. */
function formatAdvice(
  chains: readonly CheckedChain[],
  dependencies: readonly DependencyReport[],
  variablePrefix: string,
): readonly string[] {
  const unserved = chains.filter((chain) => !isChainServed(chain));
  const budget = suggestRpcBudget(chains);
  const lines = [
    ...unserved.map(({ slug }) => `${variablePrefix}${slug.toUpperCase()}=https://...`),
    ...(budget === undefined ? [] : [`RPC_BUDGET=${budget.callsPerSecond}`]),
    ...dependencies.flatMap(({ remedy }) => remedy ?? []),
  ];
  return lines.length === 0 ? [] : [`To copy:\n${lines.map((line) => `  ${line}`).join("\n")}`];
}

function formatColumns(rows: readonly (readonly string[])[], rightAligned: ReadonlySet<number>): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return rightAligned.has(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(COLUMN_GAP)
      .trimEnd(),
  );
  return lines.join("\n");
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

/**
 * Suggests a value for RPC_BUDGET: four fifths of what the usable endpoint that throttles first answers at once, since the
 * budget permits a burst of half a second's worth. Names that endpoint; returns undefined when none throttles.
 */
export function suggestRpcBudget(chains: readonly CheckedChain[]) {
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
