import type { DependencyStatus } from "../../app/dependency-status.js";
import type { ChainEndpointRequest } from "../../chain/chains.js";
import type { EndpointRequestObserver } from "../../chain/endpoints/endpoint.js";
import type { AccessLog } from "../../http/request/request-context.js";
import type { LimiterLoad } from "../../resilience/adaptive-limiter.js";
import { type MetricDescription, metricCatalogue, QUOTE_AGE_BUCKETS, RPC_DURATION_BUCKETS } from "./catalogue.js";
import type { MetricFamily, MetricsJson } from "./exposition.js";
import { createLabeledCounter, Histogram, type MetricSample } from "./instruments.js";
import { createRequestMetrics } from "./request-metrics.js";

/** What the process counts and measures of itself. What the parts tell it costs them next to nothing. */
export interface Metrics {
  readonly onRequest: AccessLog;
  readonly onEndpointRequest: EndpointRequestObserver<ChainEndpointRequest>;
  readonly onChainStateRead: (outcome: "ok" | "failed") => void;
  /** @param ageMs of the facts of a quote that is given */
  readonly observeQuoteAge: (ageMs: number) => void;
  readonly onQuoteComparison: (verdict: "equal" | "different" | "failed") => void;
  /** Loads what writes metrics, and begins to watch the process. Called by the others too. */
  loadRegistry(): Promise<void>;
  /** In the text form of Prometheus. */
  renderText(): Promise<string>;
  /** For another process. */
  collectJson(): Promise<MetricsJson>;
}

/** How much goes on now. */
export interface ServiceLoad {
  readonly connections: number;
  readonly requests: number;
  readonly limiter: LimiterLoad;
  readonly pendingRequests: number;
  readonly customEndpoints: number;
  readonly activeRoutes: number;
}

export interface MetricsOptions {
  readonly version: string;
  /** Asked at each scrape, as is the load. */
  readonly getDependencyStatus: () => DependencyStatus;
  readonly getLoad: () => ServiceLoad;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a steady clock. */
  readonly monotonicNow: () => number;
}

/** Every metric of our own, for what stands on their names. */
export const metricDescriptions: readonly MetricDescription[] = Object.values(metricCatalogue);

const ENDPOINT_STATES = ["ok", "failing", "cooldown", "lagging", "unknown"] as const;
const SOURCE_STATES = ["ok", "failing", "unknown", "off"] as const;

/** The methods that are sent here; what the SDK or a later version sends beside them is `other`. */
const knownRpcMethods: ReadonlySet<string> = new Set([
  ...["batch", "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_gasPrice", "eth_getBlockByHash"],
  ...["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionByHash", "eth_getTransactionReceipt"],
]);

export function createMetrics({ version, getDependencyStatus, getLoad, now, monotonicNow }: MetricsOptions): Metrics {
  const requests = createRequestMetrics();
  const connectionErrors = createLabeledCounter(metricCatalogue.connectionErrors.labels);
  const exchanges = createLabeledCounter(metricCatalogue.upstreamRequests.labels);
  const exchangeTimes = new Map<string, { readonly labels: MetricSample["labels"]; readonly times: Histogram }>();
  const quoteAges = new Histogram(QUOTE_AGE_BUCKETS);
  const verdicts = createLabeledCounter(metricCatalogue.quoteComparisons.labels);
  const chainStateReads = createLabeledCounter(metricCatalogue.chainStateReads.labels);
  let registry: Promise<MetricsRegistry> | undefined;

  function timesOf(network: string, chain: string): Histogram {
    const key = `${network} ${chain}`;
    const known = exchangeTimes.get(key) ?? { labels: { network, chain }, times: new Histogram(RPC_DURATION_BUCKETS) };
    exchangeTimes.set(key, known);
    return known.times;
  }

  const one = (value: number): MetricSample[] => [{ labels: {}, value }];
  const headsOf = (
    valueFrom: (head: { readonly number: number; readonly timestamp: number }) => number,
  ): MetricSample[] =>
    getDependencyStatus().chains.flatMap(({ network, chain, head }) =>
      head === undefined ? [] : [{ labels: { network, chain }, value: valueFrom(head) }],
    );
  const collected: Readonly<Record<keyof typeof metricCatalogue, () => MetricSample[]>> = {
    requests: requests.toCounterSamples,
    requestDuration: requests.toDurationSamples,
    requestsInProgress: () => one(getLoad().requests),
    connections: () => one(getLoad().connections),
    connectionErrors: connectionErrors.toSamples,
    upstreamRequests: exchanges.toSamples,
    upstreamDuration: () =>
      [...exchangeTimes.values()].flatMap(({ labels, times }) =>
        times.toSamples(metricCatalogue.upstreamDuration.name, labels),
      ),
    endpointState: () =>
      getDependencyStatus().chains.flatMap(({ network, chain, endpoints }) =>
        endpoints.flatMap(({ endpoint, state: own }) =>
          createStateSamples(ENDPOINT_STATES, own, { network, chain, endpoint }),
        ),
      ),
    headAge: () => headsOf(({ timestamp }) => Math.max(0, now() / 1000 - timestamp)),
    headNumber: () => headsOf(({ number }) => number),
    sourceState: () =>
      getDependencyStatus().sources.flatMap(({ source, state: own }) =>
        createStateSamples(SOURCE_STATES, own, { source }),
      ),
    sourceAge: () =>
      getDependencyStatus().sources.flatMap(({ source, ageMs }) =>
        ageMs === undefined ? [] : [{ labels: { source }, value: ageMs / 1000 }],
      ),
    quoteChainStateAge: () => quoteAges.toSamples(metricCatalogue.quoteChainStateAge.name, {}),
    quoteComparisons: verdicts.toSamples,
    chainStateReads: chainStateReads.toSamples,
    activeRoutes: () => one(getLoad().activeRoutes),
    indexLag: () =>
      (getDependencyStatus().index ?? []).map(({ chain, lagBlocks }) => ({ labels: { chain }, value: lagBlocks })),
    concurrencyLimit: () => one(getLoad().limiter.limit),
    inFlight: () => one(getLoad().limiter.inFlight),
    requestsPending: () => one(getLoad().pendingRequests),
    customEndpoints: () => one(getLoad().customEndpoints),
    buildInfo: () => [{ labels: { version, node: process.version }, value: 1 }],
  };

  /** Loaded when it is wanted: a start is quicker without it. */
  function loaded(): Promise<MetricsRegistry> {
    registry ??= import("./exposition.js").then(({ createMetricsRegistry }) => {
      const families = Object.entries(metricCatalogue).map(([key, description]): MetricFamily => {
        return { ...description, collect: collected[key as keyof typeof metricCatalogue] };
      });
      return createMetricsRegistry(families);
    });
    return registry;
  }

  return {
    onRequest(line, reason) {
      requests.record(line, reason);
      if (line.errorCode !== undefined) connectionErrors.increment(String(line.errorCode));
    },
    onEndpointRequest({ network, chain, endpoint, method }) {
      const beganAt = monotonicNow();
      return (outcome) => {
        exchanges.increment(network, chain, endpoint, knownRpcMethods.has(method) ? method : "other", outcome);
        if (outcome !== "aborted") timesOf(network, chain).observe((monotonicNow() - beganAt) / 1000);
      };
    },
    onChainStateRead: (outcome) => chainStateReads.increment(outcome),
    observeQuoteAge: (ageMs) => quoteAges.observe(ageMs / 1000),
    onQuoteComparison: (verdict) => verdicts.increment(verdict),
    loadRegistry: async () => void (await loaded()),
    renderText: async () => (await loaded()).metrics(),
    collectJson: async () => (await loaded()).getMetricsAsJSON(),
  };
}

type MetricsRegistry = ReturnType<typeof import("./exposition.js").createMetricsRegistry>;

/** A sample for each state that there is: 1 for the one that holds. */
function createStateSamples(states: readonly string[], own: string, labels: MetricSample["labels"]): MetricSample[] {
  return states.map((state) => ({ labels: { ...labels, state }, value: state === own ? 1 : 0 }));
}
