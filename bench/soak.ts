import { type RpcProxy, startRpcProxy } from "../test/support/stubs/rpc-proxy.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { fitSlope } from "./support/linear-regression.js";
import { withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { fetchRoutes } from "./support/routes.js";
import { type ResourceUsage, runBench, type ServerProcess, startServer } from "./support/server-process.js";
import {
  dropConnections,
  generateLoad,
  injectFaults,
  REQUESTS_PER_SECOND,
  rotateCustomEndpoints,
  type SoakState,
  sleep,
} from "./support/soak-traffic.js";
import { runWatches } from "./support/soak-watches.js";

// Measures what a process still holds of finished requests: every protocol at a moderate rate, hardly any key twice, with
// custom endpoints and faults that come and go, and dropped connections; beside them watches of transfers, which are sent
// and delivered meanwhile. SOAK_MINUTES sets the duration, SOAK_WATCHES the number of watches.

const minutes = Number(process.env.SOAK_MINUTES ?? 10);
const watches = Number(process.env.SOAK_WATCHES ?? 1_000);
const SAMPLE_INTERVAL_MS = 10_000;
/** Share of the run in which caches fill and code is compiled; its samples are ignored. */
const WARM_UP_SHARE = 0.25;
/** The run fails if the heap grows faster with 95 % confidence, in bytes per minute. */
const MAX_HEAP_GROWTH_BYTES = 2 ** 20;
/** After this time without a request, every idle connection has timed out. */
const SETTLE_MS = 75_000;

interface Sample {
  /** Minutes since the start. */
  readonly at: number;
  readonly usage: ResourceUsage;
}

async function sample(gateway: ServerProcess, state: SoakState): Promise<Sample[]> {
  const samples: Sample[] = [];
  const began = performance.now();
  for (let due = SAMPLE_INTERVAL_MS; due <= minutes * 60_000; due += SAMPLE_INTERVAL_MS) {
    await sleep(due - (performance.now() - began));
    const usage = await gateway.resourceUsage();
    samples.push({ at: (performance.now() - began) / 60_000, usage });
    const responses = [...state.outcomes.values()].reduce((sum, count) => sum + count, 0);
    const { heapBytes, residentBytes, sockets, timers, descriptors } = usage;
    console.log(
      `  ${(due / 1_000).toString().padStart(5)} s: ${responses} responses, heap ${formatMebibytes(heapBytes)}, resident ${formatMebibytes(residentBytes)}, ` +
        `${sockets} sockets, ${timers} timers, ${descriptors} descriptors`,
    );
  }
  state.isOver = true;
  return samples;
}

function formatMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Prints the growth of each resource per minute. Returns whether the heap grows slowly enough. */
function isFlat(samples: readonly Sample[]): boolean {
  const steady = samples.filter(({ at }) => at > minutes * WARM_UP_SHARE);
  console.log(`growth per minute, least squares over ${steady.length} samples, with 95 % confidence interval`);
  const slope = (name: keyof ResourceUsage, title: string, unit: number): boolean => {
    const { perUnit, margin } = fitSlope(steady.map(({ at, usage }) => ({ at, value: usage[name] })));
    console.log(`  ${title.padEnd(13)} ${(perUnit / unit).toFixed(3).padStart(8)} +- ${(margin / unit).toFixed(3)}`);
    return perUnit - margin <= MAX_HEAP_GROWTH_BYTES;
  };
  slope("residentBytes", "MiB resident", 2 ** 20);
  slope("sockets", "sockets", 1);
  slope("timers", "timers", 1);
  slope("descriptors", "descriptors", 1);
  return slope("heapBytes", "MiB of heap", 2 ** 20);
}

/** Returns whether all sockets are closed once the load is over. */
async function isSettled(gateway: ServerProcess, before: ResourceUsage): Promise<boolean> {
  await sleep(SETTLE_MS);
  const after = await gateway.resourceUsage();
  for (const name of ["sockets", "timers", "descriptors"] as const) {
    console.log(
      `  ${name} before the first request and ${SETTLE_MS / 1_000} s after the last: ${before[name]}, ${after[name]}`,
    );
  }
  return after.sockets <= before.sockets;
}

async function measure(
  environment: Readonly<Record<string, string>>,
  transfers: readonly { readonly transferId: string; readonly expectedState: string }[],
): Promise<void> {
  await enableIntervalMining(environment);
  const proxies = new Map<string, RpcProxy>();
  const proxied: Record<string, string> = { ...environment };
  for (const [name, url] of Object.entries(environment)) {
    if (!name.startsWith("RPC_URL_")) continue;
    const proxy = await startRpcProxy(url);
    proxies.set(name, proxy);
    proxied[name] = proxy.url;
  }
  const gateway = await startServer("gateway", { ...proxied, WATCH_MAX_PER_CALLER: "0" });
  const before = await gateway.resourceUsage();
  const state: SoakState = { outcomes: new Map(), problems: [], isOver: false };
  try {
    const routes = await fetchRoutes(gateway.url);
    const ids = transfers
      .filter(({ expectedState }) => expectedState !== "NOT_FOUND")
      .map(({ transferId }) => transferId);
    const endpoints: string[] = ["http://127.0.0.1:1"];
    console.log(`soak: ${minutes} minutes, ${REQUESTS_PER_SECOND} requests per second, ${watches} watches`);
    const [samples, watched] = await Promise.all([
      sample(gateway, state),
      runWatches({ url: gateway.url, watches }, { environment, ids }, state),
      generateLoad(gateway, { routes, ids, endpoints }, state),
      dropConnections(gateway, routes, state),
      injectFaults(proxies, state),
      rotateCustomEndpoints(environment.RPC_URL_POLYGON ?? "", endpoints, state),
    ]);
    const outcomes = [...state.outcomes].sort(([, a], [, b]) => b - a).map(([name, count]) => `${name}: ${count}`);
    console.log(`responses: ${outcomes.join(", ")}; invalid: ${state.problems.length}`);
    const firstOfKind = new Map<string, { readonly first: string; count: number }>();
    for (const problem of state.problems) {
      const kind = problem.split(":")[0] ?? "";
      const known = firstOfKind.get(kind);
      if (known === undefined) firstOfKind.set(kind, { first: problem, count: 1 });
      else known.count += 1;
    }
    for (const { first, count } of firstOfKind.values()) console.log(`  ${count} times: ${first}`);
    const { events, reconnects, completed, refused } = watched;
    console.log(
      `watches: ${events} events, ${reconnects} connections resumed, ${completed} watches complete, ${refused} streams refused`,
    );
    const hasPassed = [isFlat(samples), await isSettled(gateway, before), state.problems.length === 0].every(Boolean);
    if (!hasPassed) process.exitCode = 1;
  } finally {
    state.isOver = true;
    await gateway.stop();
    await Promise.all([...proxies.values()].map((proxy) => proxy.close()));
  }
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
