import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "../test/replicas/support/redis-server.js";
import { computeMedian } from "./support/compare-servers.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { createHttpLoads } from "./support/load/create-loads.js";
import { describeGetRequests, VALUE } from "./support/load/http-requests.js";
import type { Load } from "./support/load/load.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { buildQuotePath, fetchRoutes } from "./support/routes.js";
import { runBench } from "./support/server-process.js";
import { type ServiceProcess, startService } from "./support/service-process.js";

// Measures what several workers cost the chains: upstream requests and quotes per second with WORKERS=3, which share through
// Redis, and with one process. The local chains produce blocks about as often as the real ones.

const WORKER_COUNTS = [1, 3];
const ROUTES = 10;
const AMOUNTS_PER_ROUTE = 2_000;
const ROUNDS = 7;
const ROUND_SECONDS = 5;
const WARM_UP_SECONDS = 6;
/** Shifts the rounds against the reads of the chains, whose interval divides two rounds: each would count the same ones. */
const PAUSE_MS = 300;

/** One service with its own upstreams, and what its rounds measured. */
interface Candidate {
  readonly workers: number;
  readonly redis: Awaited<ReturnType<typeof startRedis>>;
  readonly upstreams: ProxiedUpstreams;
  readonly service: ServiceProcess;
  readonly perSecond: number[];
  readonly upstreamPerSecond: number[];
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  await enableIntervalMining(environment);
  const candidates: Candidate[] = [];
  for (const workers of WORKER_COUNTS) {
    const upstreams = await proxyUpstreams(environment);
    // Of its own: in one Redis, the service that is not loaded would go on reading for the other one.
    const redis = await startRedis();
    const service = await startService({ ...upstreams.environment, WORKERS: `${workers}`, SHARED_STATE: redis.url });
    candidates.push({ workers, redis, upstreams, service, perSecond: [], upstreamPerSecond: [] });
  }
  try {
    const load = await createQuoteLoad(candidates);
    for (const { service } of candidates) await load.run(service.url, WARM_UP_SECONDS);
    for (let round = 0; round < ROUNDS; round++) {
      for (const candidate of candidates) {
        await measureRound(candidate, load);
        await sleep(PAUSE_MS);
      }
    }
    printTable(candidates, load);
  } finally {
    for (const { service, upstreams, redis } of candidates) {
      await service.stop();
      await upstreams.close();
      await redis.close();
    }
  }
}

/** Creates load of quotes on several routes, by the first generator that is installed. */
async function createQuoteLoad([first]: readonly Candidate[]): Promise<Load> {
  const routes = (await fetchRoutes(first?.service.url ?? "")).slice(0, ROUTES);
  const paths = Array.from({ length: AMOUNTS_PER_ROUTE }, (_, index) =>
    routes.map((route) => buildQuotePath(route, index)),
  ).flat();
  const [load] = createHttpLoads(describeGetRequests(VALUE, paths));
  if (load === undefined) throw new Error("there is no load generator");
  return load;
}

async function measureRound(
  { service, upstreams, perSecond, upstreamPerSecond }: Candidate,
  load: Load,
): Promise<void> {
  upstreams.reset();
  const began = performance.now();
  const { completed, seconds } = await load.run(service.url, ROUND_SECONDS);
  const requests = upstreams.chainRequests().length + upstreams.otherRequests().length;
  perSecond.push(completed / seconds);
  upstreamPerSecond.push((requests * 1000) / (performance.now() - began));
}

function printTable(candidates: readonly Candidate[], load: Load): void {
  const [baseline] = candidates;
  if (baseline === undefined) return;
  console.log(
    `GET /v1/quote on ${ROUTES} routes by ${load.generator}: ${ROUNDS} rounds of ${ROUND_SECONDS} s, means of the upstream requests, medians of the quotes\n`,
  );
  console.log("| `WORKERS` | upstream requests/s | ratio | quotes/s | ratio |");
  console.log("|---|---|---|---|---|");
  for (const { workers, perSecond, upstreamPerSecond } of candidates) {
    const cells = [
      computeMean(upstreamPerSecond).toFixed(1),
      (computeMean(upstreamPerSecond) / computeMean(baseline.upstreamPerSecond)).toFixed(2),
      Math.round(computeMedian(perSecond)).toLocaleString("en"),
      (computeMedian(perSecond) / computeMedian(baseline.perSecond)).toFixed(2),
    ];
    console.log(`| ${workers} | ${cells.join(" | ")} |`);
  }
}

function computeMean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

await runBench(() => withLocalNetwork(measure));
