import perfHooks from "node:perf_hooks";
import { describe, expect, test, vi } from "vitest";
import type { AccessLogEntry } from "../../../../src/http/request/request-context.js";
import type { DependencyStatus } from "../../../../src/observability/dependency-status.js";
import type { MetricSources } from "../../../../src/observability/metrics/catalogue.js";
import { Metrics, RequestMetrics } from "../../../../src/observability/metrics/metrics.js";

const NOW = 1_795_000_000_000;
const endpoint = (name: string, state: "ok" | "lagging") => ({ endpoint: name, state, head: undefined });
const state: DependencyStatus = {
  chains: [
    {
      network: "mainnet",
      chain: "optimism",
      chainId: 10,
      endpoints: [endpoint("optimism[1]#a1b2c3", "ok"), endpoint("optimism[2]#d4e5f6", "lagging")],
      head: { number: 77, timestamp: NOW / 1000 - 12, observedAt: 0 },
      isStalled: false,
      isChecked: true,
      lastUsedAt: undefined,
    },
  ],
  sources: [
    { source: "prices", state: "failing", ageMs: 2_500 },
    { source: "explorer", state: "off", ageMs: undefined },
  ],
  index: [{ chain: "optimism", lagBlocks: 3 }],
  indexDatabase: {
    isAvailable: true,
    connections: { read: { active: 1, idle: 2, waiting: 0 }, write: { active: 0, idle: 0, waiting: 0 } },
    failures: new Map([["57014", 4]]),
    leases: { follow: 1, history: 0 },
  },
  burnLimitsUsdc: new Map([["optimism", 9_999.5]]),
  prices: {
    differences: [{ token: "ETH", difference: 0.25 }],
    distrustedTokens: ["DAI"],
    refusedFeeds: [{ token: "SNX", reason: "stale" }],
  },
};

function setup() {
  let elapsedMs = 0;
  let loads = 0;
  const sources: MetricSources = {
    version: "1.2.3",
    status: state,
    get load() {
      loads += 1;
      return {
        connections: 1,
        requests: 2,
        streamingCalls: 8,
        openStreams: 9,
        pipelinedRequests: 10,
        waitingForTurn: 40,
        unsentBytes: 11,
        receivedBytes: 12,
        cuts: { open_streams: 12, unsent_bytes: 13, event_loop: 0, received_bytes: 0, response_deadline: 0 },
        limiter: { limit: 3, inFlight: 4 },
        pendingRequests: 5,
        pendingBatchQuotes: 15,
        upstreamRequests: 5,
        customEndpoints: 6,
        activeRoutes: 7,
        watches: { watches: 14, followed: 15, unknown: 4, accounts: 6 },
        callsPerSecond: 9.5,
        redis: { isConnected: true, commands: { ok: 15, refused: 0, timed_out: 0, skipped: 0 } },
      };
    },
    lostLogLines: { reader_too_slow: 0, write_failed: 9 },
    now: NOW,
  };
  const metrics = new Metrics(sources, () => elapsedMs);
  const lines = async (start: string) =>
    (await metrics.renderText()).split("\n").filter((line) => line.startsWith(`hop_gateway_${start}`));
  return { metrics, lines, loads: () => loads, pass: (ms: number) => (elapsedMs += ms) };
}

test("reads the current load only at a scrape", async () => {
  const { lines, loads } = setup();
  expect(loads()).toBe(0);
  const names = [
    "connections",
    "requests_in_progress",
    "concurrency_limit",
    "in_flight",
    "requests_pending",
    "upstream_requests_in_flight",
    "custom_endpoints",
    "active_routes",
    "streaming_calls",
    "rpc_budget_calls_per_second",
    "http2_streams",
    "pipelined_requests",
    "waiting_for_turn",
    "unsent_bytes",
    "limit_cuts_total",
    "redis",
  ];
  const shown = (await Promise.all(names.map(lines))).flat();
  expect(shown.map((line) => line.replace("hop_gateway_", ""))).toEqual([
    ...["connections 1", "requests_in_progress 2", "concurrency_limit 3", "in_flight 4", "requests_pending 5"],
    "upstream_requests_in_flight 5",
    ...["custom_endpoints 6", "active_routes 7", "streaming_calls 8", "rpc_budget_calls_per_second 9.5"],
    ...["http2_streams 9", "pipelined_requests 10", "waiting_for_turn 40", "unsent_bytes 11"],
    ...['limit_cuts_total{cause="open_streams"} 12', 'limit_cuts_total{cause="unsent_bytes"} 13'],
    ...["event_loop", "received_bytes", "response_deadline"].map((cause) => `limit_cuts_total{cause="${cause}"} 0`),
    "redis_connected 1",
    ...["ok} 15", "refused} 0", "timed_out} 0", "skipped} 0"].map(
      (result) => `redis_commands_total{result="${result.replace("}", '"}')}`,
    ),
  ]);
  expect(loads()).toBeGreaterThan(0);
});

test("reports 1 for the current state and 0 for every other state", async () => {
  const { lines } = setup();
  const ofOptimism = 'network="mainnet",chain="optimism"';
  const statesOf = (endpointId: string, current: string) =>
    ["ok", "failing", "cooldown", "lagging", "outvoted", "unknown"].map(
      (name) =>
        `hop_gateway_endpoint_state{${ofOptimism},endpoint="${endpointId}",state="${name}"} ${name === current ? 1 : 0}`,
    );
  expect(await lines("endpoint_state")).toEqual([
    ...statesOf("optimism[1]#a1b2c3", "ok"),
    ...statesOf("optimism[2]#d4e5f6", "lagging"),
  ]);
  expect((await lines("source_state")).filter((line) => line.endsWith(" 1"))).toEqual([
    'hop_gateway_source_state{source="prices",state="failing"} 1',
    'hop_gateway_source_state{source="explorer",state="off"} 1',
  ]);
  expect(await lines("cctp_")).toEqual(['hop_gateway_cctp_burn_limit_usdc{chain="optimism"} 9999.5']);
  expect(await lines("price_")).toEqual([
    'hop_gateway_price_difference_ratio{token="ETH"} 0.25',
    'hop_gateway_price_distrusted{token="DAI"} 1',
    'hop_gateway_price_feed_refused{token="SNX",reason="stale"} 1',
  ]);
  expect(await lines("source_age")).toEqual(['hop_gateway_source_age_seconds{source="prices"} 2.5']);
  expect(await lines("chain_head")).toEqual([
    `hop_gateway_chain_head_age_seconds{${ofOptimism}} 12`,
    `hop_gateway_chain_head_number{${ofOptimism}} 77`,
  ]);
  expect(await lines("index_lag")).toEqual(['hop_gateway_index_lag_blocks{chain="optimism"} 3']);
  expect(await lines("index_database")).toEqual([
    "hop_gateway_index_database_up 1",
    'hop_gateway_index_database_connections{pool="read",state="active"} 1',
    'hop_gateway_index_database_connections{pool="read",state="idle"} 2',
    'hop_gateway_index_database_connections{pool="read",state="waiting"} 0',
    ...["active", "idle", "waiting"].map(
      (use) => `hop_gateway_index_database_connections{pool="write",state="${use}"} 0`,
    ),
    'hop_gateway_index_database_failures_total{code="57014"} 4',
  ]);
  expect(await lines("index_leases")).toEqual([
    'hop_gateway_index_leases_held{lease="follow"} 1',
    'hop_gateway_index_leases_held{lease="history"} 0',
  ]);
});

test("counts RPC requests by method and outcome and measures those that were not aborted", async () => {
  const { metrics, lines, pass } = setup();
  const request = { network: "mainnet", chain: "optimism", endpoint: "optimism[1]#a1b2c3", calls: 1 };
  for (const [method, outcome] of [
    ["eth_call", "ok"],
    ["eth_call", "aborted"],
    ["debug_everything", "rpc_error"],
  ] as const) {
    const onEnd = metrics.onEndpointRequest({ ...request, method });
    pass(40);
    onEnd(outcome);
  }
  const labels = 'network="mainnet",chain="optimism",endpoint="optimism[1]#a1b2c3"';
  expect(await lines("upstream_requests_total")).toEqual([
    `hop_gateway_upstream_requests_total{${labels},method="eth_call",outcome="ok"} 1`,
    `hop_gateway_upstream_requests_total{${labels},method="eth_call",outcome="aborted"} 1`,
    `hop_gateway_upstream_requests_total{${labels},method="other",outcome="rpc_error"} 1`,
  ]);
  const times = await lines("upstream_request_duration_seconds");
  expect(times.find((line) => line.includes('le="0.025"'))).toMatch(/ 0$/);
  expect(times.find((line) => line.includes('le="0.05"'))).toMatch(/ 2$/);
  expect(times.find((line) => line.includes("_count"))).toMatch(/ 2$/);
});

test("counts calls to endpoints, and what the budget of calls did to them", async () => {
  const { metrics, lines } = setup();
  const target = { network: "mainnet", chain: "optimism", endpoint: "optimism[1]#a1b2c3" };
  metrics.onEndpointRequest({ ...target, method: "batch", calls: 30 })("ok");
  metrics.onEndpointRequest({ ...target, method: "eth_call", calls: 1 })("rpc_error");
  metrics.onBudgetLimited({ ...target, outcome: "waited" });
  metrics.onBudgetLimited({ ...target, outcome: "refused" });
  const labels = 'network="mainnet",chain="optimism",endpoint="optimism[1]#a1b2c3"';
  expect(await lines("upstream_calls_total")).toEqual([`hop_gateway_upstream_calls_total{${labels}} 31`]);
  expect(await lines("rpc_budget_limited_total")).toEqual([
    `hop_gateway_rpc_budget_limited_total{${labels},outcome="waited"} 1`,
    `hop_gateway_rpc_budget_limited_total{${labels},outcome="refused"} 1`,
  ]);
});

test("counts closed connections by error code", async () => {
  const { metrics, lines } = setup();
  const line = entry({ operation: "", code: "invalid_argument" });
  metrics.onRequest({ ...line, fields: { errorCode: "EXCESS_BYTES" } }, "RATE_LIMITED");
  metrics.onRequest(line, "INVALID_PARAMETER");
  expect(await lines("connection_errors_total")).toEqual([
    'hop_gateway_connection_errors_total{error_code="EXCESS_BYTES"} 1',
  ]);
});

test("the process is watched once, however many services run in it", async () => {
  const watching = vi.spyOn(perfHooks, "monitorEventLoopDelay");
  for (const { metrics } of [setup(), setup(), setup()])
    expect(await metrics.renderText()).toContain("\nnodejs_eventloop_lag_p99_seconds ");
  expect(watching.mock.calls.length).toBeLessThanOrEqual(1);
});

test("counts what lookups spend by purpose, and spent budgets by owner", async () => {
  const { metrics, lines } = setup();
  for (const purpose of ["logs", "logs", "receipt"]) metrics.onLookupRequest(purpose);
  metrics.onBudgetExhausted("caller");
  expect(await lines("lookup_requests_total")).toEqual([
    'hop_gateway_lookup_requests_total{purpose="logs"} 2',
    'hop_gateway_lookup_requests_total{purpose="receipt"} 1',
  ]);
  expect(await lines("budgets_exhausted_total")).toEqual(['hop_gateway_budgets_exhausted_total{budget="caller"} 1']);
});

const entry = (fields: Partial<AccessLogEntry>): AccessLogEntry => ({
  requestId: "r",
  protocol: "rest",
  operation: "hop.bridge.v1.BridgeService/GetQuote",
  code: "ok",
  durationMs: 1,
  ...fields,
});

describe("request counters", () => {
  test("are kept by operation, protocol, code and reason", () => {
    const requests = new RequestMetrics();
    requests.record(entry({}), "");
    requests.record(entry({}), "");
    requests.record(entry({ protocol: "grpc" }), "");
    requests.record(entry({ code: "invalid_argument" }), "INVALID_PARAMETER");
    requests.record(entry({ code: "invalid_argument" }), "UNSUPPORTED_TOKEN");
    requests.record(entry({ operation: "/readyz" }), "");
    requests.record(entry({ operation: "", code: "not_found" }), "PATH_NOT_FOUND");
    const shown = requests.toCounterSamples().map(({ labels, value }) => [...Object.values(labels), value].join(" "));
    expect(shown.sort()).toEqual([
      "/readyz rest ok  1",
      "GetQuote grpc ok  1",
      "GetQuote rest invalid_argument INVALID_PARAMETER 1",
      "GetQuote rest invalid_argument UNSUPPORTED_TOKEN 1",
      "GetQuote rest ok  2",
      "other rest not_found PATH_NOT_FOUND 1",
    ]);
  });

  test("share one series for methods of the same name, since Prometheus rejects duplicates", () => {
    const requests = new RequestMetrics();
    requests.record(entry({ operation: "grpc.reflection.v1.ServerReflection/ServerReflectionInfo" }), "");
    requests.record(entry({ operation: "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" }), "");
    expect(requests.toCounterSamples().map(({ value }) => value)).toEqual([2]);
    expect(requests.toDurationSamples().filter(({ metricName }) => metricName?.endsWith("_count"))).toHaveLength(1);
  });

  test("stay bounded whatever operations are called", () => {
    const requests = new RequestMetrics();
    for (let n = 0; n < 10_000; n++) requests.record(entry({ operation: `some.Service/Method${n}` }), "");
    const samples = requests.toCounterSamples();
    expect(samples.length).toBeLessThanOrEqual(201);
    expect(samples.reduce((sum, { value }) => sum + value, 0)).toBe(10_000);
    expect(samples.find(({ labels }) => labels.operation === "other")?.value).toBeGreaterThan(9_000);
  });
});

test("counts streams without their durations, which their callers choose", () => {
  const requests = new RequestMetrics();
  requests.record(entry({ durationMs: 3_600_000, isStream: true }), "");
  requests.record(entry({ durationMs: 1 }), "");
  expect(requests.toCounterSamples().map(({ value }) => value)).toEqual([2]);
  const find = (suffix: string) =>
    requests.toDurationSamples().find(({ metricName }) => metricName?.endsWith(suffix))?.value;
  expect([find("_count"), find("_sum")]).toEqual([1, 0.001]);
});

test("counts durations in cumulative buckets in seconds", () => {
  const requests = new RequestMetrics();
  for (const durationMs of [0.1, 0.11, 30, 20_000]) requests.record(entry({ durationMs }), "");
  const samples = requests.toDurationSamples();
  const upTo = (le: number | string) => samples.find(({ labels }) => labels.le === le)?.value;
  expect([0.0001, 0.00025, 0.025, 0.05, 10, "+Inf"].map(upTo)).toEqual([1, 2, 2, 3, 3, 4]);
  const findSeries = (suffix: string) => samples.find(({ metricName }) => metricName?.endsWith(suffix))?.value;
  expect(findSeries("_count")).toBe(4);
  expect(findSeries("_sum")).toBeCloseTo(20.03021);
  expect(samples.every(({ labels }) => labels.operation === "GetQuote" && labels.protocol === "rest")).toBe(true);
});
