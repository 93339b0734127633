import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SeededTransfer } from "../devnet/seed/seeded-transfer.js";
import { getNetwork } from "../src/hop/networks.js";
import { countSequentialRounds, type ProxiedRequest } from "../test/support/stubs/rpc-proxy.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { serveGateway } from "./support/recorded-server.js";
import { runBench, type ServerProcess, startServer } from "./support/server-process.js";
import { timedGet } from "./support/timed-get.js";

// Measures the status of a transfer: upstream requests, sequential rounds and time at several network latencies, read from
// the chains, from the index, and from the status cache. Then the upstream traffic of an index on idle chains.

type Environment = Readonly<Record<string, string>>;

const LATENCIES_MS = [0, 50, 100];
/** How long the idle index is observed, while chains produce blocks about as fast as the real ones. */
const IDLE_SECONDS = 60;
const INDEX_TIMEOUT_MS = 60_000;
/** Longer than a mutable status is cached, on any chain used here. */
const CACHE_TTL_MS = 2_500;

/** Kinds of query, each for a different transfer, so that none is cached by the one before. */
const queries: readonly (readonly [string, string, (transfer: SeededTransfer) => string])[] = [
  ["by hash, bonded", "usdt-polygon-arbitrum", byHash],
  ["by hash, pending", "eth-base-polygon", byHash],
  ["by hash, from L1", "eth-ethereum-arbitrum", byHash],
  ["by id", "hop-arbitrum-optimism", ({ transferId }) => `transferId=${transferId}`],
  ["by id, from L1", "dai-ethereum-optimism", ({ transferId }) => `transferId=${transferId}`],
];

function byHash({ transactionHash }: SeededTransfer): string {
  return `transferHash=${transactionHash}`;
}

/** Cost of one look-up. */
interface Cost {
  readonly tookMs: number;
  readonly requests: readonly ProxiedRequest[];
}

async function measureRequest(gateway: ServerProcess, upstreams: ProxiedUpstreams, query: string): Promise<Cost> {
  upstreams.reset();
  const { tookMs, completedAt } = await timedGet(`${gateway.url}/v1/transfer-status?${query}`);
  return { tookMs, requests: upstreams.chainRequests().filter(({ arrivedAt }) => arrivedAt <= completedAt) };
}

async function measureLookups(
  upstreams: ProxiedUpstreams,
  transfers: readonly SeededTransfer[],
  index: string,
): Promise<void> {
  console.log(`one look-up; time at ${LATENCIES_MS.join(", ")} ms of network latency`);
  for (const [name, transferName, queryOf] of queries) {
    const transfer = transfers.find(({ name: candidate }) => candidate === transferName);
    if (transfer === undefined) throw new Error(`no seeded transfer is named ${transferName}`);
    const query = queryOf(transfer);
    const costs: Record<"first of process" | "chains" | "cache" | "index", Cost[]> = {
      "first of process": [],
      chains: [],
      cache: [],
      index: [],
    };
    for (const latencyMs of LATENCIES_MS) {
      upstreams.setLatency(latencyMs);
      const gateway = await startServer("gateway", upstreams.environment);
      costs["first of process"].push(await measureRequest(gateway, upstreams, query));
      costs.cache.push(await measureRequest(gateway, upstreams, query));
      // By now only immutable statuses are still cached.
      await sleep(CACHE_TTL_MS);
      costs.chains.push(await measureRequest(gateway, upstreams, query));
      await gateway.stop();
      const indexed = await startServer("gateway", { ...upstreams.environment, INDEX: index });
      await waitUntilIndexed(indexed, query);
      costs.index.push(await measureRequest(indexed, upstreams, query));
      await indexed.stop();
    }
    for (const [source, measured] of Object.entries(costs)) print(name, source, measured);
  }
}

/** Waits until the index is the source of the status and the chains' one has left the cache. */
async function waitUntilIndexed(gateway: ServerProcess, query: string): Promise<void> {
  const began = performance.now();
  while (performance.now() - began < INDEX_TIMEOUT_MS) {
    const { headers } = await fetch(`${gateway.url}/v1/transfer-status?${query}`);
    await sleep(CACHE_TTL_MS);
    if (headers.get("source") === "index") return;
  }
  throw new Error("the index did not learn of the transfer in time");
}

function print(name: string, source: string, costs: readonly Cost[]): void {
  const last = costs.at(-1);
  if (last === undefined) throw new Error("nothing was measured");
  const times = costs.map(({ tookMs }) => tookMs.toFixed(0).padStart(4)).join(" /");
  const { requests } = last;
  const calls = requests.flatMap((request) => request.calls).length;
  console.log(
    `  ${name.padEnd(18)} ${source.padEnd(18)}${times} ms  ${countSequentialRounds(requests)} rounds,` +
      ` ${requests.length.toString().padStart(2)} requests, ${calls.toString().padStart(2)} calls`,
  );
}

/** Measures upstream requests per hour of an index on chains without events. */
async function measureIdle(environment: Environment, upstreams: ProxiedUpstreams, index: string): Promise<void> {
  await enableIntervalMining(environment);
  upstreams.setLatency(0);
  const gateway = await startServer("gateway", { ...upstreams.environment, INDEX: index });
  try {
    await sleep(10_000);
    upstreams.reset();
    await sleep(IDLE_SECONDS * 1000);
    console.log(`realtime sync on idle chains, measured over ${IDLE_SECONDS} s, per hour`);
    for (const { slug, blockTimeMs } of getNetwork("mainnet").chains.values()) {
      const requests = upstreams.requestsOf(slug);
      const perHour = (count: number): string =>
        Math.round((count * 3600) / IDLE_SECONDS)
          .toString()
          .padStart(6);
      const calls = requests.flatMap((request) => request.calls).length;
      console.log(
        `  ${slug.padEnd(10)} blocks of ${blockTimeMs / 1000} s: ${perHour(requests.length)} requests, ${perHour(calls)} calls`,
      );
    }
  } finally {
    await gateway.stop();
  }
}

async function measure(environment: Environment, transfers: readonly SeededTransfer[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "hop-status-"));
  const upstreams = await proxyUpstreams(environment);
  try {
    const index = `sqlite:${join(folder, "index")}`;
    await measureLookups(upstreams, transfers, index);
    await measureIdle(environment, upstreams, index);
  } finally {
    await upstreams.close();
    await rm(folder, { recursive: true, force: true });
  }
}

await runBench(() => withLocalNetwork(measure), { gateway: serveGateway });
