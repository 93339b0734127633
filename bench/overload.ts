import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { getNetwork } from "../src/hop/networks.js";
import { type HttpLoadOptions, runHttpLoad } from "./support/load/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listenOnFreePort, serveGateway } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// Measures five-fold overload: goodput, latency of rejections, and recovery time. For look-ups of unknown transfers, for
// quotes by the SDK engine, and for cached quotes.

/** Number of caller addresses, sent as X-Forwarded-For. */
const CALLERS = 50;
/** Latency of the upstreams of the look-ups. */
const LATENCY_MS = 50;
const LOAD_SECONDS = 8;
const OVERLOAD_FACTOR = 5;

/** Returns the bytes of a request; the index selects caller and amount. */
type BuildRequest = (index: number) => string;

function buildRequestFrom(index: number, path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: 192.0.2.${index % CALLERS}\r\n\r\n`;
}

const buildTransferRequest: BuildRequest = (index) =>
  buildRequestFrom(index, `/v1/transfer-status?transferHash=0x${randomBytes(32).toString("hex")}`);
const buildQuoteRequest: BuildRequest = (index) =>
  buildRequestFrom(
    index,
    `/v1/quote?amount=${1_000_000 + index}&token=USDC.e&fromChain=polygon&toChain=arbitrum&slippage=0.5`,
  );

/** Response times in milliseconds. */
class LatencySamples {
  private readonly all: number[] = [];
  get count(): number {
    return this.all.length;
  }
  add(ms: number): void {
    this.all.push(ms);
  }
  quantile(share: number): number {
    const sorted = [...this.all].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  }
  toString(): string {
    const [median, p99, max] = [0.5, 0.99, 1].map((share) => this.quantile(share).toFixed(1));
    return `median ${median} ms, p99 ${p99} ms, max ${max} ms`;
  }
}

interface Outcome {
  readonly goodPerSecond: number;
  readonly good: LatencySamples;
  readonly rejected: LatencySamples;
}

/** Loads the gateway; 200 and 404 count as good, 503 as rejected. Any other status ends the bench. */
async function load(
  server: ServerProcess,
  request: BuildRequest,
  options: Pick<HttpLoadOptions, "connections"> & Partial<HttpLoadOptions>,
) {
  const [good, rejected] = [new LatencySamples(), new LatencySamples()];
  const done = await runHttpLoad({
    url: server.url,
    seconds: LOAD_SECONDS,
    request,
    onResponse(status, tookMs) {
      if (status === 503) rejected.add(tookMs);
      else if (status === 200 || status === 404) good.add(tookMs);
      else throw new Error(`unexpected status ${status}`);
    },
    ...options,
  });
  return { goodPerSecond: good.count / done.seconds, good, rejected, generatorUtilization: done.generatorUtilization };
}

function print(name: string, { goodPerSecond, good, rejected }: Outcome): void {
  console.log(`  ${name.padEnd(24)} ${goodPerSecond.toFixed(0).padStart(6)} per second, ${good}`);
  if (rejected.count > 0)
    console.log(`  ${"".padEnd(24)} ${rejected.count.toString().padStart(6)} rejected, ${rejected}`);
}

async function measureGoodput(
  title: string,
  server: ServerProcess,
  request: BuildRequest,
  connections: readonly number[],
) {
  console.log(title);
  await load(server, request, { connections: 4, seconds: 2 });
  let peak: Outcome | undefined;
  for (const count of connections) {
    const outcome = await load(server, request, { connections: count });
    print(`${count} concurrent`, outcome);
    if (peak === undefined || outcome.goodPerSecond > peak.goodPerSecond) peak = outcome;
  }
  if (peak === undefined) throw new Error("nothing was measured");
  const perSecond = peak.goodPerSecond * OVERLOAD_FACTOR;
  const overload = await load(server, request, { connections: 1_000, perSecond });
  print(`${perSecond.toFixed(0)} per second`, overload);
  console.log(
    `  ${(overload.goodPerSecond / peak.goodPerSecond).toFixed(2)} of the peak; generator ${Math.round(overload.generatorUtilization * 100)} % busy`,
  );
  await measureRecovery(server, request, peak.goodPerSecond / 2);
}

/** Measures for how long requests are still rejected once the load is back at half the peak. */
async function measureRecovery(server: ServerProcess, request: BuildRequest, perSecond: number): Promise<void> {
  const began = performance.now();
  let lastRejection = 0;
  const times = new LatencySamples();
  await runHttpLoad({
    url: server.url,
    connections: 500,
    seconds: LOAD_SECONDS,
    request,
    perSecond,
    onResponse(status, tookMs) {
      if (status === 503) lastRejection = performance.now() - began;
      times.add(tookMs);
    },
  });
  console.log(`  then half the peak: last rejection after ${(lastRejection / 1000).toFixed(1)} s; ${times}`);
}

/** Measures cached quotes under overload: they are served, not rejected, since a rejection costs half as much as a response. */
async function measureCachedQuotes(server: ServerProcess, request: BuildRequest): Promise<void> {
  console.log("cached quotes");
  await load(server, request, { connections: 4, seconds: 2 });
  const peak = await load(server, request, { connections: 64 });
  print("64 concurrent", peak);
  const overload = await load(server, request, { connections: 64 * OVERLOAD_FACTOR });
  print(`${64 * OVERLOAD_FACTOR} concurrent`, overload);
  console.log(`  ${(overload.goodPerSecond / peak.goodPerSecond).toFixed(2)} of the peak`);
}

/** Serves chains without any transfer, with latency: one server, a path per chain. */
async function serveEmptyChains(): Promise<string> {
  interface Call {
    readonly id: number;
    readonly method: string;
  }
  const block = { number: "0x10000", hash: `0x${"ab".repeat(32)}`, timestamp: "0x68000000" };
  const server = createServer((request, response) => {
    const chainId = `0x${Number(request.url?.slice(1)).toString(16)}`;
    const results: Readonly<Record<string, unknown>> = {
      eth_chainId: chainId,
      eth_blockNumber: block.number,
      eth_getBlockByNumber: block,
      eth_getLogs: [],
    };
    const answer = ({ id, method }: Call) => ({ jsonrpc: "2.0", id, result: results[method] ?? null });
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const calls = JSON.parse(text) as Call | Call[];
      const body = JSON.stringify(Array.isArray(calls) ? calls.map(answer) : answer(calls));
      setTimeout(() => response.writeHead(200, { "content-type": "application/json" }).end(body), LATENCY_MS);
    });
  });
  return listenOnFreePort(server);
}

async function run(): Promise<void> {
  const chains = await startServer("empty chains", {});
  const urls = [...getNetwork("mainnet").chains].map(
    ([slug, { chainId }]) => [`RPC_URL_${slug.toUpperCase()}`, `${chains.url}/${chainId}`] as const,
  );
  const noOtherSources = {
    ASSETS_URL: "off",
    EXPLORER_API_URL: "off",
    ATTESTATION_API_URL: "off",
    TRUST_PROXY: "true",
  };
  const gateway = await startServer("gateway", { ...Object.fromEntries(urls), ...noOtherSources });
  const title = `look-ups of unknown transfers, ${LATENCY_MS} ms of network latency`;
  await measureGoodput(title, gateway, buildTransferRequest, [16, 32, 64]);
  await Promise.all([gateway.stop(), chains.stop()]);

  await withLocalNetwork(async (environment) => {
    const sdkGateway = await startServer("gateway", { ...environment, TRUST_PROXY: "true", QUOTE_ENGINE: "sdk" });
    await measureGoodput("quotes by the SDK engine", sdkGateway, buildQuoteRequest, [4, 8, 16]);
    await sdkGateway.stop();
    const snapshotGateway = await startServer("gateway", { ...environment, TRUST_PROXY: "true" });
    await measureCachedQuotes(snapshotGateway, buildQuoteRequest);
    await snapshotGateway.stop();
  });
}

await runBench(run, { gateway: serveGateway, "empty chains": serveEmptyChains });
