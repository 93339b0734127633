import { execFile } from "node:child_process";
import { once } from "node:events";
import { openSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { createGateway } from "../../../src/app/gateway.js";
import { loadConfig } from "../../../src/config/config.js";
import { createLogger } from "../../../src/observability/log.js";
import { BufferedLogOutput } from "../../../src/observability/log-output.js";
import { metricDescriptions } from "../../../src/observability/metrics/metrics.js";
import { isFullEffort } from "../../support/effort.js";
import { findTool } from "../../support/find-tool.js";
import { createHttpConnections } from "../../support/service/http-connections.js";
import { type MetricsScrape, scrapeMetrics } from "../../support/service/metrics-scrape.js";
import { CALLER_KEY, plantKeys } from "../../support/service/planted-keys.js";
import { createFileLogger } from "../../support/service/recorded-output.js";
import { startRpcProxy } from "../../support/stubs/rpc-proxy.js";

const { chains, environment } = inject("network");
const asked = { amount: "1000000000000000000", token: "ETH", fromChain: "arbitrum", toChain: "polygon", slippage: 0.5 };
const quotePath = `/v1/quote?${new URLSearchParams({ ...asked, slippage: "0.5" })}`;
const REQUESTS = "hop_gateway_requests_total";
const UNKNOWN_REQUESTS = isFullEffort ? 10_000 : 1_000;
const LOST_LINES = "hop_gateway_log_lines_lost_total";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** @param logLines gets the lines of the log from level warn on */
async function start(more: Readonly<Record<string, string>> = {}, logLines?: string[]) {
  const defaults = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
  const configured = plantKeys({ ...environment, ...defaults, ...more });
  const logger =
    logLines === undefined ? createFileLogger() : createLogger("warn", { write: (line) => void logLines.push(line) });
  const gateway = await createGateway(loadConfig(configured), logger);
  closing.push(() => gateway.stop());
  const { url, metricsUrl = `${url}/metrics` } = await gateway.start();
  const status = async (path: string, init?: RequestInit) => {
    const answer = await fetch(`${url}${path}`, init);
    await answer.arrayBuffer();
    return answer.status;
  };
  return { url, metricsUrl, status, scrape: () => scrapeMetrics(metricsUrl) };
}

/** Occupies a free port. */
async function listenAnywhere() {
  const server = createServer().listen(0, "127.0.0.1");
  const close = () => new Promise<void>((resolve) => void server.close(() => resolve()));
  closing.push(close);
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, close };
}

/** Returns the series of quotes as text. */
function quotesIn({ text }: MetricsScrape): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${REQUESTS}{operation="GetQuote"`))
    .map((line) => line.slice(line.indexOf(",") + 1).replace("}", ""))
    .sort();
}

test("counts each request once by operation, protocol, code and reason", async () => {
  const { url, status, scrape: look } = await start();
  const transports = [
    createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
    createConnectTransport({ baseUrl: url, httpVersion: "2", useHttpGet: true }),
    createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1" }),
    createGrpcTransport({ baseUrl: url }),
    createGrpcTransport({ baseUrl: url }),
  ];
  for (let n = 0; n < 3; n++) expect(await status(quotePath)).toBe(200);
  for (const transport of transports) await createClient(BridgeService, transport).getQuote(asked);
  expect(await status(quotePath.replace("ETH", "XYZ"))).toBe(400);
  expect(await status(quotePath, { method: "DELETE" })).toBe(405);
  const [grpc] = transports.slice(-1);
  if (grpc === undefined) throw new Error("no transport");
  await expect(createClient(BridgeService, grpc).getQuote({ ...asked, amount: "0" })).rejects.toThrow();
  const rubbish = { method: "POST", headers: { "content-type": "application/json" }, body: "{" };
  expect(await status("/hop.bridge.v1.BridgeService/GetQuote", rubbish)).toBe(400);
  for (let n = 0; n < 2; n++) expect(await status("/v1/nothing")).toBe(404);
  expect(await status("/livez")).toBe(200);

  const found = await look();
  expect(quotesIn(found)).toEqual([
    'protocol="connect",code="invalid_argument",reason="INVALID_PARAMETER" 1',
    'protocol="connect",code="ok",reason="" 1',
    'protocol="connect-get",code="ok",reason="" 1',
    'protocol="grpc",code="invalid_argument",reason="INVALID_PARAMETER" 1',
    'protocol="grpc",code="ok",reason="" 2',
    'protocol="grpc-web",code="ok",reason="" 1',
    'protocol="rest",code="invalid_argument",reason="UNSUPPORTED_TOKEN" 1',
    'protocol="rest",code="ok",reason="" 3',
    'protocol="rest",code="unimplemented",reason="METHOD_NOT_ALLOWED" 1',
  ]);
  const other = { operation: "other", protocol: "rest", code: "not_found", reason: "PATH_NOT_FOUND" };
  expect(found.value(REQUESTS, other)).toBe(2);
  expect(found.value(REQUESTS, { operation: "/livez", protocol: "rest", code: "ok" })).toBe(1);
  const durations = "hop_gateway_request_duration_seconds";
  expect(found.sum(`${durations}_count`, { operation: "GetQuote" })).toBe(12);
  expect(found.value(`${durations}_bucket`, { operation: "GetQuote", protocol: "rest", le: "10" })).toBe(5);
  // The scrape on its own port is no request.
  expect(found.value("hop_gateway_requests_in_progress")).toBe(0);
  expect(found.value("hop_gateway_connections")).toBeGreaterThan(0);
  // Eight quotes need only two reads of chain state.
  expect(found.value("hop_gateway_quote_chain_state_age_seconds_count")).toBe(8);
  expect(found.value("hop_gateway_chain_state_reads_total", { outcome: "ok" })).toBeGreaterThanOrEqual(2);
  expect(found.value("hop_gateway_active_routes")).toBe(1);
  for (const chain of ["arbitrum", "polygon"]) {
    const ofChain = { network: "mainnet", chain };
    expect(found.sum("hop_gateway_upstream_requests_total", { ...ofChain, outcome: "ok" })).toBeGreaterThan(0);
    expect(found.value("hop_gateway_chain_head_number", ofChain)).toBeGreaterThan(0);
    expect(found.value("hop_gateway_chain_head_age_seconds", ofChain)).toBeGreaterThanOrEqual(0);
  }
});

test("counts every HTTP request to an endpoint", async () => {
  const proxy = await startRpcProxy(chains.polygon?.url ?? "");
  closing.push(() => proxy.close());
  const { status, scrape: look } = await start({ RPC_URL_POLYGON: proxy.url });
  expect(await status(quotePath)).toBe(200);
  const count = proxy.requests.length;
  const found = await look();
  expect(found.sum("hop_gateway_upstream_requests_total", { chain: "polygon", outcome: "ok" })).toBe(count);
  expect(
    found.value("hop_gateway_upstream_request_duration_seconds_count", { network: "mainnet", chain: "polygon" }),
  ).toBe(count);
});

test("labels callers' endpoints as custom and counts them only while they are open", async () => {
  const { url, status, scrape: look } = await start({ CUSTOM_RPC_URLS: "any" });
  const custom = `${chains.polygon?.url}/?key=${CALLER_KEY}`;
  const path = `${quotePath}&rpcUrl[polygon]=${encodeURIComponent(custom)}`;
  expect(await status(path)).toBe(200);
  const found = await look();
  const ofCaller = { network: "mainnet", chain: "polygon", endpoint: "custom", outcome: "ok" };
  expect(found.sum("hop_gateway_upstream_requests_total", ofCaller)).toBeGreaterThan(0);
  expect(found.sum("hop_gateway_endpoint_state", { endpoint: "custom" })).toBe(0);
  expect(found.value("hop_gateway_custom_endpoints")).toBe(0);
  expect(await (await fetch(`${url}/readyz`)).text()).not.toContain("custom");
});

test("creates no series for unknown paths, methods or services", async () => {
  const { url, scrape: look, status } = await start();
  await status("/v1/nothing");
  await status("/v1/nothing", { method: "DELETE" });
  const callers = createHttpConnections(Number(new URL(url).port));
  onTestFinished(() => callers.close());
  // Unknown requests of every kind: over HTTP/1.1 and HTTP/2, as an RPC, and with other HTTP methods.
  const askFor = (n: number) => {
    const isRpc = n % 4 === 0;
    const type = isRpc ? [["content-type", "application/grpc"] as const] : [];
    const method = isRpc ? "POST" : n % 4 === 1 ? ["PUT", "PATCH", "DELETE", "GET"][(n >> 2) % 4] : "GET";
    const target = isRpc ? `/some.v${n}.Service/Method${n}` : `/v${n}/${"x".repeat(n % 50)}?q=${n}`;
    return callers.send({ isHttp2: n % 2 === 0, method: method ?? "GET", target, headers: type, body: undefined });
  };
  for (let n = 0; n < 64; n++) await askFor(n);
  const before = (await look()).series;
  for (let n = 64; n < 64 + UNKNOWN_REQUESTS; n += 100)
    await Promise.all(Array.from({ length: 100 }, (_, place) => askFor(n + place)));
  const after = await look();
  expect(after.sum(REQUESTS, { operation: "other" })).toBe(UNKNOWN_REQUESTS + 66);
  const isOfProcess = (series: string): boolean => /^(nodejs|process)_/.test(series);
  expect(after.series.filter((each) => !isOfProcess(each)).sort()).toEqual(
    before.filter((each) => !isOfProcess(each)).sort(),
  );
});

describe("METRICS_PORT", () => {
  test("serves metrics and liveness on a separate port, and nothing else", async () => {
    const { url, metricsUrl, scrape: look, status } = await start();
    expect(new URL(metricsUrl).port).not.toBe(new URL(url).port);
    expect(await status("/metrics")).toBe(404);
    const other = { operation: "other", protocol: "rest", code: "not_found", reason: "PATH_NOT_FOUND" };
    expect((await look()).value(REQUESTS, other)).toBe(1);
    const liveness = await fetch(new URL("/livez", metricsUrl));
    expect([liveness.status, await liveness.json()]).toEqual([200, { status: "OK" }]);
    for (const path of ["/v1/available-routes", "/readyz", "/"])
      expect((await fetch(new URL(path, metricsUrl))).status, path).toBe(404);
    for (const close of closing.splice(0)) await close();
    await expect(fetch(metricsUrl)).rejects.toThrow();
  });

  test("answers /livez there while the main port is flooded with pipelined requests that nobody reads", async () => {
    const { url, metricsUrl } = await start();
    const flood = Array.from({ length: 100 }, () => connect(Number(new URL(url).port), "127.0.0.1"));
    try {
      for (const socket of flood) {
        socket.on("error", () => {});
        socket.pause().write("GET /v1/available-routes HTTP/1.1\r\nHost: x\r\n\r\n".repeat(249));
      }
      for (let n = 0; n < 5; n++) expect((await fetch(new URL("/livez", metricsUrl))).status).toBe(200);
    } finally {
      for (const socket of flood) socket.destroy();
    }
  });

  test("same serves the metrics on the main port only", async () => {
    const { url, metricsUrl, scrape: look } = await start({ METRICS_PORT: "same" });
    expect(metricsUrl).toBe(`${url}/metrics`);
    // The scrape itself is in progress.
    expect((await look()).value("hop_gateway_requests_in_progress")).toBe(1);
  });

  // An address of this machine that no other test uses: the default port is free there.
  const METRICS_HOST = `127.${1 + (process.pid >> 16)}.${(process.pid >> 8) & 255}.${process.pid & 255}`;
  // Nothing else to warn of.
  const byDefault = { METRICS_PORT: "", METRICS_HOST, CUSTOM_RPC_URLS: "public" };

  test.runIf(process.platform === "linux")("is 9464 by default, and a free port if that is taken", async () => {
    const [firstLog, secondLog]: [string[], string[]] = [[], []];
    const first = await start(byDefault, firstLog);
    expect(first.metricsUrl).toBe(`http://${METRICS_HOST}:9464/metrics`);
    expect(firstLog).toEqual([]);
    const second = await start(byDefault, secondLog);
    expect(second.metricsUrl).not.toBe(first.metricsUrl);
    expect((await second.scrape()).value("hop_gateway_connections")).toBe(0);
    expect(secondLog.map((line) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        msg: "default port of the metrics is taken; using a free port",
        takenPort: 9464,
        url: second.metricsUrl,
      }),
    ]);
  });

  test.runIf(process.platform === "linux")("is not mentioned when the main port is taken too", async () => {
    const [lines, { port }] = [[] as string[], await listenAnywhere()];
    await start(byDefault);
    const failing = start({ ...byDefault, PORT: `${port}` }, lines);
    await expect(failing).rejects.toMatchObject({ code: "EADDRINUSE", port });
    expect(lines).toEqual([]);
  });

  test("fails the start and frees the main port when a configured port is in use", async () => {
    const [taken, main] = [await listenAnywhere(), await listenAnywhere()];
    await main.close();
    const failing = start({ PORT: `${main.port}`, METRICS_PORT: `${taken.port}` });
    await expect(failing).rejects.toThrow(
      `the metrics cannot be served: port ${taken.port} is in use: set METRICS_PORT to another one, or to 0 for a free one`,
    );
    await expect(fetch(`http://127.0.0.1:${main.port}/livez`)).rejects.toThrow();
  });
});

test.runIf(process.platform === "linux")("counts the log lines that a full disk loses", async () => {
  const file = openSync("/dev/full", "w");
  const logOutput = new BufferedLogOutput(file);
  // Fills the buffer.
  logOutput.write(`${"x".repeat(4 * 1024 * 1024 - 1)}\n`);
  const configured = { ...environment, HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
  const gateway = await createGateway(loadConfig(configured), undefined, { logOutput });
  closing.push(() => gateway.stop());
  const { url, metricsUrl = "" } = await gateway.start();
  const readLost = async () => (await scrapeMetrics(metricsUrl)).value(LOST_LINES, { reason: "write_failed" });
  // Until the first write has failed, on a thread of its own, lines are lost for another reason.
  const requestAndReadLost = async () => {
    await (await fetch(`${url}/v1/available-routes`)).arrayBuffer();
    expect(await readLost()).toBeGreaterThanOrEqual(3);
  };
  await vi.waitFor(requestAndReadLost, { timeout: 60_000 });
});

/** Without the part there is nothing to say. */
const METRICS_OF_OPTIONAL_PARTS = [
  "hop_gateway_clock_offset_seconds",
  "hop_gateway_redis_connected",
  "hop_gateway_index_database_up",
];

test("describes every metric and exposes those without labels from the start", async () => {
  const { text, series } = await (await start()).scrape();
  for (const { name, type, labels } of metricDescriptions) {
    expect(text).toContain(`# TYPE ${name} ${type}`);
    const first = type === "histogram" ? `${name}_count` : name;
    if (labels.length === 0 && !METRICS_OF_OPTIONAL_PARTS.includes(name)) expect(series).toContain(first);
  }
  expect(series).toContain("nodejs_eventloop_lag_p99_seconds");
});

const promtool = findTool("promtool (Debian: prometheus)", "/usr/bin/promtool", "/usr/local/bin/promtool");

describe.skipIf(promtool === undefined)("promtool (skipped if not installed)", () => {
  test("finds no problem in a scrape", async () => {
    const { status, scrape: look } = await start();
    await status(quotePath);
    await status("/readyz");
    const { text } = await look();
    const said = await new Promise<string>((resolve) => {
      const child = execFile(promtool ?? "", ["check", "metrics"], (error, out, err) => {
        resolve(`${error?.code ?? 0} ${out}${err}`);
      });
      child.stdin?.end(text);
    });
    expect(said).toBe("0 ");
  });
});
