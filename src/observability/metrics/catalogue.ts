/** What a metric is, whoever keeps its values. */
export interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  /** How the values of several processes become one. */
  readonly aggregator: "sum" | "max" | "min";
}

const METRIC_PREFIX = "hop_gateway_";

type MetricFactory = (name: string, help: string, labels?: readonly string[]) => MetricDescription;
const createMetricFactory =
  (type: MetricDescription["type"], aggregator: MetricDescription["aggregator"]): MetricFactory =>
  (name, help, labels = []) => ({ name: METRIC_PREFIX + name, help, type, labels, aggregator });
const counter = createMetricFactory("counter", "sum");
const histogram = createMetricFactory("histogram", "sum");
/** Of which each process has its share. */
const summedGauge = createMetricFactory("gauge", "sum");
/** Of which the process that sees the worst speaks for all, or the best. */
const maxGauge = createMetricFactory("gauge", "max");
const minGauge = createMetricFactory("gauge", "min");

/** Every metric of our own. Their names and labels are what dashboards and alerts stand on. */
export const metricCatalogue = {
  requests: counter("requests_total", "Requests whose answer is out or whose caller is gone.", [
    ...["operation", "protocol", "code", "reason"],
  ]),
  requestDuration: histogram("request_duration_seconds", "From a request's headers to the end of its answer.", [
    ...["operation", "protocol"],
  ]),
  requestsInProgress: summedGauge("requests_in_progress", "Requests whose answer is not out yet."),
  connections: summedGauge("connections", "Connections of callers that are open."),
  connectionErrors: counter("connection_errors_total", "Connections refused for what came on them, or did not.", [
    "error_code",
  ]),
  upstreamRequests: counter("upstream_requests_total", "HTTP requests to RPC endpoints, by how they ended.", [
    ...["network", "chain", "endpoint", "method", "outcome"],
  ]),
  upstreamDuration: histogram(
    "upstream_request_duration_seconds",
    "HTTP requests to RPC endpoints, but for those for which nobody waited.",
    [...["network", "chain"]],
  ),
  endpointState: maxGauge("endpoint_state", "1 for the state in which an RPC endpoint is, 0 for the others.", [
    ...["network", "chain", "endpoint", "state"],
  ]),
  headAge: minGauge("chain_head_age_seconds", "Age of the latest block that is known of a chain.", [
    "network",
    "chain",
  ]),
  headNumber: maxGauge("chain_head_number", "Number of the latest block that is known of a chain.", [
    ...["network", "chain"],
  ]),
  sourceState: maxGauge("source_state", "1 for the state in which a source is, 0 for the others.", ["source", "state"]),
  sourceAge: maxGauge("source_age_seconds", "Age of what a source gave last; of prices, since they were made.", [
    "source",
  ]),
  quoteChainStateAge: histogram(
    "quote_chain_state_age_seconds",
    "Age of what was read from the chains when a quote is given.",
  ),
  quoteComparisons: counter("quote_comparisons_total", "Quotes that the SDK computed again, by what it found.", [
    "result",
  ]),
  chainStateReads: counter("chain_state_reads_total", "Reads of what quotes need of a chain, by how they ended.", [
    "outcome",
  ]),
  activeRoutes: summedGauge("active_routes", "Routes whose facts are read again and again, as somebody asks for them."),
  indexLag: maxGauge("index_lag_blocks", "By how many blocks the index of transfers is behind a chain.", ["chain"]),
  concurrencyLimit: summedGauge("concurrency_limit", "Most expensive works that go on at a time now."),
  inFlight: summedGauge("in_flight", "Expensive works that go on or stand in line."),
  requestsPending: summedGauge("requests_pending", "Calls that wait for something that is not at hand."),
  customEndpoints: summedGauge("custom_endpoints", "RPC endpoints that callers named and have open."),
  buildInfo: maxGauge("build_info", "1, for the version of the service and of Node.js.", ["version", "node"]),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Upper bounds in seconds: from an answer that was at hand to the longest that a request may take. */
export const REQUEST_DURATION_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;
/** The same for exchanges with endpoints, none of which is quicker. */
export const RPC_DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5] as const;
/** Ages of facts: up to that at which no quote is given any more, by default. */
export const QUOTE_AGE_BUCKETS = [0.5, 1, 2, 4, 8, 12, 16, 24, 30, 60] as const;
