import type { EndpointReport } from "../chain/diagnose/diagnose-endpoints.js";
import { batchSizes } from "../chain/diagnose/endpoint-capabilities.js";
import type { Verdict } from "./endpoint-assessment.js";

/** A chain and what was found of its endpoints. */
export interface CheckedChain {
  readonly slug: string;
  readonly chainId: number;
  readonly endpoints: readonly CheckedEndpoint[];
}

export interface CheckedEndpoint {
  readonly report: EndpointReport;
  readonly verdict: Verdict;
}

const heads = ["chain", "endpoint", "chain id", "head", "age", "lag", "latency", "batch", "logs", "verdict"];
/** Columns of numbers, which end under each other. */
const toTheRight = new Set([2, 3, 4, 5, 6, 7, 8]);
const gap = "  ";
const unknown = "-";
const largestBatch = Math.max(...batchSizes);

/** A table of all endpoints, and a line that sums it up. */
export function formatTable(chains: readonly CheckedChain[], variablePrefix: string): string {
  const rows = chains.flatMap(({ slug, endpoints }) => endpoints.map((endpoint) => [slug, ...cells(endpoint)]));
  const widths = heads.map((head, column) => Math.max(head.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const lines = [heads, ...rows].map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return toTheRight.has(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join(gap)
      .trimEnd(),
  );
  return `${lines.join("\n")}\n\n${summary(chains, variablePrefix)}\n`;
}

function cells({ report, verdict }: CheckedEndpoint): readonly string[] {
  const { name, chainId, head, lag, latencyMs, batch, logBlocks } = report;
  return [
    name,
    inCell(chainId, String),
    inCell(head, ({ number }) => String(number)),
    inCell(head, ({ ageSeconds }) => duration(ageSeconds)),
    inCell(lag, ({ blocks }) => String(blocks)),
    inCell(latencyMs, (ms) => `${Math.round(ms)} ms`),
    inCell(batch, (calls) => (calls === 1 ? "no" : `${calls}${calls === largestBatch ? "+" : ""}`)),
    inCell(logBlocks, (blocks) => (blocks === 0 ? "no" : blocks === Number.POSITIVE_INFINITY ? "all" : `${blocks}`)),
    verdict.words,
  ];
}

function inCell<T>(value: T | undefined, print: (value: T) => string): string {
  return value === undefined ? unknown : print(value);
}

/** Clocks differ a little: a block from the future is of now. */
function duration(seconds: number): string {
  if (seconds < 120) return `${Math.max(seconds, 0).toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

function summary(chains: readonly CheckedChain[], variablePrefix: string): string {
  const verdicts = chains.flatMap(({ endpoints }) => endpoints.map(({ verdict }) => verdict));
  const count = (is: (verdict: Verdict) => boolean): number => verdicts.filter(is).length;
  const ok = count(({ problems }) => problems.length === 0);
  const useless = count(({ isUsable }) => !isUsable);
  const without = chains.filter((chain) => !isServed(chain)).map(({ slug }) => slug);
  const lines = [
    `${chains.length} chains, ${verdicts.length} endpoints: ${ok} ok, ${verdicts.length - ok - useless} with something to know, ${useless} of no use.`,
    ...without.map(
      (slug) => `${slug} has no endpoint that will do: name one in ${variablePrefix}${slug.toUpperCase()}.`,
    ),
  ];
  return lines.join("\n");
}

/** Whether the service can work on a chain. */
export function isServed({ endpoints }: CheckedChain): boolean {
  return endpoints.some(({ verdict }) => verdict.isUsable);
}
