import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { getNetwork } from "../src/hop/networks.js";
import { type HttpLoadOptions, runHttpLoad } from "./support/http-load-generator.js";
import { withLocalNetwork } from "./support/local-network.js";
import { listenOnFreePort, serveGateway } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";

// What becomes of five times as much as the gateway can do: how much of it is done, how soon the rest is sent away, and how
// soon all is well afterwards. For look-ups of transfers that nobody has asked for before, for quotes by the SDK, and for
// quotes that are at hand.

/** Callers' addresses, which a proxy would tell. */
const CALLERS = 50;
/** Of the look-ups' upstreams. */
const LATENCY_MS = 50;
const LOAD_SECONDS = 8;
const OVERLOAD_FACTOR = 5;

/** A request of any caller, by its number. */
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

/** Times of answers, in milliseconds. */
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
    const [half, most, all] = [0.5, 0.99, 1].map((share) => this.quantile(share).toFixed(1));
    return `${half} ms in the median, 99 % in ${most}, all in ${all}`;
  }
}

interface Outcome {
  readonly goodPerSecond: number;
  readonly good: LatencySamples;
  readonly refused: LatencySamples;
}

/** Loads the gateway; good is what is answered, refused what is sent away. Anything else ends the bench. */
async function load(
  server: ServerProcess,
  request: BuildRequest,
  how: Pick<HttpLoadOptions, "connections"> & Partial<HttpLoadOptions>,
) {
  const [good, refused] = [new LatencySamples(), new LatencySamples()];
  const done = await runHttpLoad({
    url: server.url,
    seconds: LOAD_SECONDS,
    request,
    onResponse(status, tookMs) {
      if (status === 503) refused.add(tookMs);
      else if (status === 200 || status === 404) good.add(tookMs);
      else throw new Error(`an answer with status ${status}`);
    },
    ...how,
  });
  return { goodPerSecond: good.count / done.seconds, good, refused, generatorBusy: done.generatorUtilization };
}

function print(name: string, { goodPerSecond, good, refused }: Outcome): void {
  console.log(`  ${name.padEnd(24)} ${goodPerSecond.toFixed(0).padStart(6)} a second, ${good}`);
  if (refused.count > 0)
    console.log(`  ${"".padEnd(24)} ${refused.count.toString().padStart(6)} sent away, ${refused}`);
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
  for (const each of connections) {
    const outcome = await load(server, request, { connections: each });
    print(`${each} at a time`, outcome);
    if (peak === undefined || outcome.goodPerSecond > peak.goodPerSecond) peak = outcome;
  }
  if (peak === undefined) throw new Error("nothing was measured");
  const perSecond = peak.goodPerSecond * OVERLOAD_FACTOR;
  const over = await load(server, request, { connections: 1_000, perSecond });
  print(`${perSecond.toFixed(0)} a second`, over);
  console.log(
    `  ${(over.goodPerSecond / peak.goodPerSecond).toFixed(2)} of the peak; generator ${Math.round(over.generatorBusy * 100)} % busy`,
  );
  await measureRecovery(server, request, peak.goodPerSecond / 2);
}

/** How long after the load nobody is sent away any more. */
async function measureRecovery(server: ServerProcess, request: BuildRequest, perSecond: number): Promise<void> {
  const began = performance.now();
  let lastRefusal = 0;
  const times = new LatencySamples();
  await runHttpLoad({
    url: server.url,
    connections: 500,
    seconds: LOAD_SECONDS,
    request,
    perSecond,
    onResponse(status, tookMs) {
      if (status === 503) lastRefusal = performance.now() - began;
      times.add(tookMs);
    },
  });
  console.log(`  then half the peak: the last is sent away after ${(lastRefusal / 1000).toFixed(1)} s; ${times}`);
}

/** Answers at hand are given and not refused: to refuse costs half as much as to answer. */
async function measureCachedQuotes(server: ServerProcess, request: BuildRequest): Promise<void> {
  console.log("quotes at hand");
  await load(server, request, { connections: 4, seconds: 2 });
  const peak = await load(server, request, { connections: 64 });
  print("64 at a time", peak);
  const over = await load(server, request, { connections: 64 * OVERLOAD_FACTOR });
  print(`${64 * OVERLOAD_FACTOR} at a time`, over);
  console.log(`  ${(over.goodPerSecond / peak.goodPerSecond).toFixed(2)} of the peak`);
}

/** Chains on which nothing has ever been sent, so far away; one server for all, each at its path. */
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
      const asked = JSON.parse(text) as Call | Call[];
      const body = JSON.stringify(Array.isArray(asked) ? asked.map(answer) : answer(asked));
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
  const nothingElse = { ASSETS_URL: "off", EXPLORER_API_URL: "off", ATTESTATION_API_URL: "off", TRUST_PROXY: "true" };
  const gateway = await startServer("gateway", { ...Object.fromEntries(urls), ...nothingElse });
  const title = `look-ups of transfers that nobody knows, ${LATENCY_MS} ms of network`;
  await measureGoodput(title, gateway, buildTransferRequest, [16, 32, 64]);
  await Promise.all([gateway.stop(), chains.stop()]);

  await withLocalNetwork(async (environment) => {
    const bySdk = await startServer("gateway", { ...environment, TRUST_PROXY: "true", QUOTE_ENGINE: "sdk" });
    await measureGoodput("quotes by the SDK", bySdk, buildQuoteRequest, [4, 8, 16]);
    await bySdk.stop();
    const own = await startServer("gateway", { ...environment, TRUST_PROXY: "true" });
    await measureCachedQuotes(own, buildQuoteRequest);
    await own.stop();
  });
}

await runBench(run, { gateway: serveGateway, "empty chains": serveEmptyChains });
