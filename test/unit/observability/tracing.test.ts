import { context, propagation, SpanStatusCode, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { afterEach, expect, test } from "vitest";
import { Tracing } from "../../../src/observability/tracing.js";

afterEach(() => {
  for (const api of [trace, context, propagation]) api.disable();
});

test("detects whether an SDK is registered", async () => {
  const tracing = new Tracing("1.2.3");
  expect(tracing.isSdkRegistered()).toBe(false);
  const provider = new NodeTracerProvider();
  provider.register();
  expect(tracing.isSdkRegistered()).toBe(true);
  await provider.shutdown();
});

test("runs all work normally without an SDK", async () => {
  const { callTracer, onEndpointRequest, onChainStateRead } = new Tracing("1.2.3");
  const operation = "hop.bridge.v1.BridgeService/GetQuote";
  const call = callTracer.startTrace({ operation, protocol: "grpc", headers: {}, startedAt: performance.now() });
  expect(call?.run(() => 7)).toBe(7);
  onEndpointRequest({ network: "mainnet", chain: "base", endpoint: "base[1]#a1b2c3", method: "eth_call", calls: 1 })(
    "ok",
  );
  const failing = onChainStateRead("mainnet", { chain: "base", readSetCount: 1 }, () =>
    Promise.reject(new Error("read failure")),
  );
  await expect(failing).rejects.toThrow("read failure");
  call?.end({ requestId: "r", protocol: "grpc", operation, code: "internal", durationMs: 1 }, "INTERNAL", undefined);
});

test("traces only the operations of the bridge service", () => {
  const { callTracer } = new Tracing("1.2.3");
  for (const operation of ["", "/metrics", "grpc.health.v1.Health/Check", "grpc.reflection.v1.ServerReflection/X"])
    expect(callTracer.startTrace({ operation, protocol: "grpc", headers: {}, startedAt: 0 })).toBeUndefined();
});

test("marks failed RPC requests as errors but not aborted ones", async () => {
  const exporter = new InMemorySpanExporter();
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  provider.register();
  const { onEndpointRequest, onChainStateRead } = new Tracing("1.2.3");
  const request = { network: "mainnet", chain: "base", endpoint: "base[1]#a1b2c3", method: "eth_call", calls: 1 };
  const read = onChainStateRead("mainnet", { chain: "base", readSetCount: 1 }, async () => {
    for (const outcome of ["ok", "aborted", "timeout"] as const) onEndpointRequest(request)(outcome);
    throw new Error("enough");
  });
  await expect(read).rejects.toThrow();
  const summaries = exporter.getFinishedSpans().map(({ name, status, attributes }) => {
    return [name, attributes["hop_gateway.outcome"], status.code === SpanStatusCode.ERROR];
  });
  expect(summaries).toEqual([
    ["eth_call", "ok", false],
    ["eth_call", "aborted", false],
    ["eth_call", "timeout", true],
    ["chain state read", undefined, true],
  ]);
  await provider.shutdown();
});
