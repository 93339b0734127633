import type { ChainClients } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import type { DetailedQuote, QuoteEngine } from "../quotes/quote-engine.js";
import { createSdkEngine, type ReferenceQuote, type SdkEngine } from "../quotes/sdk-engine.js";
import { type ComparisonResult, createShadowComparison } from "../quotes/shadow-comparison.js";
import { createSnapshotEngine } from "../quotes/snapshot-engine.js";
import type { ChainState } from "../quotes/state/chain-state.js";
import type { RouteCacheDeps } from "../quotes/state/route-cache.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { Clocks } from "../resilience/clock.js";
import type { SharedState } from "../shared-state/shared-state.js";
import type { TransfersModule } from "./compose-transfers.js";
import type { OffChainSources } from "./off-chain/off-chain-sources.js";

/** The quote engine with everything it needs. */
export interface QuotesModule {
  readonly engine: QuoteEngine;
  /** Counts the routes whose chain state is refreshed. */
  countActiveRoutes(): number;
  close(): void;
}

export interface ComposeQuotesOptions {
  readonly config: Config;
  readonly chains: ChainClients;
  readonly offChainSources: OffChainSources;
  readonly limiter: AdaptiveLimiter;
  readonly clocks: Clocks;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly logger: Logger;
  readonly sharedState: SharedState | undefined;
  /** Measured delivery times; undefined: there is no index. */
  readonly deliveryTimes: TransfersModule["deliveryTimes"];
}

type OnChainStateRead = NonNullable<RouteCacheDeps["onRead"]>;

export function composeQuotes(options: ComposeQuotesOptions): QuotesModule {
  const { config, chains, offChainSources, limiter, clocks, metrics, tracing, logger, sharedState, deliveryTimes } =
    options;
  const shutdown = new AbortController();
  const access = { ...offChainSources, chains: chains.forNetwork };
  const sdkEngine = createSdkEngine({ ...access, limiter });
  if (config.quoteEngine === "sdk") return { engine: sdkEngine, countActiveRoutes: () => 0, close: () => {} };

  const recordHead = (network: NetworkSlug, chain: string, { block }: ChainState): void =>
    chains.recordHead(network, chain, { number: Number(block.number), timestamp: Number(block.timeSeconds) });

  /** Counts reads by outcome and records the head that each read reports. */
  const countReads: OnChainStateRead = async (network, read, run) => {
    try {
      const chainState = await run();
      metrics.onChainStateRead("ok");
      recordHead(network, read.chain, chainState);
      return chainState;
    } catch (error) {
      if (!shutdown.signal.aborted) metrics.onChainStateRead("failed");
      throw error;
    }
  };
  const onRead: OnChainStateRead =
    tracing === undefined
      ? countReads
      : (network, read, run) => tracing.onChainStateRead(network, read, () => countReads(network, read, run));
  const engine = createSnapshotEngine({
    ...access,
    maxAgeMs: config.quoteMaxAgeMs,
    maxStaleMs: config.quoteMaxStaleMs,
    clocks,
    onRead,
    sharedState,
    onReceived: (network, { slug }, state) => recordHead(network, slug, state),
    onQuoteAge: metrics.observeQuoteAge,
    ...(deliveryTimes && {
      getDeliveryTime: ({ token, source, destination }) =>
        deliveryTimes.get({ token: token.symbol, source, destination }),
    }),
    ...(config.quoteVerifyRate > 0 && { onQuoteServed: createComparison(sdkEngine) }),
  });

  function createComparison(referenceEngine: SdkEngine): ReturnType<typeof createShadowComparison> {
    return createShadowComparison({
      sampleRate: config.quoteVerifyRate,
      referenceEngine,
      chains: chains.forNetwork,
      onResult(result) {
        const { referenceQuote, isEqual } = result;
        metrics.onQuoteComparison(referenceQuote === undefined ? "failed" : isEqual ? "equal" : "different");
        logComparison(logger, result);
      },
      random: Math.random,
      signal: shutdown.signal,
    });
  }

  return {
    engine,
    countActiveRoutes: engine.countActiveRoutes,
    close() {
      shutdown.abort();
      engine.close();
    },
  };
}

/** Logs the result of a comparison with everything needed to reproduce both quotes. */
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
  if (referenceQuote === undefined) logger.info(line, "quote could not be compared with the SDK's");
  else if (isEqual) logger.debug(line, "quote equals the SDK's");
  else logger.warn({ ...line, sdkQuote: stringifyQuote(referenceQuote) }, "quote differs from the SDK's");
}

/** Prints the values of a quote, and its intermediate values if it has them. */
function stringifyQuote({ details, steps = details?.steps, ...quote }: DetailedQuote & Partial<ReferenceQuote>) {
  return Object.fromEntries(Object.entries({ ...quote, ...steps }).map(([name, value]) => [name, String(value)]));
}
