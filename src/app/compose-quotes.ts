import type { Chains } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import type { Quote } from "../quotes/math/quote.js";
import type { QuoteEngine } from "../quotes/quote-engine.js";
import { createSdkEngine, type SdkEngine } from "../quotes/sdk-engine.js";
import { type ComparisonResult, createShadowComparison } from "../quotes/shadow-comparison.js";
import { createSnapshotEngine } from "../quotes/snapshot-engine.js";
import type { RouteCacheDeps } from "../quotes/state/route-cache.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { Clocks } from "../resilience/clock.js";
import type { OffChainSources } from "./off-chain-sources.js";

/** What prices transfers, put together. */
export interface QuotesModule {
  readonly engine: QuoteEngine;
  /** Routes that are kept fresh. */
  countActiveRoutes(): number;
  close(): void;
}

export interface ComposeQuotesOptions {
  readonly config: Config;
  readonly chains: Chains;
  readonly upstreams: OffChainSources;
  readonly limiter: AdaptiveLimiter;
  readonly clocks: Clocks;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly logger: Logger;
}

type OnChainStateRead = NonNullable<RouteCacheDeps["onRead"]>;

export function composeQuotes(options: ComposeQuotesOptions): QuotesModule {
  const { config, chains, upstreams, limiter, clocks, metrics, tracing, logger } = options;
  const closing = new AbortController();
  const access = { ...upstreams, chains: chains.forNetwork };
  const sdkEngine = createSdkEngine({ ...access, limiter });
  if (config.quoteEngine === "sdk") return { engine: sdkEngine, countActiveRoutes: () => 0, close: () => {} };

  /** What a read says of its chain's head is known from then on. */
  const counted: OnChainStateRead = async (network, about, run) => {
    try {
      const facts = await run();
      metrics.onChainStateRead("ok");
      const { number, timeSeconds } = facts.block;
      chains.recordHead(network, about.chain, { number: Number(number), timestamp: Number(timeSeconds) });
      return facts;
    } catch (error) {
      if (!closing.signal.aborted) metrics.onChainStateRead("failed");
      throw error;
    }
  };
  const onRead: OnChainStateRead =
    tracing === undefined
      ? counted
      : (network, about, run) => tracing.onChainStateRead(network, about, () => counted(network, about, run));
  const engine = createSnapshotEngine({
    ...access,
    maxAgeMs: config.quoteMaxAgeMs,
    maxStaleMs: config.quoteMaxStaleMs,
    clocks,
    onRead,
    onQuoteAge: metrics.observeQuoteAge,
    ...(config.quoteVerifyRate > 0 && { onQuoteServed: verification(sdkEngine) }),
  });

  function verification(judge: SdkEngine): ReturnType<typeof createShadowComparison> {
    return createShadowComparison({
      sampleRate: config.quoteVerifyRate,
      referenceEngine: judge,
      chains: chains.forNetwork,
      onResult(verdict) {
        metrics.onQuoteComparison(
          verdict.referenceQuote === undefined ? "failed" : verdict.isEqual ? "equal" : "different",
        );
        logComparison(logger, verdict);
      },
      random: Math.random,
      signal: closing.signal,
    });
  }

  return {
    engine,
    countActiveRoutes: engine.countActiveRoutes,
    close() {
      closing.abort();
      engine.close();
    },
  };
}

/** Says what the SDK made of a quote of ours, with all that it takes to compute both again. */
function logComparison(logger: Logger, { served, referenceQuote, isEqual, counts }: ComparisonResult): void {
  const { request, quote, sourceState, destinationState } = served;
  const { network, token, amountIn, slippagePercent } = request;
  const line = {
    network,
    token: token.requestedSymbol,
    route: `${request.source.slug}>${request.destination.slug}`,
    amount: String(amountIn),
    slippage: slippagePercent,
    sourceBlock: String(sourceState?.block.number ?? ""),
    destinationBlock: String(destinationState?.block.number ?? ""),
    quote: stringifyQuote(quote),
    comparisonCounts: counts,
  };
  if (referenceQuote === undefined) logger.info(line, "a quote could not be verified by the SDK");
  else if (isEqual) logger.debug(line, "a quote is verified by the SDK");
  else logger.warn({ ...line, sdkQuote: stringifyQuote(referenceQuote) }, "a quote differs from the SDK's");
}

function stringifyQuote(quote: Quote): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(quote).map(([name, value]) => [name, String(value)]));
}
