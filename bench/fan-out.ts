import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChangingIndex } from "./support/changing-index.js";
import { withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { runBench, startServer } from "./support/server-process.js";
import { sleep } from "./support/soak-traffic.js";
import { fetchReport, serveWatchers, type WatchersReport, type WatchProtocol } from "./support/watchers.js";

// Measures how soon thousands of watchers are told of changes of the index, what that costs, and whether any change is lost
// or told twice: over both versions of HTTP and gRPC. The gateway has a core of its own; watchers and changes share the other.
// WATCHERS, FAN_OUT_SECONDS and CHANGES_PER_SECOND set the amounts, FAN_OUT_PROTOCOL leaves the other protocols out.

const WATCHERS = Number(process.env.WATCHERS ?? 10_000);
const TRANSFERS = 1_000;
const MEASURE_SECONDS = Number(process.env.FAN_OUT_SECONDS ?? 20);
const CHANGES_PER_SECOND = Number(process.env.CHANGES_PER_SECOND ?? 100);
/** Callers that share the streams: one may not hold all. */
const CALLERS = 50;
const PROTOCOLS: readonly WatchProtocol[] = ["SSE, HTTP/1.1", "SSE, HTTP/2", "gRPC"];
const [GATEWAY_CORE, OTHER_CORE] = [0, 1];
/** Until all watchers were told of the last change. */
const SETTLE_MS = 3_000;

type Environment = Readonly<Record<string, string>>;

async function measure(environment: Environment, protocol: WatchProtocol): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "hop-fan-out-"));
  const file = join(folder, "index");
  const index = await ChangingIndex.create({ kind: "sqlite", file }, TRANSFERS);
  const gateway = await startServer("gateway", { ...environment, INDEX: `sqlite:${file}` }, undefined, GATEWAY_CORE);
  const { transferIds } = index;
  try {
    const before = await gateway.resourceUsage();
    const input = { url: gateway.url, protocol, count: WATCHERS, callers: CALLERS, transferIds };
    const watchers = await startServer("watchers", input, undefined, OTHER_CORE);
    await sleep(SETTLE_MS);
    const idle = await gateway.resourceUsage();
    // The first changes compile what the others run.
    const stopWarmUp = index.startChanging(CHANGES_PER_SECOND);
    await sleep(SETTLE_MS);
    await stopWarmUp();
    await sleep(SETTLE_MS);
    await fetchReport(watchers.url);
    const countedBefore = sum(index.counts);
    const [cpuBefore, generatorBefore] = [await gateway.cpuUsage(), await watchers.cpuUsage()];
    const began = performance.now();
    const stop = index.startChanging(CHANGES_PER_SECOND);
    await sleep(MEASURE_SECONDS * 1_000);
    await stop();
    const seconds = (performance.now() - began) / 1_000;
    const [cpu, generator] = [await gateway.cpuUsage(), await watchers.cpuUsage()];
    await sleep(SETTLE_MS);
    const report = await fetchReport(watchers.url);
    const after = await gateway.resourceUsage();
    const changes = sum(index.counts) - countedBefore;
    const share = (from: NodeJS.CpuUsage, to: NodeJS.CpuUsage): string =>
      `${((to.user + to.system - from.user - from.system) / 1e4 / seconds).toFixed(1)} %`;
    const kilobytes = (bytes: number): string => (bytes / WATCHERS / 1e3).toFixed(1);
    const cells = [
      protocol,
      `${changes}; ${report.received}`,
      `${report.latencyMs.p50.toFixed(0)}, ${report.latencyMs.p99.toFixed(0)}, ${report.latencyMs.max.toFixed(0)} ms`,
      `${countLost(report, index.counts)}; ${report.repeated}; ${report.skipped}`,
      `${share(cpuBefore, cpu)} (${((cpu.user + cpu.system - cpuBefore.user - cpuBefore.system) / report.received).toFixed(0)} us a message)`,
      share(generatorBefore, generator),
      `${kilobytes(idle.residentBytes - before.residentBytes)}; ${kilobytes(after.residentBytes - before.residentBytes)}; ${kilobytes(after.peakResidentBytes - before.residentBytes)} KB`,
      `${report.reconnects} ${JSON.stringify(report.failures)}`,
    ];
    await watchers.stop();
    return `| ${cells.join(" | ")} |`;
  } finally {
    await gateway.stop();
    await index.close();
    rmSync(folder, { recursive: true });
  }
}

/** Counts the watchers that do not know the last change of their transfer. */
function countLost({ known }: WatchersReport, counts: readonly number[]): number {
  return known.filter((number, index) => number !== counts[index % counts.length]).length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function measureAll(environment: Environment): Promise<void> {
  console.log(
    `${WATCHERS} watchers of ${TRANSFERS} transfers, ${CHANGES_PER_SECOND} changes per second for ${MEASURE_SECONDS} s\n\n` +
      "| protocol | changes; messages | p50, p99, max from change to message | lost; repeated; skipped | CPU of the gateway | CPU of the watchers | " +
      "memory per watcher, before changes; after; at most | streams that ended |\n|---|---|---|---|---|---|---|---|",
  );
  for (const protocol of PROTOCOLS) {
    const only = process.env.FAN_OUT_PROTOCOL;
    if (only === undefined || only === protocol) console.log(await measure(environment, protocol));
  }
}

await runBench(() => withLocalNetwork(measureAll), { gateway: serveGateway, watchers: serveWatchers });
