/** The definition of a metric, independent of where its values come from. */
export interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  /** How the values of several workers are combined. */
  readonly aggregator: "sum" | "max" | "min";
}

const METRIC_PREFIX = "hop_gateway_";

type MetricFactory = (name: string, help: string, labels?: readonly string[]) => MetricDescription;
const createMetricFactory =
  (type: MetricDescription["type"], aggregator: MetricDescription["aggregator"]): MetricFactory =>
  (name, help, labels = []) => ({ name: METRIC_PREFIX + name, help, type, labels, aggregator });
const counter = createMetricFactory("counter", "sum");
const histogram = createMetricFactory("histogram", "sum");
/** Each worker has its share of the total. */
const summedGauge = createMetricFactory("gauge", "sum");
/** The worker with the highest or the lowest value stands for all. */
const maxGauge = createMetricFactory("gauge", "max");
const minGauge = createMetricFactory("gauge", "min");

/** Every metric defined by the service. Dashboards and alerts depend on the names and labels. */
export const metricCatalogue = {
  requests: counter("requests_total", "Requests that have been answered or canceled by the caller.", [
    ...["operation", "protocol", "code", "reason"],
  ]),
  requestDuration: histogram(
    "request_duration_seconds",
    "Time from receiving the headers of a request to the end of the response, without streaming calls.",
    [...["operation", "protocol"]],
  ),
  requestsInProgress: summedGauge("requests_in_progress", "Requests that have not been answered yet."),
  streamingCalls: summedGauge(
    "streaming_calls",
    "Open streaming calls: streams of operations, health watches and reflection.",
  ),
  connections: summedGauge("connections", "Open client connections."),
  http2Streams: summedGauge("http2_streams", "Open requests over HTTP/2."),
  pipelinedRequests: summedGauge(
    "pipelined_requests",
    "Unanswered HTTP/1.1 requests beyond the first of each connection.",
  ),
  waitingForTurn: summedGauge("waiting_for_turn", "Pieces of work that wait for the turn of their caller."),
  unsentBytes: summedGauge("unsent_bytes", "Bytes of responses that callers have not read, without shared ones."),
  receivedBytes: summedGauge("received_bytes", "Memory that incomplete request bodies take, in bytes."),
  limitCuts: counter("limit_cuts_total", "Requests refused, and streams and connections closed, at a limit.", [
    ...["cause"],
  ]),
  connectionErrors: counter(
    "connection_errors_total",
    "Connections closed because of malformed, excessive or missing data, by error code.",
    ["error_code"],
  ),
  upstreamRequests: counter("upstream_requests_total", "HTTP requests to RPC endpoints, by outcome.", [
    ...["network", "chain", "endpoint", "method", "outcome"],
  ]),
  upstreamCalls: counter(
    "upstream_calls_total",
    "Calls to RPC endpoints, those in batches included: what counts against RPC_BUDGET.",
    ["network", "chain", "endpoint"],
  ),
  rpcBudget: summedGauge(
    "rpc_budget_calls_per_second",
    "Calls per second to each RPC endpoint (RPC_BUDGET); 0: no limit.",
  ),
  rpcBudgetLimited: counter(
    "rpc_budget_limited_total",
    "Requests to RPC endpoints that waited or were refused because of RPC_BUDGET.",
    ["network", "chain", "endpoint", "outcome"],
  ),
  outvotedEndpoints: counter(
    "outvoted_total",
    "How often an RPC endpoint was outvoted: others agreed on another answer, and it repeated its own. By what was read.",
    ["network", "chain", "endpoint", "read"],
  ),
  quorumReads: counter(
    "quorum_reads_total",
    "Reads that several RPC endpoints answered: agreed, disputed (enough agreed, others not) or undecided.",
    ["network", "chain", "outcome"],
  ),
  quorumCalls: counter(
    "quorum_calls_total",
    "Calls to RPC endpoints for reads that are compared: for a common block (head), and for the answers (vote).",
    ["network", "chain", "purpose"],
  ),
  upstreamDuration: histogram(
    "upstream_request_duration_seconds",
    "Duration of HTTP requests to RPC endpoints, without aborted requests.",
    [...["network", "chain"]],
  ),
  lookupRequests: counter(
    "lookup_requests_total",
    "Requests to RPC endpoints that lookups of transfers have spent, by what they read.",
    ["purpose"],
  ),
  budgetsExhausted: counter(
    "budgets_exhausted_total",
    "Lookups of transfers that were refused a request, by whose budget was spent: lookup, caller or process.",
    ["budget"],
  ),
  withdrawalChecks: counter(
    "withdrawal_checks_failed_total",
    "Withdrawals that were not returned because the chains contradict themselves, by the check that failed; index: it was wrong, and the logs were searched.",
    ["check"],
  ),
  endpointState: maxGauge("endpoint_state", "1 for the current state of an RPC endpoint, 0 for the other states.", [
    ...["network", "chain", "endpoint", "state"],
  ]),
  headAge: minGauge("chain_head_age_seconds", "Age of the latest known block of a chain.", ["network", "chain"]),
  chainStalled: maxGauge(
    "chain_stalled",
    "1 for a chain whose newest block is older than its limit, so that quotes on its routes are refused, otherwise 0.",
    ["network", "chain"],
  ),
  clockOffset: maxGauge(
    "clock_offset_seconds",
    "Right time less that of this machine, by the headers Date of endpoints and the blocks; 0 below five seconds.",
  ),
  cctpBurnLimit: minGauge(
    "cctp_burn_limit_usdc",
    "The most that one message of Circle's CCTP V1 burns on a chain, in USDC; 0: no transfer of USDC can be sent.",
    ["chain"],
  ),
  headNumber: maxGauge("chain_head_number", "Number of the latest known block of a chain.", [...["network", "chain"]]),
  sourceState: maxGauge("source_state", "1 for the current state of an off-chain source, 0 for the other states.", [
    ...["source", "state"],
  ]),
  sourceAge: maxGauge(
    "source_age_seconds",
    "Time since the last successful read of an off-chain source; for prices, since they were published.",
    ["source"],
  ),
  priceDifference: maxGauge(
    "price_difference_ratio",
    "Difference between the prices of a token in its first two sources, relative to the second; 0.02 is 2 %.",
    ["token"],
  ),
  priceDistrusted: maxGauge(
    "price_distrusted",
    "1 for a token whose preferred source is not believed: its price jumped, and no other source confirms it.",
    ["token"],
  ),
  priceFeedRefused: maxGauge("price_feed_refused", "1 for a Chainlink feed whose last answer was refused, by reason.", [
    ...["token", "reason"],
  ]),
  quoteChainStateAge: histogram(
    "quote_chain_state_age_seconds",
    "Age of the chain state of a quote when the quote is served.",
  ),
  batchResults: counter("batch_results_total", "Results of batches of quotes, by reason; empty for a quote.", [
    "reason",
  ]),
  chainStateReads: counter("chain_state_reads_total", "Reads of the chain state for quotes, by outcome.", ["outcome"]),
  // Workers use the same routes.
  activeRoutes: maxGauge("active_routes", "Routes in recent use, whose chain state is refreshed periodically."),
  watches: summedGauge("watches", "Open watches of transfers."),
  followedTransfers: summedGauge(
    "followed_transfers",
    "Distinct transfers and transactions that are watched: those that are known, and those that no source has seen.",
    ["state"],
  ),
  watchedAccounts: summedGauge("watched_accounts", "Distinct accounts that are watched."),
  watchPolls: counter("watch_polls_total", "Polls of the chains for watched transfers, by outcome.", [
    ...["network", "chain", "outcome"],
  ]),
  watchEvents: counter("watch_events_total", "Messages of watches, by what they are.", ["event"]),
  // A worker without a connection is a problem even if the others have one.
  redisConnected: minGauge(
    "redis_connected",
    "1 while the process is connected to the Redis of SHARED_STATE, otherwise 0.",
  ),
  redisCommands: counter(
    "redis_commands_total",
    "Commands to Redis by result. refused: replied with an error; skipped: not sent, since Redis is out of reach or slow.",
    ["result"],
  ),
  indexLag: maxGauge("index_lag_blocks", "Number of blocks that the transfer index is behind a chain.", ["chain"]),
  indexDatabaseUp: minGauge("index_database_up", "1 while PostgreSQL answers; 0 while statuses come from the chains."),
  indexDatabaseConnections: summedGauge(
    "index_database_connections",
    "Connections to PostgreSQL by use, and requests that wait for one.",
    ["pool", "state"],
  ),
  indexDatabaseFailures: counter(
    "index_database_failures_total",
    "Failed statements and connections, by SQLSTATE or the code of a system error.",
    ["code"],
  ),
  indexLeasesHeld: summedGauge(
    "index_leases_held",
    "Leases of the index in PostgreSQL that this process holds: to follow the chains, to read the history of one.",
    ["lease"],
  ),
  concurrencyLimit: summedGauge(
    "concurrency_limit",
    "Current limit of concurrent expensive operations (on-chain transfer searches and SDK quotes).",
  ),
  inFlight: summedGauge("in_flight", "Expensive operations in progress or queued."),
  requestsPending: summedGauge("requests_pending", "Requests that wait for an upstream."),
  batchQuotesPending: summedGauge("batch_quotes_pending", "Quotes of batches that wait for an upstream or their turn."),
  upstreamRequestsInFlight: summedGauge(
    "upstream_requests_in_flight",
    "HTTP requests to configured RPC endpoints that wait for a response.",
  ),
  customEndpoints: summedGauge("custom_endpoints", "Open RPC endpoints that were named by callers."),
  logLinesLost: counter("log_lines_lost_total", "Log lines that could not be written, by reason.", ["reason"]),
  buildInfo: maxGauge("build_info", "1, labeled with the version of the service and of Node.js.", [
    ...["version", "node"],
  ]),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Upper bounds in seconds: from a cached response to the maximum request timeout. */
export const REQUEST_DURATION_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;
/** Upper bounds in seconds for requests to RPC endpoints, which always cross a network. */
export const RPC_DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10] as const;
/** Upper bounds in seconds for the age of chain state: beyond 30 s quotes are refused by default. */
export const QUOTE_AGE_BUCKETS = [0.5, 1, 2, 4, 8, 12, 16, 24, 30, 60] as const;
