import { loadQuorum, selectEndpoints } from "../app/compose-chains.js";
import { OffChainSources } from "../app/off-chain-sources.js";
import { findPackageRoot } from "../app/package-files.js";
import { ChainClients } from "../chain/chains.js";
import { loadConfig } from "../config/config.js";
import { getErrorMessage, ServiceError } from "../errors.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import { findChain, getNetwork, type Network, type NetworkSlug } from "../hop/networks.js";
import { findAvailableRoutes, type Route } from "../hop/routes.js";
import { findToken, type Token } from "../hop/tokens.js";
import { createLogger } from "../observability/log.js";
import { BufferedLogOutput } from "../observability/log-output.js";
import { type ComparisonSources, compareEngines, isEqual } from "../quotes/compare/compare-engines.js";
import {
  type ComparisonCase,
  listDifferences,
  listPinnedBlocks,
  printRequest,
} from "../quotes/compare/comparison-case.js";
import type { QuoteRequest } from "../quotes/state/quote-request.js";
import { createAbortScope } from "../resilience/abort-scope.js";
import { monotonicNow, sleep } from "../resilience/clock.js";
import { type CompareOptions, DEFAULT_COMPARE_COUNT, UsageError } from "./command-line.js";

type ComparedRoute = Pick<QuoteRequest, "token" | "source" | "destination">;

type Outcome =
  | { readonly result: "equal" | "different"; readonly found: ComparisonCase }
  | { readonly result: "failed"; readonly request: QuoteRequest; readonly reason: string };

const STDERR = 2;
const EXIT_CODES = { equal: 0, different: 1, nothingCompared: 3 } as const;
const SLIPPAGE_PERCENT = 0.5;
/** Time for one quote by both engines. */
const QUOTE_TIMEOUT_MS = 60_000;
/** A quote that differs is compared again at newer blocks: a block that was reorganized has been replaced by then. */
const REPEAT_DELAY_MS = 5_000;
/** Random amounts are between 10^-3 and 10^5 tokens, evenly distributed on a logarithmic scale. */
const AMOUNT_EXPONENTS = { min: -3, max: 5 };
const MICRO = 1_000_000;

/**
 * Quotes random or given routes and amounts with this service's engine and with the SDK, both at one block of each chain,
 * and prints what differs.
 * @returns the exit code: 0 when all quotes are equal, 1 when one differs, 3 when nothing could be compared
 * @throws UsageError for a route that is not open
 */
export async function compareWithSdk(
  options: CompareOptions,
  environment: NodeJS.ProcessEnv,
  output: { write(text: string): unknown },
): Promise<number> {
  const config = loadConfig(environment);
  const logger = createLogger(config.logLevel, new BufferedLogOutput(STDERR));
  const chains = new ChainClients({
    networks: { mainnet: selectEndpoints(config, "mainnet"), goerli: selectEndpoints(config, "goerli") },
    callsPerSecond: config.rpcBudget,
    customUrlPolicy: "off",
    onFailure: (failure) => logger.warn(failure, "RPC endpoint failed"),
    createQuorum: await loadQuorum(config, (...line) => logger.warn(...line)),
  });
  const clocks = { now: () => Date.now(), monotonicNow };
  const offChain = new OffChainSources({ config, chains, logger, clocks, sharedCache: undefined });
  try {
    const network = getNetwork(options.network);
    const settings = await offChain.settings.getCurrent(network.slug).catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      process.stderr.write(`hop-gateway: ${error.message}\n`);
      return undefined;
    });
    if (settings === undefined) return EXIT_CODES.nothingCompared;
    const { prices, attestations } = offChain;
    const sources: ComparisonSources = {
      chains: chains.forNetwork(network.slug),
      settings,
      prices,
      attestations,
    };
    const outcomes: Outcome[] = [];
    for (const request of planRequests(options, network, settings)) {
      const outcome = await compare(request, sources);
      if (!options.isJson) output.write(formatOutcome(outcome));
      outcomes.push(outcome);
    }
    output.write(options.isJson ? formatJson(network.slug, outcomes) : formatSummary(outcomes));
    if (outcomes.some(({ result }) => result === "different")) return EXIT_CODES.different;
    return outcomes.some(({ result }) => result === "equal") ? EXIT_CODES.equal : EXIT_CODES.nothingCompared;
  } finally {
    await Promise.all([chains.close(), offChain.close()]);
  }
}

/** Compares one quote. A difference counts if the quotes differ again at newer blocks. */
async function compare(request: QuoteRequest, sources: ComparisonSources): Promise<Outcome> {
  const { version } = findPackageRoot();
  const versions = { service: version, node: process.version };
  const { signal } = new AbortController();
  const compareOnce = async (): Promise<ComparisonCase> => {
    const scope = createAbortScope(signal, QUOTE_TIMEOUT_MS);
    try {
      return await compareEngines(request, sources, versions, scope.signal);
    } finally {
      scope.cancel();
    }
  };
  try {
    const first = await compareOnce();
    if (isEqual(first)) return { result: "equal", found: first };
    await sleep(REPEAT_DELAY_MS, signal);
    const second = await compareOnce();
    return { result: isEqual(second) ? "equal" : "different", found: second };
  } catch (error) {
    return { result: "failed", request, reason: getErrorMessage(error) };
  }
}

/** Lists the requests: the first amount on each route, then the second on each, and so on. */
export function planRequests(
  options: CompareOptions,
  network: Network,
  settings: FeeSettings,
): readonly QuoteRequest[] {
  const { amounts = [undefined], count = options.routes && options.routes.length * amounts.length } = options;
  const total = count ?? DEFAULT_COMPARE_COUNT;
  const open = findAvailableRoutes(network, settings);
  const routes =
    options.routes?.map((text) => parseRoute(text, network, open)) ??
    Array.from({ length: Math.ceil(total / amounts.length) }, () => pickRoute(network, open));
  return Array.from({ length: total }, (_, index): QuoteRequest => {
    const route = pickAt(routes, index);
    const amountIn = pickAt(amounts, Math.floor(index / routes.length)) ?? pickAmount(route.token);
    return { network: network.slug, ...route, amountIn, slippagePercent: SLIPPAGE_PERCENT };
  });
}

/** @throws UsageError for a route on which no transfer can be sent */
function parseRoute(text: string, network: Network, open: readonly Route[]): ComparedRoute {
  const [symbol = "", from = "", to = ""] = text.split(":");
  const token = findToken(network, symbol);
  const route = open.find(
    ({ token: openToken, source, destination }) =>
      openToken === token?.symbol && source === findChain(network, from) && destination === findChain(network, to),
  );
  if (token === undefined || route === undefined) throw new UsageError(`--routes: ${text} is not an open route`);
  return { token, source: route.source, destination: route.destination };
}

function pickRoute(network: Network, open: readonly Route[]): ComparedRoute {
  const { token: symbol, source, destination } = pickAt(open, Math.floor(Math.random() * open.length));
  const token = findToken(network, symbol);
  if (token === undefined) throw new Error(`no token ${symbol}`);
  return { token, source, destination };
}

function pickAmount({ decimals }: Token): bigint {
  const { min, max } = AMOUNT_EXPONENTS;
  const tokens = 10 ** (min + Math.random() * (max - min));
  const micros = BigInt(Math.floor(tokens * MICRO));
  // The last digits decide what is rounded.
  return (micros * 10n ** BigInt(decimals)) / BigInt(MICRO) + BigInt(Math.floor(Math.random() * MICRO)) + 1n;
}

/** Returns an element of a list that is not empty, which begins again after its end. */
function pickAt<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}

function formatOutcome(outcome: Outcome): string {
  if (outcome.result === "failed")
    return `not compared: ${formatRequest(printRequest(outcome.request))}: ${outcome.reason}\n`;
  const { found, result } = outcome;
  const { servedQuote, sdkQuote } = found;
  const blocks = Object.entries(listPinnedBlocks(found.chains)).map(([slug, block]) => `${slug} ${block}`);
  const lines = [
    `${result}: ${formatRequest(found.request)}; blocks: ${blocks.join(", ")}`,
    ...listDifferences(servedQuote, sdkQuote).map(
      (name) => `    ${name}: ${servedQuote[name] ?? "none"}, SDK: ${sdkQuote[name] ?? "none"}`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function formatRequest({ amount, token, fromChain, toChain }: ComparisonCase["request"]): string {
  return `${amount} ${token}, ${fromChain} to ${toChain}`;
}

function formatSummary(outcomes: readonly Outcome[]): string {
  const { equal, differences, failed } = groupOutcomes(outcomes);
  const summary = `${equal} equal, ${differences.length} different, ${failed.length} not compared\n`;
  if (differences.length === 0) return summary;
  const advice = "In a checkout of the source, npm run golden:add -- <file with this output> makes a test of each.";
  return `${summary}${advice}\n${JSON.stringify({ differences }, undefined, 2)}\n`;
}

/** Formats the report as JSON; its keys are public. */
function formatJson(network: NetworkSlug, outcomes: readonly Outcome[]): string {
  return `${JSON.stringify({ network, ...groupOutcomes(outcomes) }, undefined, 2)}\n`;
}

function groupOutcomes(outcomes: readonly Outcome[]) {
  return {
    equal: outcomes.filter(({ result }) => result === "equal").length,
    failed: outcomes.flatMap((outcome) =>
      outcome.result === "failed" ? [{ request: printRequest(outcome.request), reason: outcome.reason }] : [],
    ),
    differences: outcomes.flatMap((outcome) => (outcome.result === "different" ? [outcome.found] : [])),
  };
}
