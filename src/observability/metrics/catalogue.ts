/** What a metric is, whoever keeps its values. */
export interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  /** How the values of several processes become one. */
  readonly aggregator: "sum" | "max" | "min";
}

const prefix = "hop_gateway_";

type Naming = (name: string, help: string, labels?: readonly string[]) => MetricDescription;
const as =
  (type: MetricDescription["type"], aggregator: MetricDescription["aggregator"]): Naming =>
  (name, help, labels = []) => ({ name: prefix + name, help, type, labels, aggregator });
const counter = as("counter", "sum");
const histogram = as("histogram", "sum");
/** Of which each process has its share. */
const share = as("gauge", "sum");
/** Of which the process that sees the worst speaks for all, or the best. */
const highest = as("gauge", "max");
const lowest = as("gauge", "min");

/** Every metric of our own. Their names and labels are what dashboards and alerts stand on. */
export const catalogue = {
  requests: counter("requests_total", "Requests whose answer is out or whose caller is gone.", [
    ...["operation", "protocol", "code", "reason"],
  ]),
  requestDuration: histogram("request_duration_seconds", "From a request's headers to the end of its answer.", [
    ...["operation", "protocol"],
  ]),
  requestsInProgress: share("requests_in_progress", "Requests whose answer is not out yet."),
  connections: share("connections", "Connections of callers that are open."),
  sessionFaults: counter("session_faults_total", "Connections refused for what came on them, or did not.", ["fault"]),
  upstreamRequests: counter("upstream_requests_total", "HTTP requests to RPC endpoints, by how they ended.", [
    ...["network", "chain", "endpoint", "method", "outcome"],
  ]),
  upstreamDuration: histogram(
    "upstream_request_duration_seconds",
    "HTTP requests to RPC endpoints, but for those for which nobody waited.",
    [...["network", "chain"]],
  ),
  endpointState: highest("endpoint_state", "1 for the state in which an RPC endpoint is, 0 for the others.", [
    ...["network", "chain", "endpoint", "state"],
  ]),
  headAge: lowest("chain_head_age_seconds", "Age of the latest block that is known of a chain.", ["network", "chain"]),
  headNumber: highest("chain_head_number", "Number of the latest block that is known of a chain.", [
    ...["network", "chain"],
  ]),
  sourceState: highest("source_state", "1 for the state in which a source is, 0 for the others.", ["source", "state"]),
  sourceAge: highest("source_age_seconds", "Age of what a source gave last; of prices, since they were made.", [
    "source",
  ]),
  quoteFactsAge: histogram("quote_facts_age_seconds", "Age of what was read from the chains when a quote is given."),
  quoteVerifications: counter("quote_verifications_total", "Quotes that the SDK computed again, by what it found.", [
    "verdict",
  ]),
  snapshotReads: counter("snapshot_reads_total", "Reads of what quotes need of a chain, by how they ended.", [
    "outcome",
  ]),
  routesKeptFresh: share(
    "routes_kept_fresh",
    "Routes whose facts are read again and again, as somebody asks for them.",
  ),
  indexLag: highest("index_lag_blocks", "By how many blocks the index of transfers is behind a chain.", ["chain"]),
  gateLimit: share("gate_limit", "Most expensive works that go on at a time now."),
  gateInside: share("gate_inside", "Expensive works that go on or stand in line."),
  callsWaiting: share("calls_waiting", "Calls that wait for something that is not at hand."),
  customEndpoints: share("custom_endpoints", "RPC endpoints that callers named and have open."),
  buildInfo: highest("build_info", "1, for the version of the service and of Node.js.", ["version", "node"]),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Upper bounds in seconds: from an answer that was at hand to the longest that a request may take. */
export const durationBuckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;
/** The same for exchanges with endpoints, none of which is quicker. */
export const upstreamBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5] as const;
/** Ages of facts: up to that at which no quote is given any more, by default. */
export const ageBuckets = [0.5, 1, 2, 4, 8, 12, 16, 24, 30, 60] as const;
