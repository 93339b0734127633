import type { OverloadLoad } from "../../http/admission/overload-manager.js";
import type { AdaptiveLimiter } from "../../resilience/adaptive-limiter.js";
import type { RedisStore } from "../../shared-state/redis-store.js";
import type { TransferWatcher } from "../../transfers/watch/transfer-watcher.js";
import type { DependencyStatus } from "../dependency-status.js";

/** One sample of a metric in prom-client's format. */
export interface MetricSample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Name of the series, if it differs from the metric's name. */
  readonly metricName?: string;
}

/** The current load of the service. */
export interface ServiceLoad extends OverloadLoad {
  readonly streamingCalls: number;
  readonly limiter: ReturnType<AdaptiveLimiter["load"]>;
  readonly pendingRequests: number;
  readonly pendingBatchQuotes: number;
  /** HTTP requests to configured RPC endpoints that wait for a response. */
  readonly upstreamRequests: number;
  readonly customEndpoints: number;
  readonly activeRoutes: number;
  readonly watches: ReturnType<TransferWatcher<unknown>["counts"]>;
  /** Calls per second that this process may send to each endpoint; 0: no limit. */
  readonly callsPerSecond: number;
  /** undefined: there is no Redis. */
  readonly redis: ReturnType<RedisStore["stats"]> | undefined;
}

/** What metrics are read from at each scrape: getters, but for the version. */
export interface MetricSources {
  readonly load: ServiceLoad;
  readonly status: DependencyStatus;
  /** Number of lost log lines by reason. */
  readonly lostLogLines: Readonly<Record<string, number>>;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly version: string;
}

/** Returns the samples of a metric, or the value of one without labels; undefined: there is none. */
type ReadMetric = (sources: MetricSources) => number | readonly MetricSample[] | undefined;

/** The definition of a metric. */
export interface MetricDescription {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  /** How the values of several workers are combined. */
  readonly aggregator: "sum" | "max" | "min";
  /** undefined: it is counted or observed when something happens. */
  readonly read: ReadMetric | undefined;
}

const METRIC_PREFIX = "hop_gateway_";
const ENDPOINT_STATES = ["ok", "failing", "cooldown", "lagging", "outvoted", "unknown"] as const;
const SOURCE_STATES = ["ok", "failing", "unknown", "off"] as const;

const createEventMetricFactory =
  (type: MetricDescription["type"]) =>
  (name: string, help: string, labels: readonly string[] = []): MetricDescription => {
    return { name: METRIC_PREFIX + name, help, type, labels, aggregator: "sum", read: undefined };
  };
const counter = createEventMetricFactory("counter");
const histogram = createEventMetricFactory("histogram");

const createReadMetricFactory =
  (type: MetricDescription["type"], aggregator: MetricDescription["aggregator"]) =>
  (name: string, help: string, read: ReadMetric, labels: readonly string[] = []): MetricDescription => {
    return { name: METRIC_PREFIX + name, help, type, labels, aggregator, read };
  };
const readCounter = createReadMetricFactory("counter", "sum");
/** Each worker has its share of the total. */
const summedGauge = createReadMetricFactory("gauge", "sum");
/** The worker with the highest or the lowest value stands for all. */
const maxGauge = createReadMetricFactory("gauge", "max");
const minGauge = createReadMetricFactory("gauge", "min");

/** The counters that count events by their labels. */
export const eventCounters = {
  connectionErrors: counter(
    "connection_errors_total",
    "Connections closed because of malformed, excessive or missing data, by error code.",
    ["error_code"],
  ),
  upstreamRequests: counter("upstream_requests_total", "HTTP requests to RPC endpoints, by outcome.", [
    "network",
    "chain",
    "endpoint",
    "method",
    "outcome",
  ]),
  upstreamCalls: counter(
    "upstream_calls_total",
    "Calls to RPC endpoints, those in batches included: what counts against RPC_BUDGET.",
    ["network", "chain", "endpoint"],
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
  batchResults: counter("batch_results_total", "Results of batches of quotes, by reason; empty for a quote.", [
    "reason",
  ]),
  chainStateReads: counter("chain_state_reads_total", "Reads of the chain state for quotes, by outcome.", ["outcome"]),
  watchPolls: counter("watch_polls_total", "Polls of the chains for watched transfers, by outcome.", [
    "network",
    "chain",
    "outcome",
  ]),
  watchEvents: counter("watch_events_total", "Messages of watches, by what they are.", ["event"]),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Every metric defined by the service. Dashboards and alerts depend on the names and labels. */
export const metricCatalogue = {
  ...eventCounters,
  requests: counter("requests_total", "Requests that have been answered or canceled by the caller.", [
    "operation",
    "protocol",
    "code",
    "reason",
  ]),
  requestDuration: histogram(
    "request_duration_seconds",
    "Time from receiving the headers of a request to the end of the response, without streaming calls.",
    ["operation", "protocol"],
  ),
  requestsInProgress: summedGauge(
    "requests_in_progress",
    "Requests that have not been answered yet.",
    ({ load }) => load.requests,
  ),
  streamingCalls: summedGauge(
    "streaming_calls",
    "Open streaming calls: streams of operations, health watches and reflection.",
    ({ load }) => load.streamingCalls,
  ),
  connections: summedGauge("connections", "Open client connections.", ({ load }) => load.connections),
  http2Streams: summedGauge("http2_streams", "Open requests over HTTP/2.", ({ load }) => load.openStreams),
  pipelinedRequests: summedGauge(
    "pipelined_requests",
    "Unanswered HTTP/1.1 requests beyond the first of each connection.",
    ({ load }) => load.pipelinedRequests,
  ),
  waitingForTurn: summedGauge(
    "waiting_for_turn",
    "Pieces of work that wait for the turn of their caller.",
    ({ load }) => load.waitingForTurn,
  ),
  unsentBytes: summedGauge(
    "unsent_bytes",
    "Bytes of responses that callers have not read, without shared ones.",
    ({ load }) => load.unsentBytes,
  ),
  receivedBytes: summedGauge(
    "received_bytes",
    "Memory that incomplete request bodies take, in bytes.",
    ({ load }) => load.receivedBytes,
  ),
  limitCuts: readCounter(
    "limit_cuts_total",
    "Requests refused, and streams and connections closed, at a limit.",
    ({ load }) => toLabeledSamples("cause", Object.entries(load.cuts)),
    ["cause"],
  ),
  rpcBudget: summedGauge(
    "rpc_budget_calls_per_second",
    "Calls per second to each RPC endpoint (RPC_BUDGET); 0: no limit.",
    ({ load }) => load.callsPerSecond,
  ),
  upstreamDuration: histogram(
    "upstream_request_duration_seconds",
    "Duration of HTTP requests to RPC endpoints, without aborted requests.",
    ["network", "chain"],
  ),
  endpointState: maxGauge(
    "endpoint_state",
    "1 for the current state of an RPC endpoint, 0 for the other states.",
    ({ status }) =>
      status.chains.flatMap(({ network, chain, endpoints }) =>
        endpoints.flatMap(({ endpoint, state }) =>
          createStateSamples(ENDPOINT_STATES, state, { network, chain, endpoint }),
        ),
      ),
    ["network", "chain", "endpoint", "state"],
  ),
  headAge: minGauge(
    "chain_head_age_seconds",
    "Age of the latest known block of a chain.",
    ({ status, now }) => readHeads(status, ({ timestamp }) => Math.max(0, now / 1000 - timestamp)),
    ["network", "chain"],
  ),
  chainStalled: maxGauge(
    "chain_stalled",
    "1 for a chain whose newest block is older than its limit, so that quotes on its routes are refused, otherwise 0.",
    ({ status }) =>
      status.chains.map(({ network, chain, isStalled }) => ({ labels: { network, chain }, value: isStalled ? 1 : 0 })),
    ["network", "chain"],
  ),
  clockOffset: maxGauge(
    "clock_offset_seconds",
    "Right time less that of this machine, by the headers Date of endpoints and the blocks; 0 below five seconds.",
    ({ status }) => status.clock && status.clock.offsetMs / 1000,
  ),
  cctpBurnLimit: minGauge(
    "cctp_burn_limit_usdc",
    "The most that one message of Circle's CCTP V1 burns on a chain, in USDC; 0: no transfer of USDC can be sent.",
    ({ status }) => toLabeledSamples("chain", status.burnLimitsUsdc),
    ["chain"],
  ),
  headNumber: maxGauge(
    "chain_head_number",
    "Number of the latest known block of a chain.",
    ({ status }) => readHeads(status, ({ number }) => number),
    ["network", "chain"],
  ),
  sourceState: maxGauge(
    "source_state",
    "1 for the current state of an off-chain source, 0 for the other states.",
    ({ status }) => status.sources.flatMap(({ source, state }) => createStateSamples(SOURCE_STATES, state, { source })),
    ["source", "state"],
  ),
  sourceAge: maxGauge(
    "source_age_seconds",
    "Time since the last successful read of an off-chain source; for prices, since they were published.",
    ({ status }) =>
      status.sources.flatMap(({ source, ageMs }) =>
        ageMs === undefined ? [] : [{ labels: { source }, value: ageMs / 1000 }],
      ),
    ["source"],
  ),
  priceDifference: maxGauge(
    "price_difference_ratio",
    "Difference between the prices of a token in its first two sources, relative to the second; 0.02 is 2 %.",
    ({ status }) =>
      status.prices.differences.map(({ token, difference }) => ({ labels: { token }, value: difference })),
    ["token"],
  ),
  priceDistrusted: maxGauge(
    "price_distrusted",
    "1 for a token whose preferred source is not believed: its price jumped, and no other source confirms it.",
    ({ status }) => status.prices.distrustedTokens.map((token) => ({ labels: { token }, value: 1 })),
    ["token"],
  ),
  priceFeedRefused: maxGauge(
    "price_feed_refused",
    "1 for a Chainlink feed whose last answer was refused, by reason.",
    ({ status }) => status.prices.refusedFeeds.map((labels) => ({ labels: { ...labels }, value: 1 })),
    ["token", "reason"],
  ),
  quoteChainStateAge: histogram(
    "quote_chain_state_age_seconds",
    "Age of the chain state of a quote when the quote is served.",
  ),
  // Workers use the same routes.
  activeRoutes: maxGauge(
    "active_routes",
    "Routes in recent use, whose chain state is refreshed periodically.",
    ({ load }) => load.activeRoutes,
  ),
  watches: summedGauge("watches", "Open watches of transfers.", ({ load }) => load.watches.watches),
  followedTransfers: summedGauge(
    "followed_transfers",
    "Distinct transfers and transactions that are watched: those that are known, and those that no source has seen.",
    ({ load: { watches } }) => [
      { labels: { state: "known" }, value: watches.followed - watches.unknown },
      { labels: { state: "unknown" }, value: watches.unknown },
    ],
    ["state"],
  ),
  watchedAccounts: summedGauge(
    "watched_accounts",
    "Distinct accounts that are watched.",
    ({ load }) => load.watches.accounts,
  ),
  // A worker without a connection is a problem even if the others have one.
  redisConnected: minGauge(
    "redis_connected",
    "1 while the process is connected to the Redis of SHARED_STATE, otherwise 0.",
    ({ load }) => load.redis && Number(load.redis.isConnected),
  ),
  redisCommands: readCounter(
    "redis_commands_total",
    "Commands to Redis by result. refused: replied with an error; skipped: not sent, since Redis is out of reach or slow.",
    ({ load }) => toLabeledSamples("result", Object.entries(load.redis?.commands ?? {})),
    ["result"],
  ),
  indexLag: maxGauge(
    "index_lag_blocks",
    "Number of blocks that the transfer index is behind a chain.",
    ({ status }) => (status.index ?? []).map(({ chain, lagBlocks }) => ({ labels: { chain }, value: lagBlocks })),
    ["chain"],
  ),
  indexDatabaseUp: minGauge(
    "index_database_up",
    "1 while PostgreSQL answers; 0 while statuses come from the chains.",
    ({ status }) => status.indexDatabase && Number(status.indexDatabase.isAvailable),
  ),
  indexDatabaseConnections: summedGauge(
    "index_database_connections",
    "Connections to PostgreSQL by use, and requests that wait for one.",
    ({ status }) =>
      Object.entries(status.indexDatabase?.connections ?? {}).flatMap(([pool, usage]) =>
        Object.entries(usage).map(([state, value]) => ({ labels: { pool, state }, value })),
      ),
    ["pool", "state"],
  ),
  indexDatabaseFailures: readCounter(
    "index_database_failures_total",
    "Failed statements and connections, by SQLSTATE or the code of a system error.",
    ({ status }) => toLabeledSamples("code", status.indexDatabase?.failures),
    ["code"],
  ),
  indexLeasesHeld: summedGauge(
    "index_leases_held",
    "Leases of the index in PostgreSQL that this process holds: to follow the chains, to read the history of one.",
    ({ status }) => toLabeledSamples("lease", Object.entries(status.indexDatabase?.leases ?? {})),
    ["lease"],
  ),
  concurrencyLimit: summedGauge(
    "concurrency_limit",
    "Current limit of concurrent expensive operations (on-chain transfer searches and SDK quotes).",
    ({ load }) => load.limiter.limit,
  ),
  inFlight: summedGauge(
    "in_flight",
    "Expensive operations in progress or queued.",
    ({ load }) => load.limiter.inFlight,
  ),
  requestsPending: summedGauge(
    "requests_pending",
    "Requests that wait for an upstream.",
    ({ load }) => load.pendingRequests,
  ),
  batchQuotesPending: summedGauge(
    "batch_quotes_pending",
    "Quotes of batches that wait for an upstream or their turn.",
    ({ load }) => load.pendingBatchQuotes,
  ),
  upstreamRequestsInFlight: summedGauge(
    "upstream_requests_in_flight",
    "HTTP requests to configured RPC endpoints that wait for a response.",
    ({ load }) => load.upstreamRequests,
  ),
  customEndpoints: summedGauge(
    "custom_endpoints",
    "Open RPC endpoints that were named by callers.",
    ({ load }) => load.customEndpoints,
  ),
  logLinesLost: readCounter(
    "log_lines_lost_total",
    "Log lines that could not be written, by reason.",
    ({ lostLogLines }) => toLabeledSamples("reason", Object.entries(lostLogLines)),
    ["reason"],
  ),
  buildInfo: maxGauge(
    "build_info",
    "1, labeled with the version of the service and of Node.js.",
    ({ version }) => [{ labels: { version, node: process.version }, value: 1 }],
    ["version", "node"],
  ),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Upper bounds in seconds: from a cached response to the maximum request timeout. */
export const REQUEST_DURATION_BUCKETS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;
/** Upper bounds in seconds for requests to RPC endpoints, which always cross a network. */
export const RPC_DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2.5, 5, 10] as const;
/** Upper bounds in seconds for the age of chain state: beyond 30 s quotes are refused by default. */
export const QUOTE_AGE_BUCKETS = [0.5, 1, 2, 4, 8, 12, 16, 24, 30, 60] as const;

/** Returns one sample for each entry, labeled with its key. */
function toLabeledSamples(label: string, entries: Iterable<readonly [string, number]> | undefined): MetricSample[] {
  return Array.from(entries ?? [], ([key, value]) => ({ labels: { [label]: key }, value }));
}

/** Returns one sample per state: 1 for the current state, 0 for the others. */
function createStateSamples(
  states: readonly string[],
  current: string,
  labels: MetricSample["labels"],
): MetricSample[] {
  return states.map((state) => ({ labels: { ...labels, state }, value: Number(state === current) }));
}

type ChainHead = NonNullable<DependencyStatus["chains"][number]["head"]>;

/** Returns one sample for each chain whose head is known. */
function readHeads({ chains }: DependencyStatus, getValue: (head: ChainHead) => number): MetricSample[] {
  return chains.flatMap(({ network, chain, head }) =>
    head === undefined ? [] : [{ labels: { network, chain }, value: getValue(head) }],
  );
}
