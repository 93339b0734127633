import { describe, expect, test } from "vitest";
import type { AccessLogEntry } from "../../../../src/http/request/request-context.js";
import { RequestMetrics } from "../../../../src/observability/metrics/instruments.js";

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
