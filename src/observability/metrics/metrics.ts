import type { BudgetEvent, ChainEndpointRequest } from "../../chain/chains.js";
import type { EndpointRequestObserver } from "../../chain/endpoints/endpoint.js";
import type { AccessLog } from "../../http/request/request-context.js";
import type { LimiterLoad } from "../../resilience/adaptive-limiter.js";
import type { RedisStats } from "../../shared-state/redis/redis-services.js";
import type { SharedStateStats } from "../../shared-state/shared-state.js";
import type { WatchCounts } from "../../transfers/watch/transfer-watcher.js";
import type { DependencyStatus } from "../dependency-status.js";
import { type MetricDescription, metricCatalogue, QUOTE_AGE_BUCKETS, RPC_DURATION_BUCKETS } from "./catalogue.js";
import { createChainSamples, createStateSamples } from "./chain-samples.js";
import { createMetricsRegistry, type MetricFamily, type MetricsJson } from "./exposition.js";
import { createIndexSamples } from "./index-samples.js";
import { createLabeledCounter, Histogram, type MetricSample } from "./instruments.js";
import { createQuorumMetrics, type QuorumMetrics } from "./quorum-metrics.js";
import { createRequestMetrics } from "./request-metrics.js";
import { createSharedStateSamples } from "./shared-state-samples.js";

/** The metrics of this process. Each callback takes less than a microsecond. */
export interface Metrics {
  readonly onRequest: AccessLog;
  readonly onEndpointRequest: EndpointRequestObserver<ChainEndpointRequest>;
  readonly onBudgetLimited: (event: BudgetEvent) => void;
  readonly quorum: QuorumMetrics["observer"];
  /** @param purpose what the request of a lookup reads */
  readonly onLookupRequest: (purpose: string) => void;
  /** @param budget whose budget a lookup has spent */
  readonly onBudgetExhausted: (budget: string) => void;
  readonly onChainStateRead: (outcome: "ok" | "failed") => void;
  /** @param ageMs age of the chain state of a served quote */
  readonly observeQuoteAge: (ageMs: number) => void;
  /** @param counts results of a batch of quotes by reason; quotes have an empty one */
  readonly onBatchResults: (counts: ReadonlyMap<string, number>) => void;
  readonly onWatchPoll: (network: string, chain: string, outcome: "ok" | "failed") => void;
  /** @param event what the message of a watch is */
  readonly onWatchEvent: (event: string) => void;
  readonly onQuoteComparison: (result: "equal" | "different" | "unconfirmed" | "failed") => void;
  /** Renders the metrics in the Prometheus text format. prom-client observes the process from the first call on. */
  renderText(): Promise<string>;
  /** Returns the metrics for aggregation in another process. */
  collectJson(): Promise<MetricsJson>;
}

/** The current load of the service. */
export interface ServiceLoad {
  readonly connections: number;
  readonly requests: number;
  readonly streamingCalls: number;
  readonly openStreams: number;
  readonly pipelinedRequests: number;
  readonly unsentBytes: number;
  readonly receivedBytes: number;
  readonly cuts: Readonly<Record<string, number>>;
  readonly limiter: LimiterLoad;
  readonly pendingRequests: number;
  readonly pendingBatchQuotes: number;
  /** HTTP requests to configured RPC endpoints that wait for a response. */
  readonly upstreamRequests: number;
  readonly customEndpoints: number;
  readonly activeRoutes: number;
  readonly watches: WatchCounts;
  /** Calls per second that this process may send to each endpoint; 0: no limit. */
  readonly callsPerSecond: number;
  /** undefined: nothing is shared with other processes. */
  readonly sharedState: SharedStateStats | undefined;
  /** undefined: there is no Redis. */
  readonly redis: RedisStats | undefined;
}

export interface MetricsOptions {
  readonly version: string;
  /** Called at each scrape, like `getLoad`. */
  readonly getDependencyStatus: () => DependencyStatus;
  readonly getLoad: () => ServiceLoad;
  /** Returns the number of lost log lines by reason. */
  readonly countLostLogLines: () => Readonly<Record<string, number>>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a monotonic clock. */
  readonly monotonicNow: () => number;
}

/** Every metric defined by the service, for tests of the dashboard and the alerts. */
export const metricDescriptions: readonly MetricDescription[] = Object.values(metricCatalogue);

const SOURCE_STATES = ["ok", "failing", "unknown", "off"] as const;

/** The RPC methods that the service sends. Others, sent by the SDK, are counted as `other`: the label values stay few. */
const LABELED_RPC_METHODS: ReadonlySet<string> = new Set([
  ...["batch", "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_gasPrice", "eth_getBlockByHash"],
  ...["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionByHash", "eth_getTransactionReceipt"],
]);

export function createMetrics(options: MetricsOptions): Metrics {
  const { version, getDependencyStatus, getLoad, countLostLogLines, now, monotonicNow } = options;
  const requests = createRequestMetrics();
  const connectionErrors = createLabeledCounter(metricCatalogue.connectionErrors.labels);
  const rpcRequests = createLabeledCounter(metricCatalogue.upstreamRequests.labels);
  const lookupRequests = createLabeledCounter(metricCatalogue.lookupRequests.labels);
  const budgetsExhausted = createLabeledCounter(metricCatalogue.budgetsExhausted.labels);
  const rpcCalls = createLabeledCounter(metricCatalogue.upstreamCalls.labels);
  const rpcBudgetLimited = createLabeledCounter(metricCatalogue.rpcBudgetLimited.labels);
  const quorum = createQuorumMetrics();
  const rpcDurations = new Map<string, { readonly labels: MetricSample["labels"]; readonly histogram: Histogram }>();
  const quoteAges = new Histogram(QUOTE_AGE_BUCKETS);
  const batchResults = createLabeledCounter(metricCatalogue.batchResults.labels);
  const quoteComparisons = createLabeledCounter(metricCatalogue.quoteComparisons.labels);
  const chainStateReads = createLabeledCounter(metricCatalogue.chainStateReads.labels);
  const watchPolls = createLabeledCounter(metricCatalogue.watchPolls.labels);
  const watchEvents = createLabeledCounter(metricCatalogue.watchEvents.labels);
  let registry: MetricsRegistry | undefined;

  function getRpcDurations(network: string, chain: string): Histogram {
    const key = `${network} ${chain}`;
    const durations = rpcDurations.get(key) ?? {
      labels: { network, chain },
      histogram: new Histogram(RPC_DURATION_BUCKETS),
    };
    rpcDurations.set(key, durations);
    return durations.histogram;
  }

  const gauge = (value: number): MetricSample[] => [{ labels: {}, value }];
  const collected: Readonly<Record<keyof typeof metricCatalogue, () => MetricSample[]>> = {
    requests: requests.toCounterSamples,
    requestDuration: requests.toDurationSamples,
    requestsInProgress: () => gauge(getLoad().requests),
    streamingCalls: () => gauge(getLoad().streamingCalls),
    connections: () => gauge(getLoad().connections),
    http2Streams: () => gauge(getLoad().openStreams),
    pipelinedRequests: () => gauge(getLoad().pipelinedRequests),
    unsentBytes: () => gauge(getLoad().unsentBytes),
    receivedBytes: () => gauge(getLoad().receivedBytes),
    limitCuts: () => Object.entries(getLoad().cuts).map(([cause, value]) => ({ labels: { cause }, value })),
    connectionErrors: connectionErrors.toSamples,
    upstreamRequests: rpcRequests.toSamples,
    upstreamCalls: rpcCalls.toSamples,
    rpcBudget: () => gauge(getLoad().callsPerSecond),
    rpcBudgetLimited: rpcBudgetLimited.toSamples,
    ...quorum.samples,
    upstreamDuration: () =>
      [...rpcDurations.values()].flatMap(({ labels, histogram }) =>
        histogram.toSamples(metricCatalogue.upstreamDuration.name, labels),
      ),
    lookupRequests: lookupRequests.toSamples,
    budgetsExhausted: budgetsExhausted.toSamples,
    ...createChainSamples(getDependencyStatus, now),
    sourceState: () =>
      getDependencyStatus().sources.flatMap(({ source, state: current }) =>
        createStateSamples(SOURCE_STATES, current, { source }),
      ),
    sourceAge: () =>
      getDependencyStatus().sources.flatMap(({ source, ageMs }) =>
        ageMs === undefined ? [] : [{ labels: { source }, value: ageMs / 1000 }],
      ),
    priceDifference: () =>
      getDependencyStatus().prices.differences.map(({ token, difference }) => ({
        labels: { token },
        value: difference,
      })),
    priceDistrusted: () =>
      getDependencyStatus().prices.distrustedTokens.map((token) => ({ labels: { token }, value: 1 })),
    priceFeedRefused: () =>
      getDependencyStatus().prices.refusedFeeds.map((labels) => ({ labels: { ...labels }, value: 1 })),
    quoteChainStateAge: () => quoteAges.toSamples(metricCatalogue.quoteChainStateAge.name, {}),
    batchResults: batchResults.toSamples,
    quoteComparisons: quoteComparisons.toSamples,
    chainStateReads: chainStateReads.toSamples,
    activeRoutes: () => gauge(getLoad().activeRoutes),
    ...createSharedStateSamples(getLoad),
    watches: () => gauge(getLoad().watches.watches),
    followedTransfers() {
      const { followed, unknown } = getLoad().watches;
      const byState = { known: followed - unknown, unknown };
      return Object.entries(byState).map(([state, value]) => ({ labels: { state }, value }));
    },
    watchedAccounts: () => gauge(getLoad().watches.accounts),
    watchPolls: watchPolls.toSamples,
    watchEvents: watchEvents.toSamples,
    ...createIndexSamples(getDependencyStatus),
    concurrencyLimit: () => gauge(getLoad().limiter.limit),
    inFlight: () => gauge(getLoad().limiter.inFlight),
    requestsPending: () => gauge(getLoad().pendingRequests),
    batchQuotesPending: () => gauge(getLoad().pendingBatchQuotes),
    upstreamRequestsInFlight: () => gauge(getLoad().upstreamRequests),
    customEndpoints: () => gauge(getLoad().customEndpoints),
    logLinesLost: () => Object.entries(countLostLogLines()).map(([reason, value]) => ({ labels: { reason }, value })),
    buildInfo: () => [{ labels: { version, node: process.version }, value: 1 }],
  };

  /** Loads prom-client at its first call. */
  function getRegistry(): MetricsRegistry {
    registry ??= createMetricsRegistry(
      Object.entries(metricCatalogue).map(([key, description]): MetricFamily => {
        return { ...description, collect: collected[key as keyof typeof metricCatalogue] };
      }),
    );
    return registry;
  }

  return {
    quorum: quorum.observer,
    onRequest(entry, reason) {
      requests.record(entry, reason);
      const errorCode = entry.fields?.errorCode;
      if (errorCode !== undefined) connectionErrors.increment(String(errorCode));
    },
    onEndpointRequest({ network, chain, endpoint, method, calls }) {
      const startedAt = monotonicNow();
      rpcCalls.add(calls, network, chain, endpoint);
      return (outcome) => {
        rpcRequests.increment(network, chain, endpoint, LABELED_RPC_METHODS.has(method) ? method : "other", outcome);
        if (outcome !== "aborted") getRpcDurations(network, chain).observe((monotonicNow() - startedAt) / 1000);
      };
    },
    onBudgetLimited: ({ network, chain, endpoint, outcome }) =>
      rpcBudgetLimited.increment(network, chain, endpoint, outcome),
    onLookupRequest: (purpose) => lookupRequests.increment(purpose),
    onBudgetExhausted: (budget) => budgetsExhausted.increment(budget),
    onChainStateRead: (outcome) => chainStateReads.increment(outcome),
    observeQuoteAge: (ageMs) => quoteAges.observe(ageMs / 1000),
    onBatchResults(counts) {
      for (const [reason, count] of counts) batchResults.add(count, reason);
    },
    onWatchPoll: (network, chain, outcome) => watchPolls.increment(network, chain, outcome),
    onWatchEvent: (event) => watchEvents.increment(event),
    onQuoteComparison: (result) => quoteComparisons.increment(result),
    renderText: async () => getRegistry().metrics(),
    collectJson: async () => getRegistry().getMetricsAsJSON(),
  };
}

type MetricsRegistry = ReturnType<typeof createMetricsRegistry>;
