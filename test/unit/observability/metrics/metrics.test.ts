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
  /** Returns the values whose names start like this, by name and labels. */
  const samples = async (start: string): Promise<Record<string, number>> => {
    const found = [...(await metrics.renderText()).matchAll(/^hop_gateway_(\S+) (\S+)$/gm)];
    return Object.fromEntries(
      found.map(([, name = "", value]) => [name, Number(value)]).filter(([name]) => String(name).startsWith(start)),
    );
  };
  return { metrics, samples, loads: () => loads, pass: (ms: number) => (elapsedMs += ms) };
}

test("reads the current load only at a scrape", async () => {
  const { samples, loads } = setup();
  expect(loads()).toBe(0);
  expect(await samples("")).toMatchObject({
    ...{ connections: 1, requests_in_progress: 2, concurrency_limit: 3, in_flight: 4, requests_pending: 5 },
    ...{ upstream_requests_in_flight: 5, custom_endpoints: 6, active_routes: 7, streaming_calls: 8 },
    ...{ rpc_budget_calls_per_second: 9.5, http2_streams: 9, pipelined_requests: 10, waiting_for_turn: 40 },
    ...{ unsent_bytes: 11, 'limit_cuts_total{cause="open_streams"}': 12, 'limit_cuts_total{cause="unsent_bytes"}': 13 },
    ...{ 'limit_cuts_total{cause="event_loop"}': 0, 'limit_cuts_total{cause="received_bytes"}': 0 },
    ...{ 'limit_cuts_total{cause="response_deadline"}': 0, redis_connected: 1 },
    ...{ 'redis_commands_total{result="ok"}': 15, 'redis_commands_total{result="refused"}': 0 },
    ...{ 'redis_commands_total{result="timed_out"}': 0, 'redis_commands_total{result="skipped"}': 0 },
  });
  expect(loads()).toBeGreaterThan(0);
});

test("reports 1 for the current state and 0 for every other state", async () => {
  const { samples } = setup();
  const ofOptimism = 'network="mainnet",chain="optimism"';
  const statesOf = (endpointId: string, current: string) =>
    ["ok", "failing", "cooldown", "lagging", "outvoted", "unknown"].map((name) => [
      `endpoint_state{${ofOptimism},endpoint="${endpointId}",state="${name}"}`,
      name === current ? 1 : 0,
    ]);
  expect(await samples("endpoint_state")).toEqual(
    Object.fromEntries([...statesOf("optimism[1]#a1b2c3", "ok"), ...statesOf("optimism[2]#d4e5f6", "lagging")]),
  );
  const ofSources = Object.entries(await samples("source_state")).filter(([, value]) => value === 1);
  expect(ofSources.map(([name]) => name)).toEqual([
    'source_state{source="prices",state="failing"}',
    'source_state{source="explorer",state="off"}',
  ]);
  expect(await samples("cctp_")).toEqual({ 'cctp_burn_limit_usdc{chain="optimism"}': 9999.5 });
  expect(await samples("price_")).toEqual({
    'price_difference_ratio{token="ETH"}': 0.25,
    'price_distrusted{token="DAI"}': 1,
    'price_feed_refused{token="SNX",reason="stale"}': 1,
  });
  expect(await samples("source_age")).toEqual({ 'source_age_seconds{source="prices"}': 2.5 });
  expect(await samples("chain_head")).toEqual({
    [`chain_head_age_seconds{${ofOptimism}}`]: 12,
    [`chain_head_number{${ofOptimism}}`]: 77,
  });
  expect(await samples("index_lag")).toEqual({ 'index_lag_blocks{chain="optimism"}': 3 });
  const connections = (pool: string, state: string) => `index_database_connections{pool="${pool}",state="${state}"}`;
  expect(await samples("index_database")).toEqual({
    index_database_up: 1,
    [connections("read", "active")]: 1,
    [connections("read", "idle")]: 2,
    [connections("read", "waiting")]: 0,
    ...Object.fromEntries(["active", "idle", "waiting"].map((use) => [connections("write", use), 0])),
    'index_database_failures_total{code="57014"}': 4,
  });
  expect(await samples("index_leases")).toEqual({
    'index_leases_held{lease="follow"}': 1,
    'index_leases_held{lease="history"}': 0,
  });
});

const LABELS = 'network="mainnet",chain="optimism",endpoint="optimism[1]#a1b2c3"';
const target = { network: "mainnet", chain: "optimism", endpoint: "optimism[1]#a1b2c3" };

test("counts RPC requests by method and outcome and measures those that were not aborted", async () => {
  const { metrics, samples, pass } = setup();
  for (const [method, outcome] of [
    ["eth_call", "ok"],
    ["eth_call", "aborted"],
    ["debug_everything", "rpc_error"],
  ] as const) {
    const onEnd = metrics.onEndpointRequest({ ...target, calls: 1, method });
    pass(40);
    onEnd(outcome);
  }
  expect(await samples("upstream_requests_total")).toEqual({
    [`upstream_requests_total{${LABELS},method="eth_call",outcome="ok"}`]: 1,
    [`upstream_requests_total{${LABELS},method="eth_call",outcome="aborted"}`]: 1,
    [`upstream_requests_total{${LABELS},method="other",outcome="rpc_error"}`]: 1,
  });
  const times = Object.entries(await samples("upstream_request_duration_seconds"));
  const timeOf = (part: string) => times.find(([name]) => name.includes(part))?.[1];
  expect(['le="0.025"', 'le="0.05"', "_count"].map(timeOf)).toEqual([0, 2, 2]);
});

test("counts calls to endpoints, and what the budget of calls did to them", async () => {
  const { metrics, samples } = setup();
  metrics.onEndpointRequest({ ...target, method: "batch", calls: 30 })("ok");
  metrics.onEndpointRequest({ ...target, method: "eth_call", calls: 1 })("rpc_error");
  metrics.onBudgetLimited({ ...target, outcome: "waited" });
  metrics.onBudgetLimited({ ...target, outcome: "refused" });
  expect(await samples("upstream_calls_total")).toEqual({ [`upstream_calls_total{${LABELS}}`]: 31 });
  expect(await samples("rpc_budget_limited_total")).toEqual({
    [`rpc_budget_limited_total{${LABELS},outcome="waited"}`]: 1,
    [`rpc_budget_limited_total{${LABELS},outcome="refused"}`]: 1,
  });
});

test("counts closed connections by error code", async () => {
  const { metrics, samples } = setup();
  const line = entry({ operation: "", code: "invalid_argument" });
  metrics.onRequest({ ...line, fields: { errorCode: "EXCESS_BYTES" } }, "RATE_LIMITED");
  metrics.onRequest(line, "INVALID_PARAMETER");
  expect(await samples("connection_errors_total")).toEqual({
    'connection_errors_total{error_code="EXCESS_BYTES"}': 1,
  });
});

test("the process is watched once, however many services run in it", async () => {
  const watching = vi.spyOn(perfHooks, "monitorEventLoopDelay");
  for (const { metrics } of [setup(), setup(), setup()])
    expect(await metrics.renderText()).toContain("\nnodejs_eventloop_lag_p99_seconds ");
  expect(watching.mock.calls.length).toBeLessThanOrEqual(1);
});

test("counts what lookups spend by purpose, and spent budgets by owner", async () => {
  const { metrics, samples } = setup();
  for (const purpose of ["logs", "logs", "receipt"]) metrics.onLookupRequest(purpose);
  metrics.onBudgetExhausted("caller");
  expect(await samples("lookup_requests_total")).toEqual({
    'lookup_requests_total{purpose="logs"}': 2,
    'lookup_requests_total{purpose="receipt"}': 1,
  });
  expect(await samples("budgets_exhausted_total")).toEqual({ 'budgets_exhausted_total{budget="caller"}': 1 });
});

const entry = (fields: Partial<AccessLogEntry>): AccessLogEntry => ({
  ...{ requestId: "r", protocol: "rest", operation: "hop.bridge.v1.BridgeService/GetQuote", code: "ok", durationMs: 1 },
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
