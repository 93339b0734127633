import type { ChainClients } from "../chain/chains.js";
import type { BlockAgeMonitor } from "../chain/heads/block-age-monitor.js";
import type { Config } from "../config/config.js";
import { getNetwork, type NetworkSlug } from "../hop/networks.js";
import type { Metrics } from "../observability/metrics/metrics.js";
import type { Tracing } from "../observability/tracing.js";
import { BurnLimits } from "../quotes/burn-limits.js";
import type { QuoteEngine } from "../quotes/quote-engine.js";
import { refuseStalled } from "../quotes/refuse-stalled.js";
import { SdkEngine } from "../quotes/sdk-engine.js";
import { SnapshotEngine } from "../quotes/snapshot-engine.js";
import type { ChainState } from "../quotes/state/chain-state.js";
import type { RouteCacheDeps } from "../quotes/state/route-cache.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { Clocks } from "../resilience/clock.js";
import type { SharedCache } from "../shared-state/shared-cache.js";
import type { DeliveryTimes } from "../transfers/index/delivery-times.js";
import type { OffChainSources } from "./off-chain-sources.js";

type OnChainStateRead = NonNullable<RouteCacheDeps["onRead"]>;

export interface ComposeQuoteEngineOptions {
  readonly config: Config;
  readonly chains: ChainClients;
  /** undefined: no chain has a limit. */
  readonly blockAges: BlockAgeMonitor | undefined;
  readonly offChainSources: OffChainSources;
  readonly limiter: AdaptiveLimiter;
  readonly clocks: Clocks;
  readonly metrics: Metrics;
  readonly tracing: Tracing | undefined;
  /** undefined: this process shares nothing. */
  readonly sharedCache: SharedCache | undefined;
  /** Measured delivery times; undefined: there is no index. */
  readonly deliveryTimes: DeliveryTimes | undefined;
}

/** Creates the quote engine with everything it needs. `countActiveRoutes` counts the routes whose chain state is refreshed. */
export function composeQuoteEngine(options: ComposeQuoteEngineOptions) {
  const { config, chains, blockAges, offChainSources, limiter, clocks, metrics, sharedCache, deliveryTimes } = options;
  const shutdown = new AbortController();
  const access = { ...offChainSources, chains: (network: NetworkSlug) => chains.forNetwork(network) };
  const refuseStalledIfLimited = (engine: QuoteEngine, checksCustomEndpoints: boolean): QuoteEngine =>
    blockAges === undefined
      ? engine
      : refuseStalled(engine, { blockAges, now: clocks.monotonicNow, checksCustomEndpoints });
  const burnLimits = new BurnLimits(getNetwork("mainnet"), chains.forBackground("mainnet"), clocks);
  if (config.quoteEngine === "sdk") {
    const engine = refuseStalledIfLimited(new SdkEngine({ ...access, limiter }), false);
    return { engine, burnLimits, countActiveRoutes: () => 0, close: () => burnLimits.close() };
  }

  /** Records what a read of chain state tells beside the values of quotes. */
  function recordState(network: NetworkSlug, chain: string, state: ChainState): void {
    const head = { number: Number(state.block.number), timestamp: Number(state.block.timeSeconds) };
    chains.recordHead(network, chain, head, state.readAt);
    if (network === "mainnet") burnLimits.record(chain, state);
  }

  const engine = new SnapshotEngine({
    ...access,
    maxAgeMs: config.quoteMaxAgeMs,
    maxStaleMs: config.quoteMaxStaleMs,
    clocks,
    blockAges,
    onRead: observeReads(options, recordState, shutdown.signal),
    sharedCache,
    onReceived: (network, { slug }, state) => recordState(network, slug, state),
    onQuoteAge: metrics.observeQuoteAge,
    ...(deliveryTimes && {
      getDeliveryTime: ({ token, source, destination }) =>
        deliveryTimes.get({ token: token.symbol, source, destination }),
    }),
  });

  return {
    engine: refuseStalledIfLimited(engine, true),
    burnLimits,
    countActiveRoutes: () => engine.countActiveRoutes(),
    close() {
      shutdown.abort();
      engine.close();
      burnLimits.close();
    },
  };
}

/** Counts and traces reads of chain state by outcome, unless this process stops, and records what each tells. */
function observeReads(
  { metrics, tracing }: ComposeQuoteEngineOptions,
  recordState: (network: NetworkSlug, chain: string, state: ChainState) => void,
  stopping: AbortSignal,
): OnChainStateRead {
  const countReads: OnChainStateRead = async (network, read, run) => {
    try {
      const chainState = await run();
      metrics.onChainStateRead("ok");
      recordState(network, read.chain, chainState);
      return chainState;
    } catch (error) {
      if (!stopping.aborted) metrics.onChainStateRead("failed");
      throw error;
    }
  };
  return tracing === undefined
    ? countReads
    : (network, read, run) => tracing.onChainStateRead(network, read, () => countReads(network, read, run));
}
