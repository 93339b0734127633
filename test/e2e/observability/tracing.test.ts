import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { SpanKind, SpanStatusCode } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { CALLER_KEY, findPlantedKeys } from "../../support/service/planted-keys.js";
import { type RpcProxy, startRpcProxy } from "../../support/stubs/rpc-proxy.js";

// The SDK of the operator records the spans, here in memory.

const { chains } = inject("network");
const asked = { amount: "1000000000000000000", token: "ETH", fromChain: "arbitrum", toChain: "polygon", slippage: 0.5 };
const quotePath = `/v1/quote?${new URLSearchParams({ ...asked, slippage: "0.5" })}`;
const GET_QUOTE = "hop.bridge.v1.BridgeService/GetQuote";
const remote = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = `00-${remote.traceId}-${remote.spanId}-01`;

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
let gateway: TestGateway;
let proxy: RpcProxy;

beforeAll(() => provider.register());
afterAll(() => provider.shutdown());
beforeEach(async () => {
  exporter.reset();
  proxy = await startRpcProxy(chains.polygon?.url ?? "");
});
afterEach(async () => {
  await gateway.stop();
  await proxy.close();
  // In every test: no span contains a key or an address.
  const said = JSON.stringify(
    exporter.getFinishedSpans().map(({ name, attributes, status, events }) => [name, attributes, status, events]),
  );
  expect(findPlantedKeys(said)).toEqual([]);
  expect(said).not.toMatch(/127\.0\.0\.1|https?:/);
});

async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await startGateway({
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
    RPC_URL_POLYGON: proxy.url,
    ...environment,
  });
}

/** Returns the finished spans as soon as one of a request is among them. */
async function spans(): Promise<readonly ReadableSpan[]> {
  await vi.waitFor(() => expect(exporter.getFinishedSpans().some(({ kind }) => kind === SpanKind.SERVER)).toBe(true), {
    timeout: 60_000,
  });
  return exporter.getFinishedSpans();
}

const getParentId = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId;
const getId = (span: ReadableSpan): string => span.spanContext().spanId;

/** Returns the single span of a kind. */
function getOnly(all: readonly ReadableSpan[], kind: SpanKind): ReadableSpan {
  const [found, ...more] = all.filter((span) => span.kind === kind);
  if (found === undefined || more.length > 0)
    throw new Error(`there are ${more.length + (found ? 1 : 0)} of kind ${kind}`);
  return found;
}

describe("a first quote", () => {
  test("over GET is a span with the chain reads as children", async () => {
    await start();
    const { status } = await gateway.get(quotePath);
    expect(status).toBe(200);
    const all = await spans();
    const request = getOnly(all, SpanKind.SERVER);
    expect(request.name).toBe(GET_QUOTE);
    expect(getParentId(request)).toBeUndefined();
    expect(request.status.code).toBe(SpanStatusCode.UNSET);
    expect(request.attributes).toEqual({
      "rpc.service": "hop.bridge.v1.BridgeService",
      "rpc.method": "GetQuote",
      "http.route": "/v1/quote",
      "http.request.method": "GET",
      "http.response.status_code": 200,
      "hop_gateway.protocol": "rest",
      "hop_gateway.request_id": expect.any(String),
      "hop_gateway.network": "mainnet",
      "hop_gateway.token": "ETH",
      "hop_gateway.route": "arbitrum>polygon",
    });
    const reads = all.filter(({ kind }) => kind === SpanKind.INTERNAL);
    expect(reads.map(({ name, attributes }) => [name, attributes["hop_gateway.chain"]]).sort()).toEqual([
      ["chain state read", "arbitrum"],
      ["chain state read", "polygon"],
    ]);
    for (const read of reads) expect(getParentId(read)).toBe(getId(request));
    const calls = all.filter(({ kind }) => kind === SpanKind.CLIENT);
    const ofPolygon = calls.filter(({ attributes }) => attributes["hop_gateway.chain"] === "polygon");
    expect(ofPolygon).toHaveLength(proxy.requests.length);
    const read = reads.find(({ attributes }) => attributes["hop_gateway.chain"] === "polygon");
    for (const call of ofPolygon) expect(getParentId(call)).toBe(read && getId(read));
    expect(ofPolygon[0]?.attributes).toEqual({
      "rpc.system": "jsonrpc",
      "rpc.method": "batch",
      "hop_gateway.network": "mainnet",
      "hop_gateway.chain": "polygon",
      "hop_gateway.endpoint": expect.stringMatching(/^polygon\[1\]#[0-9a-f]{6}$/),
      "hop_gateway.calls": proxy.requests[0]?.calls.length,
      "hop_gateway.outcome": "ok",
    });
    expect(new Set(all.map((span) => span.spanContext().traceId)).size).toBe(1);
  });

  test("over gRPC continues the trace of its caller", async () => {
    await start();
    const bridge = createClient(BridgeService, createGrpcTransport({ baseUrl: gateway.url }));
    await bridge.getQuote(asked, { headers: { traceparent } });
    const all = await spans();
    const request = getOnly(all, SpanKind.SERVER);
    expect(request.parentSpanContext).toMatchObject({ ...remote, isRemote: true });
    expect(request.attributes).toMatchObject({ "rpc.system": "grpc", "rpc.grpc.status_code": 0 });
    expect(all.map((span) => span.spanContext().traceId)).toEqual(Array(all.length).fill(remote.traceId));
    expect(all.filter(({ kind }) => kind === SpanKind.CLIENT).length).toBeGreaterThan(0);
  });

  test("shares the chain reads of concurrent callers in the trace of the first", async () => {
    proxy.behaviour.latencyMs = 300;
    await start();
    const bridge = createClient(BridgeService, createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" }));
    await Promise.all([bridge.getQuote(asked), bridge.getQuote(asked)]);
    await vi.waitFor(
      async () => expect((await spans()).filter(({ kind }) => kind === SpanKind.SERVER)).toHaveLength(2),
      { timeout: 60_000 },
    );
    const all = await spans();
    const ofPolygon = all.filter(({ kind, attributes }) => {
      return kind === SpanKind.INTERNAL && attributes["hop_gateway.chain"] === "polygon";
    });
    expect(ofPolygon).toHaveLength(1);
    expect(all.filter((span) => getId(span) === getParentId(ofPolygon[0] as ReadableSpan))).toHaveLength(1);
  });
});

test("a cached quote is a single span, and later refreshes start traces of their own", async () => {
  await start();
  await gateway.get(quotePath);
  exporter.reset();
  await gateway.get(quotePath);
  const request = getOnly(await spans(), SpanKind.SERVER);
  await vi.waitFor(
    () => expect(exporter.getFinishedSpans().some(({ kind }) => kind === SpanKind.INTERNAL)).toBe(true),
    { timeout: 60_000 },
  );
  const all = exporter.getFinishedSpans();
  const read = all.find(({ kind }) => kind === SpanKind.INTERNAL) as ReadableSpan;
  expect(getParentId(read)).toBeUndefined();
  expect(read.spanContext().traceId).not.toBe(request.spanContext().traceId);
  expect(all.some((span) => span.kind === SpanKind.CLIENT && getParentId(span) === getId(read))).toBe(true);
});

describe("a failure", () => {
  test("of an upstream marks the RPC request, the read and the call as errors", async () => {
    proxy.behaviour.errorStatus = 403;
    await start();
    expect((await gateway.get(quotePath)).status).toBe(503);
    const all = await spans();
    const request = getOnly(all, SpanKind.SERVER);
    expect(request.status.code).toBe(SpanStatusCode.ERROR);
    expect(request.attributes).toMatchObject({
      "error.type": "UPSTREAM_UNAVAILABLE",
      "hop_gateway.reason": "UPSTREAM_UNAVAILABLE",
      "http.response.status_code": 503,
    });
    const failed = all.filter(({ status }) => status.code === SpanStatusCode.ERROR);
    expect(failed.map(({ kind, attributes }) => [kind, attributes["error.type"]])).toContainEqual([
      SpanKind.CLIENT,
      "http_error",
    ]);
    expect(failed.map(({ kind, attributes }) => [kind, attributes["error.type"]])).toContainEqual([
      SpanKind.INTERNAL,
      "read_failed",
    ]);
  });

  test.each([
    ["rest", { "hop_gateway.reason": "INVALID_PARAMETER", "http.response.status_code": 400 }],
    ["grpc", { "hop_gateway.reason": "INVALID_PARAMETER", "rpc.grpc.status_code": 3 }],
    ["connect", { "hop_gateway.reason": "INVALID_PARAMETER", "rpc.connect_rpc.error_code": "invalid_argument" }],
  ])("of the caller is no error and exposes no input: %s", async (protocol, attributes) => {
    await start();
    const amount = CALLER_KEY;
    if (protocol === "rest") await fetch(`${gateway.url}${quotePath.replace(asked.amount, amount)}`);
    else {
      const open = protocol === "grpc" ? createGrpcTransport : createConnectTransport;
      const bridge = createClient(BridgeService, open({ baseUrl: gateway.url, httpVersion: "2" }));
      await expect(bridge.getQuote({ ...asked, amount })).rejects.toThrow();
    }
    const request = getOnly(await spans(), SpanKind.SERVER);
    expect(request.status.code).toBe(SpanStatusCode.UNSET);
    expect(request.attributes).toMatchObject(attributes);
  });

  test("to bind a request is a span of its operation", async () => {
    await start();
    expect((await gateway.get("/v1/quote?nothing=1")).status).toBe(400);
    const request = getOnly(await spans(), SpanKind.SERVER);
    expect([request.name, request.attributes["hop_gateway.reason"]]).toEqual([GET_QUOTE, "UNKNOWN_PARAMETER"]);
  });
});

test("labels endpoints of callers as custom", async () => {
  await start({ CUSTOM_RPC_URLS: "any" });
  const url = `${proxy.url}/?key=${CALLER_KEY}`;
  expect((await gateway.get(`${quotePath}&rpcUrl[polygon]=${encodeURIComponent(url)}`)).status).toBe(200);
  const all = await spans();
  const request = getOnly(all, SpanKind.SERVER);
  const calls = all.filter(({ attributes }) => attributes["hop_gateway.endpoint"] === "custom");
  expect(calls.length).toBeGreaterThan(0);
  for (const call of calls) expect(getParentId(call)).toBe(getId(request));
});

test("ignores an invalid traceparent", async () => {
  await start();
  const parents = [
    "",
    "x",
    traceparent.replace("00-", "ff-"),
    `00-${"0".repeat(32)}-${remote.spanId}-01`,
    "é".repeat(4000),
  ];
  for (const parent of parents) {
    const headers = { traceparent: Buffer.from(parent).toString("latin1"), tracestate: ",,=,", baggage: "a=%E0%A4%A" };
    expect((await fetch(`${gateway.url}${quotePath}`, { headers })).status).toBe(200);
  }
  await vi.waitFor(
    async () => expect((await spans()).filter(({ kind }) => kind === SpanKind.SERVER)).toHaveLength(parents.length),
    { timeout: 60_000 },
  );
  const requests = (await spans()).filter(({ kind }) => kind === SpanKind.SERVER);
  expect(requests.map(getParentId)).toEqual(parents.map(() => undefined));
});

test("records no spans for an unsampled trace, including its chain reads", async () => {
  await start();
  const headers = { traceparent: `${traceparent.slice(0, -2)}00` };
  expect((await fetch(`${gateway.url}${quotePath}`, { headers })).status).toBe(200);
  const count = proxy.requests.length;
  expect(count).toBeGreaterThan(0);
  // A second request: once its span is there, the first one would be finished too.
  expect((await gateway.get("/v1/available-routes")).status).toBe(200);
  const all = await spans();
  expect(all.filter((span) => span.spanContext().traceId === remote.traceId)).toEqual([]);
  expect(all.filter(({ kind }) => kind === SpanKind.SERVER).map(({ name }) => name)).toEqual([
    "hop.bridge.v1.BridgeService/ListAvailableRoutes",
  ]);
});

test("creates no spans for documents, probes and unknown paths", async () => {
  await start();
  for (const path of ["/livez", "/readyz", "/metrics", "/v1/nothing"]) await fetch(`${gateway.url}${path}`);
  await vi.waitFor(() => expect(proxy.requests.length).toBeGreaterThan(0), { timeout: 60_000 });
  expect(exporter.getFinishedSpans()).toEqual([]);
});

test("creates no spans unless tracing is enabled", async () => {
  gateway = await startGateway({ RPC_URL_POLYGON: proxy.url });
  expect((await gateway.get(quotePath)).status).toBe(200);
  expect(exporter.getFinishedSpans()).toEqual([]);
});
