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
  REQUEST_DURATION_BUCKETS,
  RPC_DURATION_BUCKETS,
} from "./catalogue.js";
import { createMetricsRegistry, type MetricsJson } from "./exposition.js";

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

  /** Returns an access log that counts each entry before it passes it on. */
  countEntries(log: AccessLog): AccessLog {
    return (entry, reason) => {
      this.onRequest(entry, reason);
      log(entry, reason);
    };
  }

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

/** A histogram. An observation takes nanoseconds; with prom-client's it takes half a microsecond. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #count = 0;

  /** @param bounds upper bounds, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    this.#sum += value;
    this.#count += 1;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] ?? 0)) index += 1;
    if (index < bounds.length) this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** Returns the samples of a Prometheus histogram with the given name. */
  toSamples(name: string, labels: MetricSample["labels"]): MetricSample[] {
    let cumulativeCount = 0;
    const buckets = this.#bounds.map((le, index): MetricSample => {
      cumulativeCount += this.#counts[index] ?? 0;
      return { labels: { ...labels, le }, value: cumulativeCount, metricName: `${name}_bucket` };
    });
    return [
      ...buckets,
      { labels: { ...labels, le: "+Inf" }, value: this.#count, metricName: `${name}_bucket` },
      { labels, value: this.#sum, metricName: `${name}_sum` },
      { labels, value: this.#count, metricName: `${name}_count` },
    ];
  }
}

/** A counter with labels. */
export class LabeledCounter {
  readonly #labelNames: readonly string[];
  readonly #counts = new Map<string, { readonly labels: MetricSample["labels"]; value: number }>();

  constructor(labelNames: readonly string[]) {
    this.#labelNames = labelNames;
  }

  /** @param values label values, in the order of the labels */
  increment(...values: readonly string[]): void {
    this.add(1, ...values);
  }

  /** Adds a number instead of 1. */
  add(amount: number, ...values: readonly string[]): void {
    const key = values.join("\n");
    const count = this.#counts.get(key);
    if (count !== undefined) count.value += amount;
    else {
      const labels = Object.fromEntries(this.#labelNames.map((label, index) => [label, values[index] ?? ""]));
      this.#counts.set(key, { labels, value: amount });
    }
  }

  toSamples(): MetricSample[] {
    return [...this.#counts.values()].map((count) => ({ ...count }));
  }
}

/** The requests of one operation over one protocol. */
interface RequestSeries {
  readonly operation: string;
  readonly protocol: string;
  readonly duration: Histogram;
  /** Counts by code, then by reason. */
  readonly outcomes: Map<string, Map<string, { value: number }>>;
}

/** Only served operations are expected. The limit keeps the number of series bounded if others ever appear. */
const MAX_OPERATIONS = 200;
const OTHER_OPERATION = "other";

/** Counts requests by outcome and measures the duration of those that are no streams. */
export class RequestMetrics {
  /** Series by full operation name, then by protocol. Methods of the same name in two services share their series. */
  readonly #byOperation = new Map<string, Map<string, RequestSeries>>();
  readonly #byShortName = new Map<string, Map<string, RequestSeries>>();

  /** Records a request: a few map lookups. */
  readonly record: AccessLog = ({ operation, protocol, code, durationMs, isStream }, reason) => {
    const { duration, outcomes } = this.#getSeries(operation, protocol);
    // A stream ends when its caller likes: its hours would hide how long answers take.
    if (isStream !== true) duration.observe(durationMs / 1000);
    let byReason = outcomes.get(code);
    if (byReason === undefined) {
      byReason = new Map();
      outcomes.set(code, byReason);
    }
    const count = byReason.get(reason);
    if (count === undefined) byReason.set(reason, { value: 1 });
    else count.value += 1;
  };

  toCounterSamples(): MetricSample[] {
    return this.#listSeries().flatMap(({ operation, protocol, outcomes }) =>
      [...outcomes].flatMap(([code, byReason]) =>
        [...byReason].map(([reason, { value }]) => ({ labels: { operation, protocol, code, reason }, value })),
      ),
    );
  }

  toDurationSamples(): MetricSample[] {
    return this.#listSeries().flatMap(({ operation, protocol, duration }) =>
      duration.toSamples(metricCatalogue.requestDuration.name, { operation, protocol }),
    );
  }

  #getSeries(name: string, protocol: string): RequestSeries {
    let byProtocol = this.#byOperation.get(name);
    if (byProtocol === undefined) {
      if (this.#byOperation.size >= MAX_OPERATIONS && name !== "") return this.#getSeries("", protocol);
      const operation = shortenOperation(name);
      byProtocol = this.#byShortName.get(operation) ?? new Map<string, RequestSeries>();
      this.#byOperation.set(name, byProtocol);
      this.#byShortName.set(operation, byProtocol);
    }
    let series = byProtocol.get(protocol);
    if (series === undefined) {
      const duration = new Histogram(REQUEST_DURATION_BUCKETS);
      series = { operation: shortenOperation(name), protocol, duration, outcomes: new Map() };
      byProtocol.set(protocol, series);
    }
    return series;
  }

  #listSeries(): RequestSeries[] {
    return [...this.#byShortName.values()].flatMap((byProtocol) => [...byProtocol.values()]);
  }
}

/** Returns the method name of `service/method`, and the path of a document unchanged. */
function shortenOperation(operation: string): string {
  if (operation === "") return OTHER_OPERATION;
  return operation.startsWith("/") ? operation : operation.slice(operation.lastIndexOf("/") + 1);
}
