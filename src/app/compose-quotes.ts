import type { BlockAgeMonitor } from "../chain/block-age/block-age-monitor.js";
import type { ChainClients } from "../chain/chains.js";
import type { Config } from "../config/config.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { Logger } from "../observability/log.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import type { QuoteEngine } from "../quotes/quote-engine.js";
import { refuseStalled } from "../quotes/refuse-stalled.js";
import { createSdkEngine } from "../quotes/sdk-engine.js";
import { createSnapshotEngine } from "../quotes/snapshot-engine.js";
import type { ChainState } from "../quotes/state/chain-state.js";
import type { RouteCacheDeps } from "../quotes/state/route-cache.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { Clocks } from "../resilience/clock.js";
import type { SharedState } from "../shared-state/shared-state.js";
import type { TransfersModule } from "./compose-transfers.js";
import type { OffChainSources } from "./off-chain/off-chain-sources.js";
import { composeShadowComparison } from "./shadow-comparison/compose-shadow-comparison.js";
import type { RecentDifferences } from "./shadow-comparison/recent-differences.js";

/** The quote engine with everything it needs. */
export interface QuotesModule {
  readonly engine: QuoteEngine;
  /** Counts the routes whose chain state is refreshed. */
  countActiveRoutes(): number;
  close(): void;
}

export interface ComposeQuotesOptions {
  readonly config: Config;
  readonly version: string;
  readonly chains: ChainClients;
  /** undefined: no chain has a limit. */
  readonly blockAges: BlockAgeMonitor | undefined;
  readonly offChainSources: OffChainSources;
  readonly limiter: AdaptiveLimiter;
  readonly clocks: Clocks;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  readonly logger: Logger;
  readonly sharedState: SharedState | undefined;
  /** Measured delivery times; undefined: there is no index. */
  readonly deliveryTimes: TransfersModule["deliveryTimes"];
  /** Takes the quotes that differ from the SDK's. */
  readonly differences: RecentDifferences;
}

type OnChainStateRead = NonNullable<RouteCacheDeps["onRead"]>;

export function composeQuotes(options: ComposeQuotesOptions): QuotesModule {
  const { config, chains, blockAges, offChainSources, limiter, clocks, metrics, tracing } = options;
  const { sharedState, deliveryTimes } = options;
  const shutdown = new AbortController();
  const access = { ...offChainSources, chains: chains.forNetwork };
  const refuseStalledIfLimited = (engine: QuoteEngine, checksCustomEndpoints: boolean): QuoteEngine =>
    blockAges === undefined
      ? engine
      : refuseStalled(engine, { blockAges, now: clocks.monotonicNow, checksCustomEndpoints });
  if (config.quoteEngine === "sdk") {
    const engine = refuseStalledIfLimited(createSdkEngine({ ...access, limiter }), false);
    return { engine, countActiveRoutes: () => 0, close: () => {} };
  }
  const intervalSeconds = config.quoteVerifyIntervalSeconds;
  const comparison = intervalSeconds === 0 ? undefined : composeShadowComparison({ ...options, intervalSeconds });

  function recordHead(network: NetworkSlug, chain: string, { block, readAt }: ChainState): void {
    const head = { number: Number(block.number), timestamp: Number(block.timeSeconds) };
    chains.recordHead(network, chain, head, readAt);
  }

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
    blockAges,
    onRead,
    sharedState,
    onReceived: (network, { slug }, state) => recordHead(network, slug, state),
    onQuoteAge: metrics.observeQuoteAge,
    ...(deliveryTimes && {
      getDeliveryTime: ({ token, source, destination }) =>
        deliveryTimes.get({ token: token.symbol, source, destination }),
    }),
    ...(comparison && { onQuoteServed: comparison.onQuoteServed }),
  });

  comparison?.start(engine);

  return {
    engine: refuseStalledIfLimited(engine, true),
    countActiveRoutes: engine.countActiveRoutes,
    close() {
      shutdown.abort();
      comparison?.close();
      engine.close();
    },
  };
}
