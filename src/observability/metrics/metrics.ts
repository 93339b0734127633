import type { BudgetEvent, ChainEndpointRequest } from "../../chain/chains.js";
import type { EndpointRequestObserver } from "../../chain/endpoints/endpoint.js";
import type { AccessLog } from "../../http/request/request-context.js";
import type { HttpLoad } from "../../http/server.js";
import type { LimiterLoad } from "../../resilience/adaptive-limiter.js";
import type { RedisStore } from "../../shared-state/redis-store.js";
import type { WatchCounts } from "../../transfers/watch/transfer-watcher.js";
import type { DependencyStatus } from "../dependency-status.js";
import { type MetricDescription, metricCatalogue, QUOTE_AGE_BUCKETS, RPC_DURATION_BUCKETS } from "./catalogue.js";
import { createChainSamples, createIndexSamples, createSourceSamples } from "./dependency-samples.js";
import { createMetricsRegistry, type MetricFamily, type MetricsJson } from "./exposition.js";
import { Histogram, LabeledCounter, type MetricSample, RequestMetrics, toLabeledSamples } from "./instruments.js";

/** The current load of the service. */
export interface ServiceLoad extends HttpLoad {
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
  /** undefined: there is no Redis. */
  readonly redis: ReturnType<RedisStore["stats"]> | undefined;
}

/** Every metric defined by the service, for tests of the dashboard and the alerts. */
export const metricDescriptions: readonly MetricDescription[] = Object.values(metricCatalogue);

/** The RPC methods that the service sends. Others, sent by the SDK, are counted as `other`: the label values stay few. */
const LABELED_RPC_METHODS: ReadonlySet<string> = new Set([
  ...["batch", "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_gasPrice", "eth_getBlockByHash"],
  ...["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionByHash", "eth_getTransactionReceipt"],
]);

type MetricKey = keyof typeof metricCatalogue;
type Samples<Key extends MetricKey> = Readonly<Record<Key, () => MetricSample[]>>;

/** The metrics that are counted here when something happens. */
const COUNTER_KEYS = [
  ...(["connectionErrors", "upstreamRequests", "upstreamCalls", "rpcBudgetLimited", "outvotedEndpoints"] as const),
  ...([
    "quorumReads",
    "quorumCalls",
    "lookupRequests",
    "budgetsExhausted",
    "withdrawalChecks",
    "batchResults",
    "chainStateReads",
  ] as const),
  ...(["watchPolls", "watchEvents"] as const),
] satisfies readonly MetricKey[];
type CounterKey = (typeof COUNTER_KEYS)[number];

/** The metrics of this process. Each callback takes less than a microsecond. */
export class Metrics {
  readonly #options;
  readonly #requests = new RequestMetrics();
  readonly #counters: Readonly<Record<CounterKey, LabeledCounter>>;
  readonly #rpcDurations = new Map<
    string,
    { readonly labels: MetricSample["labels"]; readonly histogram: Histogram }
  >();
  readonly #quoteAges = new Histogram(QUOTE_AGE_BUCKETS);
  #registry: ReturnType<typeof createMetricsRegistry> | undefined;

  constructor(options: {
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
  }) {
    this.#options = options;
    const counters = COUNTER_KEYS.map((key) => [key, new LabeledCounter(metricCatalogue[key].labels)] as const);
    this.#counters = Object.fromEntries(counters) as Record<CounterKey, LabeledCounter>;
  }

  readonly onRequest: AccessLog = (entry, reason) => {
    this.#requests.record(entry, reason);
    const errorCode = entry.fields?.errorCode;
    if (errorCode !== undefined) this.#counters.connectionErrors.increment(String(errorCode));
  };

  readonly onEndpointRequest: EndpointRequestObserver<ChainEndpointRequest> = (request) => {
    const { network, chain, endpoint, calls } = request;
    const { monotonicNow } = this.#options;
    const startedAt = monotonicNow();
    const method = LABELED_RPC_METHODS.has(request.method) ? request.method : "other";
    this.#counters.upstreamCalls.add(calls, network, chain, endpoint);
    return (outcome) => {
      this.#counters.upstreamRequests.increment(network, chain, endpoint, method, outcome);
      if (outcome !== "aborted") this.#getRpcDurations(network, chain).observe((monotonicNow() - startedAt) / 1000);
    };
  };

  readonly onBudgetLimited = ({ network, chain, endpoint, outcome }: BudgetEvent): void =>
    this.#counters.rpcBudgetLimited.increment(network, chain, endpoint, outcome);

  /** What the votes of RPC endpoints (RPC_QUORUM) add. */
  readonly quorum = {
    /** @param read what the outvoted endpoint was asked for */
    onOutvoted: (network: string, chain: string, endpoint: string, read: string): void =>
      this.#counters.outvotedEndpoints.increment(network, chain, endpoint, read),
    onRead: (network: string, chain: string, outcome: string): void =>
      this.#counters.quorumReads.increment(network, chain, outcome),
    onCalls: (network: string, chain: string, purpose: string, count: number): void =>
      this.#counters.quorumCalls.add(count, network, chain, purpose),
  };

  /** @param purpose what the request of a lookup reads */
  readonly onLookupRequest = (purpose: string): void => this.#counters.lookupRequests.increment(purpose);

  /** @param check what did not fit in a withdrawal that was not returned */
  readonly onFailedWithdrawalCheck = (check: string): void => this.#counters.withdrawalChecks.increment(check);

  /** @param budget whose budget a lookup has spent */
  readonly onBudgetExhausted = (budget: string): void => this.#counters.budgetsExhausted.increment(budget);

  readonly onChainStateRead = (outcome: "ok" | "failed"): void => this.#counters.chainStateReads.increment(outcome);

  /** @param ageMs age of the chain state of a served quote */
  readonly observeQuoteAge = (ageMs: number): void => this.#quoteAges.observe(ageMs / 1000);

  /** @param counts results of a batch of quotes by reason; quotes have an empty one */
  readonly onBatchResults = (counts: ReadonlyMap<string, number>): void => {
    for (const [reason, count] of counts) this.#counters.batchResults.add(count, reason);
  };

  readonly onWatchPoll = (network: string, chain: string, outcome: "ok" | "failed"): void =>
    this.#counters.watchPolls.increment(network, chain, outcome);

  /** @param event what the message of a watch is */
  readonly onWatchEvent = (event: string): void => this.#counters.watchEvents.increment(event);

  /** Renders the metrics in the Prometheus text format. prom-client observes the process from the first call on. */
  readonly renderText = async (): Promise<string> => this.#getRegistry().metrics();

  /** Returns the metrics for aggregation in another process. */
  readonly collectJson = async (): Promise<MetricsJson> => this.#getRegistry().getMetricsAsJSON();

  #getRpcDurations(network: string, chain: string): Histogram {
    const key = `${network} ${chain}`;
    const durations = this.#rpcDurations.get(key) ?? {
      labels: { network, chain },
      histogram: new Histogram(RPC_DURATION_BUCKETS),
    };
    this.#rpcDurations.set(key, durations);
    return durations.histogram;
  }

  /** Loads prom-client at its first call. */
  #getRegistry(): ReturnType<typeof createMetricsRegistry> {
    if (this.#registry !== undefined) return this.#registry;
    const collected = this.#createSamples();
    const families = Object.entries(metricCatalogue).map(([key, description]): MetricFamily => {
      return { ...description, collect: collected[key as MetricKey] };
    });
    this.#registry = createMetricsRegistry(families);
    return this.#registry;
  }

  #createSamples(): Samples<MetricKey> {
    const { version, getDependencyStatus, getLoad, countLostLogLines, now } = this.#options;
    const counted = COUNTER_KEYS.map((key) => [key, () => this.#counters[key].toSamples()] as const);
    return {
      ...(Object.fromEntries(counted) as Samples<CounterKey>),
      ...createLoadSamples(getLoad),
      ...createChainSamples(getDependencyStatus, now),
      ...createSourceSamples(getDependencyStatus),
      ...createIndexSamples(getDependencyStatus),
      requests: () => this.#requests.toCounterSamples(),
      requestDuration: () => this.#requests.toDurationSamples(),
      upstreamDuration: () =>
        [...this.#rpcDurations.values()].flatMap(({ labels, histogram }) =>
          histogram.toSamples(metricCatalogue.upstreamDuration.name, labels),
        ),
      quoteChainStateAge: () => this.#quoteAges.toSamples(metricCatalogue.quoteChainStateAge.name, {}),
      logLinesLost: () => toLabeledSamples("reason", Object.entries(countLostLogLines())),
      buildInfo: () => [{ labels: { version, node: process.version }, value: 1 }],
    };
  }
}

/** Returns the functions that collect the load of the service, by their keys in the catalogue. */
function createLoadSamples(getLoad: () => ServiceLoad) {
  const gauge = (read: (load: ServiceLoad) => number) => (): MetricSample[] => [{ labels: {}, value: read(getLoad()) }];
  return {
    requestsInProgress: gauge((load) => load.requests),
    streamingCalls: gauge((load) => load.streamingCalls),
    connections: gauge((load) => load.connections),
    http2Streams: gauge((load) => load.openStreams),
    pipelinedRequests: gauge((load) => load.pipelinedRequests),
    waitingForTurn: gauge((load) => load.waitingForTurn),
    unsentBytes: gauge((load) => load.unsentBytes),
    receivedBytes: gauge((load) => load.receivedBytes),
    limitCuts: () => toLabeledSamples("cause", Object.entries(getLoad().cuts)),
    rpcBudget: gauge((load) => load.callsPerSecond),
    activeRoutes: gauge((load) => load.activeRoutes),
    redisConnected(): MetricSample[] {
      const { redis } = getLoad();
      return redis === undefined ? [] : [{ labels: {}, value: redis.isConnected ? 1 : 0 }];
    },
    redisCommands: () => toLabeledSamples("result", Object.entries(getLoad().redis?.commands ?? {})),
    watches: gauge((load) => load.watches.watches),
    followedTransfers() {
      const { followed, unknown } = getLoad().watches;
      return toLabeledSamples("state", Object.entries({ known: followed - unknown, unknown }));
    },
    watchedAccounts: gauge((load) => load.watches.accounts),
    concurrencyLimit: gauge((load) => load.limiter.limit),
    inFlight: gauge((load) => load.limiter.inFlight),
    requestsPending: gauge((load) => load.pendingRequests),
    batchQuotesPending: gauge((load) => load.pendingBatchQuotes),
    upstreamRequestsInFlight: gauge((load) => load.upstreamRequests),
    customEndpoints: gauge((load) => load.customEndpoints),
  } satisfies Partial<Samples<MetricKey>>;
}
