import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { QUOTE_PATHS } from "../test/support/service/quote-paths.js";
import { ChangingIndex } from "./support/changing-index.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { type PacedQuotesReport, serveQuotes } from "./support/paced-quotes.js";
import { listenOnFreePort } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";
import { type ServiceProcess, startService } from "./support/service-process.js";
import { sleep } from "./support/soak-traffic.js";
import { fetchReport, serveWatchers, type WatchersReport, type WatchProtocol } from "./support/watchers.js";

// Kills a gateway with thousands of watchers and starts it again, while transfers go on to change and others ask for quotes:
// how long until all watchers are back, what it costs the chains and the others, and whether a state is lost or repeated. The
// gateway has a core of its own. WATCHERS and CALLERS set the amounts, RECONNECT_PROTOCOL leaves the other protocols out.

const WATCHERS = Number(process.env.WATCHERS ?? 10_000);
/** Addresses among which the watchers are divided: WATCH_MAX_PER_CALLER allows 1,000 each. */
const CALLERS = Number(process.env.CALLERS ?? 50);
const TRANSFERS = 1_000;
const CHANGES_PER_SECOND = Number(process.env.CHANGES_PER_SECOND ?? 100);
const QUOTES_PER_SECOND = 100;
const PROTOCOLS: readonly WatchProtocol[] = ["SSE, HTTP/1.1", "SSE, HTTP/2", "gRPC"];
const [GATEWAY_CORE, OTHER_CORE] = [0, 1];
/** Until caches are filled and the chains are asked at their steady rate. */
const WARM_UP_MS = 10_000;
/** How long requests to the chains are counted, before the kill and after it. */
const COUNT_MS = Number(process.env.RECONNECT_SECONDS ?? 15) * 1_000;
const PATIENCE_MS = 60_000;
/** Only a state that is lost takes longer, or a watcher that does not come back. */
const SETTLE_MS = 20_000;

type Environment = Readonly<Record<string, string>>;

async function fetchQuotesReport({ url }: ServerProcess): Promise<PacedQuotesReport> {
  return (await (await fetch(url)).json()) as PacedQuotesReport;
}

/** Waits until all streams are open. Returns the last report, and what all of them count together. */
async function waitUntilBack(url: string): Promise<WatchersReport & { readonly secondsOver: boolean }> {
  const total = { received: 0, repeated: 0, reconnects: 0 };
  const failures: Record<string, number> = {};
  for (const began = performance.now(); ; await sleep(100)) {
    const report = await fetchReport(url);
    total.received += report.received;
    total.repeated += report.repeated;
    total.reconnects += report.reconnects;
    for (const [cause, count] of Object.entries(report.failures)) failures[cause] = (failures[cause] ?? 0) + count;
    const secondsOver = performance.now() - began > PATIENCE_MS;
    if (report.open === WATCHERS || secondsOver) return { ...report, ...total, failures, secondsOver };
  }
}

/** Counts the watchers that were not told of the last change of their transfer, once all were or should have been. */
async function countLost(url: string, counts: readonly number[]) {
  for (let repeated = 0, began = performance.now(); ; await sleep(500)) {
    const report = await fetchReport(url);
    repeated += report.repeated;
    const lost = report.known.filter((number, position) => number !== counts[position % TRANSFERS]).length;
    if (lost === 0 || performance.now() - began > SETTLE_MS) return { lost, repeated };
  }
}

async function measure(upstreams: ProxiedUpstreams, protocol: WatchProtocol): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "hop-reconnect-"));
  const file = join(folder, "index");
  const index = await ChangingIndex.create({ kind: "sqlite", file }, TRANSFERS);
  const { port } = new URL(await findFreeUrl());
  const service = { ...upstreams.environment, INDEX: `sqlite:${file}`, PORT: port };
  const startGateway = (): Promise<ServiceProcess> => startService(service, GATEWAY_CORE);
  let gateway = await startGateway();
  const { url } = gateway;
  const { transferIds } = index;
  const quotes = await startServer(
    "quotes",
    { url, paths: QUOTE_PATHS, perSecond: QUOTES_PER_SECOND },
    undefined,
    OTHER_CORE,
  );
  const watchersInput = { url, protocol, count: WATCHERS, callers: CALLERS, transferIds };
  const watchers = await startServer("watchers", watchersInput, undefined, OTHER_CORE);
  const stopChanges = index.startChanging(CHANGES_PER_SECOND);
  try {
    await sleep(WARM_UP_MS);
    upstreams.reset();
    await fetchQuotesReport(quotes);
    await sleep(COUNT_MS);
    const steadyRequests = upstreams.chainRequests().length;
    const steadyQuotes = await fetchQuotesReport(quotes);
    await fetchReport(watchers.url);
    upstreams.reset();
    const killedAt = performance.timeOrigin + performance.now();
    await gateway.stop();
    gateway = await startGateway();
    const listeningAt = performance.timeOrigin + performance.now();
    await fetchQuotesReport(quotes);
    const watchersBefore = await watchers.cpuUsage();
    const report = await waitUntilBack(watchers.url);
    const { lastOpenedAt } = report;
    const [cpu, watchersCpu] = [gateway.cpuSeconds(), await watchers.cpuUsage()];
    const stormQuotes = await fetchQuotesReport(quotes);
    await sleep(Math.max(killedAt + COUNT_MS - performance.timeOrigin - performance.now(), 0));
    const stormRequests = upstreams.chainRequests().length;
    await stopChanges();
    const { lost, repeated } = await countLost(watchers.url, index.counts);
    const seconds = (from: number, to: number): string => ((to - from) / 1_000).toFixed(1);
    const watcherSeconds = (watchersCpu.user + watchersCpu.system - watchersBefore.user - watchersBefore.system) / 1e6;
    const formatQuotes = ({ latencyMs, refused, unanswered, answered }: PacedQuotesReport): string => {
      const { p50, p99, max } = latencyMs;
      // Few watchers can be back before a quote is answered.
      const times = answered === 0 ? "none" : `${p50.toFixed(0)}, ${p99.toFixed(0)}, ${max.toFixed(0)} ms`;
      return `${times} (${answered}; ${refused}; ${unanswered})`;
    };
    const cells = [
      protocol,
      report.secondsOver
        ? `${report.open} of ${WATCHERS} only`
        : `${seconds(killedAt, listeningAt)}; ${seconds(killedAt, lastOpenedAt)} s`,
      `${report.reconnects}: ${JSON.stringify(report.failures)}`,
      `${lost}; ${report.repeated + repeated}`,
      `${steadyRequests}; ${stormRequests}`,
      `${formatQuotes(steadyQuotes)}; ${formatQuotes(stormQuotes)}`,
      `${cpu.toFixed(1)}; ${watcherSeconds.toFixed(1)} s`,
    ];
    return `| ${cells.join(" | ")} |`;
  } finally {
    await stopChanges();
    await Promise.all([gateway.stop(), watchers.stop(), quotes.stop()]);
    await index.close();
    rmSync(folder, { recursive: true });
  }
}

/** Returns a URL of this machine on which nobody listens. */
async function findFreeUrl(): Promise<string> {
  const server = createServer();
  const url = await listenOnFreePort(server);
  await new Promise((resolve) => server.close(resolve));
  return url;
}

async function measureAll(environment: Environment): Promise<void> {
  await enableIntervalMining(environment);
  const upstreams = await proxyUpstreams(environment);
  console.log(
    `${WATCHERS} watchers of ${TRANSFERS} transfers from ${CALLERS} addresses, ${CHANGES_PER_SECOND} changes and ${QUOTES_PER_SECOND} quotes per second; ` +
      `the gateway is killed and started again\n\n` +
      "| protocol | from the kill until it listens; until all are back | attempts that ended | watchers that lost a state; states repeated | " +
      `requests to the chains in ${COUNT_MS / 1_000} s, before; from the kill | quotes before; until all are back: p50, p99, max (answered; refused; unanswered) | ` +
      "CPU of the gateway; of the watchers |\n|---|---|---|---|---|---|---|",
  );
  try {
    for (const protocol of PROTOCOLS) {
      const only = process.env.RECONNECT_PROTOCOL;
      if (only === undefined || only === protocol) console.log(await measure(upstreams, protocol));
    }
  } finally {
    await upstreams.close();
  }
}

await runBench(() => withLocalNetwork(measureAll), {
  watchers: serveWatchers,
  quotes: serveQuotes,
});
