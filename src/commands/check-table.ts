import type { EndpointReport } from "../chain/diagnose/diagnose-endpoints.js";
import { PROBED_BATCH_SIZES } from "../chain/diagnose/endpoint-capabilities.js";
import type { EndpointAssessment } from "./endpoint-assessment.js";

/** A chain and what was found of its endpoints. */
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
/** Columns of numbers, which end under each other. */
const rightAlignedColumns = new Set([2, 3, 4, 5, 6, 7, 8]);
const COLUMN_GAP = "  ";
const UNKNOWN_CELL = "-";
const maxBatchSize = Math.max(...PROBED_BATCH_SIZES);

/** A table of all endpoints, and a line that sums it up. */
export function formatCheckTable(chains: readonly CheckedChain[], variablePrefix: string): string {
  const rows = chains.flatMap(({ slug, endpoints }) => endpoints.map((endpoint) => [slug, ...formatRow(endpoint)]));
  const widths = COLUMN_HEADERS.map((head, column) =>
    Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = [COLUMN_HEADERS, ...rows].map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return rightAlignedColumns.has(column) ? cell.padStart(width) : cell.padEnd(width);
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
    formatCell(batch, (calls) => (calls === 1 ? "no" : `${calls}${calls === maxBatchSize ? "+" : ""}`)),
    formatCell(logBlocks, (blocks) =>
      blocks === 0 ? "no" : blocks === Number.POSITIVE_INFINITY ? "all" : `${blocks}`,
    ),
    assessment.summary,
  ];
}

function formatCell<T>(value: T | undefined, print: (value: T) => string): string {
  return value === undefined ? UNKNOWN_CELL : print(value);
}

/** Clocks differ a little: a block from the future is of now. */
function formatDuration(seconds: number): string {
  if (seconds < 120) return `${Math.max(seconds, 0).toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

function formatSummary(chains: readonly CheckedChain[], variablePrefix: string): string {
  const verdicts = chains.flatMap(({ endpoints }) => endpoints.map(({ assessment }) => assessment));
  const count = (is: (verdict: EndpointAssessment) => boolean): number => verdicts.filter(is).length;
  const ok = count(({ problems }) => problems.length === 0);
  const useless = count(({ isUsable }) => !isUsable);
  const without = chains.filter((chain) => !isChainServed(chain)).map(({ slug }) => slug);
  const lines = [
    `${chains.length} chains, ${verdicts.length} endpoints: ${ok} ok, ${verdicts.length - ok - useless} with something to know, ${useless} of no use.`,
    ...without.map(
      (slug) => `${slug} has no endpoint that will do: name one in ${variablePrefix}${slug.toUpperCase()}.`,
    ),
  ];
  return lines.join("\n");
}

/** Whether the service can work on a chain. */
export function isChainServed({ endpoints }: CheckedChain): boolean {
  return endpoints.some(({ assessment }) => assessment.isUsable);
}
