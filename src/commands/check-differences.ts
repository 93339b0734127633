import type { Dispatcher } from "undici";
import { DIFFERENCES_PATH } from "../app/shadow-comparison/recent-differences.js";
import type { Config } from "../config/config.js";
import { DEFAULT_METRICS_PORT } from "../config/environment-table.js";
import { type ComparisonCase, listBlocks, listDifferences } from "../quotes/shadow-comparison/comparison-case.js";
import { fetchJson } from "../resilience/http-client/fetch-json.js";

/** What a running service says about the quotes that it has compared with the SDK's. */
export interface DifferencesReport {
  /** Address that was asked; undefined: the configuration lets the service pick a port. */
  readonly url: string | undefined;
  /** Newest first; undefined: no service answers there. */
  readonly differences: readonly ComparisonCase[] | undefined;
}

const TIMEOUT_MS = 3_000;
const MAX_BYTES = 8 * 1024 * 1024;
/** Addresses on which a service listens everywhere, and where it is then reached. */
const REACHED_AT: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** Asks the service on this machine that has the same configuration, if it is running. */
export async function readDifferences(
  config: Pick<Config, "host" | "port" | "metricsHost" | "metricsPort">,
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<DifferencesReport> {
  const url = getDocumentUrl(config);
  if (url === undefined) return { url, differences: undefined };
  try {
    const document = await fetchJson(url, { dispatcher, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, signal });
    const { differences } = document as { readonly differences?: readonly ComparisonCase[] };
    return { url, differences: Array.isArray(differences) ? differences : undefined };
  } catch {
    return { url, differences: undefined };
  }
}

function getDocumentUrl({
  host,
  port,
  metricsHost,
  metricsPort = DEFAULT_METRICS_PORT,
}: Parameters<typeof readDifferences>[0]) {
  const [address, listenPort] = metricsPort === "same" ? [host, port] : [metricsHost, metricsPort];
  if (listenPort === 0) return undefined;
  const reachedAt = REACHED_AT[address] ?? address;
  return `http://${reachedAt.includes(":") ? `[${reachedAt}]` : reachedAt}:${listenPort}${DIFFERENCES_PATH}`;
}

/** Formats the report for people: each difference with its request, its blocks and the values that differ. */
export function formatDifferences({ url, differences }: DifferencesReport): string {
  if (url === undefined) return "";
  if (differences === undefined) return `\nNo service answers at ${url}: its comparisons with the SDK are not shown.\n`;
  if (differences.length === 0) return `\nNo quote was found that differs from the SDK's (${url}).\n`;
  const lines = [
    `${differences.length} quotes differ from the SDK's (${url}):`,
    ...differences.flatMap(formatDifference),
    "Report them with the output of --json. In a checkout of the source, npm run golden:add -- <URL, or file with that output> makes each of them a regression test.",
  ];
  return `\n${lines.map(toPrintable).join("\n")}\n`;
}

function formatDifference({ id, foundAt, request, chains, servedQuote, sdkQuote }: ComparisonCase): readonly string[] {
  const { token, fromChain, toChain, amount, slippagePercent } = request;
  const blocks = Object.entries(listBlocks(chains)).map(([slug, block]) => `${slug} ${block}`);
  return [
    `  ${foundAt} ${id}: ${amount} ${token}, ${fromChain} to ${toChain}, slippage ${slippagePercent}; blocks: ${blocks.join(", ")}`,
    ...listDifferences(servedQuote, sdkQuote).map(
      (name) => `    ${name}: ${servedQuote[name]}, SDK: ${sdkQuote[name]}`,
    ),
  ];
}

/** Replaces what a terminal would interpret. */
function toPrintable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, "?");
}
