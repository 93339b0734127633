import type { BudgetEvent, ChainEndpointRequest } from "../../chain/chains.js";
import type { EndpointRequestObserver } from "../../chain/endpoints/endpoint.js";
import type { AccessLog } from "../../http/request/request-context.js";
import {
  eventCounters,
  type MetricDescription,
  type MetricSample,
  type MetricSources,
  metricCatalogue,
  QUOTE_AGE_BUCKETS,
  RPC_DURATION_BUCKETS,
} from "./catalogue.js";
import { createMetricsRegistry, type MetricsJson } from "./exposition.js";
import { Histogram, LabeledCounter, RequestMetrics } from "./instruments.js";

/** Every metric defined by the service, for tests of the dashboard and the alerts. */
export const metricDescriptions: readonly MetricDescription[] = Object.values(metricCatalogue);

/** The RPC methods that the service sends. Others, sent by the SDK, are counted as `other`: the label values stay few. */
const LABELED_RPC_METHODS: ReadonlySet<string> = new Set([
  ...["batch", "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_gasPrice", "eth_getBlockByHash"],
  ...["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionByHash", "eth_getTransactionReceipt"],
]);

type EventKey = keyof typeof eventCounters;

/** The metrics of this process. Each callback takes less than a microsecond. */
export class Metrics {
  readonly #sources: MetricSources;
  readonly #monotonicNow: () => number;
  readonly #requests = new RequestMetrics();
  readonly #counters = Object.fromEntries(
    Object.entries(eventCounters).map(([key, { labels }]) => [key, new LabeledCounter(labels)]),
  ) as Readonly<Record<EventKey, LabeledCounter>>;
  readonly #rpcDurations = new Map<
    string,
    { readonly labels: MetricSample["labels"]; readonly histogram: Histogram }
  >();
  readonly #quoteAges = new Histogram(QUOTE_AGE_BUCKETS);
  #registry: ReturnType<typeof createMetricsRegistry> | undefined;

  /** @param monotonicNow milliseconds on a monotonic clock */
  constructor(sources: MetricSources, monotonicNow: () => number) {
    this.#sources = sources;
    this.#monotonicNow = monotonicNow;
  }

  /** Returns the function that counts an event. It takes the values of the labels in the order of the catalogue. */
  readonly #count =
    (key: EventKey) =>
    (...labels: readonly string[]): void =>
      this.#counters[key].increment(...labels);

  readonly onLookupRequest = this.#count("lookupRequests");
  readonly onFailedWithdrawalCheck = this.#count("withdrawalChecks");
  readonly onBudgetExhausted = this.#count("budgetsExhausted");
  readonly onChainStateRead = this.#count("chainStateReads");
  readonly onWatchPoll = this.#count("watchPolls");
  readonly onWatchEvent = this.#count("watchEvents");

  readonly onRequest: AccessLog = (entry, reason) => {
    this.#requests.record(entry, reason);
    const errorCode = entry.fields?.errorCode;
    if (errorCode !== undefined) this.#counters.connectionErrors.increment(String(errorCode));
  };

  readonly onEndpointRequest: EndpointRequestObserver<ChainEndpointRequest> = (request) => {
    const { network, chain, endpoint, calls } = request;
    const startedAt = this.#monotonicNow();
    const method = LABELED_RPC_METHODS.has(request.method) ? request.method : "other";
    this.#counters.upstreamCalls.add(calls, network, chain, endpoint);
    return (outcome) => {
      this.#counters.upstreamRequests.increment(network, chain, endpoint, method, outcome);
      if (outcome !== "aborted")
        this.#getRpcDurations(network, chain).observe((this.#monotonicNow() - startedAt) / 1000);
    };
  };

  readonly onBudgetLimited = ({ network, chain, endpoint, outcome }: BudgetEvent): void =>
    this.#counters.rpcBudgetLimited.increment(network, chain, endpoint, outcome);

  /** What the votes of RPC endpoints (RPC_QUORUM) add. */
  readonly quorum = {
    onOutvoted: this.#count("outvotedEndpoints"),
    onRead: this.#count("quorumReads"),
    onCalls: (network: string, chain: string, purpose: string, count: number): void =>
      this.#counters.quorumCalls.add(count, network, chain, purpose),
  };

  /** @param ageMs age of the chain state of a served quote */
  readonly observeQuoteAge = (ageMs: number): void => this.#quoteAges.observe(ageMs / 1000);

  /** @param counts results of a batch of quotes by reason; quotes have an empty one */
  readonly onBatchResults = (counts: ReadonlyMap<string, number>): void => {
    for (const [reason, count] of counts) this.#counters.batchResults.add(count, reason);
  };

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
    this.#registry ??= createMetricsRegistry(
      Object.entries(metricCatalogue).map(([key, description]) => {
        return { description, collect: () => this.#collect(key, description) };
      }),
    );
    return this.#registry;
  }

  #collect(key: string, { name, read }: MetricDescription): readonly MetricSample[] {
    if (read !== undefined) {
      const samples = read(this.#sources);
      return typeof samples === "number" ? [{ labels: {}, value: samples }] : (samples ?? []);
    }
    if (key === "requests") return this.#requests.toCounterSamples();
    if (key === "requestDuration") return this.#requests.toDurationSamples();
    if (key === "quoteChainStateAge") return this.#quoteAges.toSamples(name, {});
    if (key === "upstreamDuration")
      return [...this.#rpcDurations.values()].flatMap(({ labels, histogram }) => histogram.toSamples(name, labels));
    return this.#counters[key as EventKey].toSamples();
  }
}
