import { setTimeout as sleep } from "node:timers/promises";
import { type RedisServer, startRedis } from "../test/replicas/support/redis-server.js";
import { createLatencySamples } from "../test/support/attacks/latency-samples.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { runHttpLoad } from "./support/load/http-load-generator.js";
import { buildGetRequest } from "./support/load/http-requests.js";
import { type ProxiedUpstreams, proxyUpstreams, withLocalNetwork } from "./support/local-network.js";
import { buildQuotePath, fetchRoutes, type Route } from "./support/routes.js";
import { runBench } from "./support/server-process.js";
import { type ServiceProcess, startService } from "./support/service-process.js";
import { timedGet } from "./support/timed-get.js";

// Measures three replicas with Redis beside one without: upstream requests, quotes at hand while Redis is available, paused,
// gone, flushed and full of garbage, and what Redis gets. The local chains produce blocks about as often as the real ones.

const REPLICAS = 3;
const ROUTES = 10;
const CONNECTIONS = 8;
/** To each replica. */
const QUOTES_PER_SECOND = 100;
const ROUNDS = 3;
const ROUND_SECONDS = 8;
const WARM_UP_SECONDS = 6;
const LIMIT = "1000000";
const FAULT_SECONDS = 10;
/** Between two attacks on what is in Redis. */
const FAULT_INTERVAL_MS = 500;

interface Fleet {
  readonly name: string;
  readonly upstreams: ProxiedUpstreams;
  readonly services: readonly ServiceProcess[];
}

async function measure(environment: Readonly<Record<string, string>>): Promise<void> {
  await enableIntervalMining(environment);
  const redis = await startRedis();
  const upstreams = await proxyUpstreams(environment);
  const fleets: Fleet[] = [];
  const start = async (name: string, count: number, more: Readonly<Record<string, string>>): Promise<Fleet> => {
    const services = await Promise.all(
      Array.from({ length: count }, () => startService({ ...upstreams.environment, ...more })),
    );
    const fleet = { name, upstreams, services };
    fleets.push(fleet);
    return fleet;
  };
  const stop = async ({ services }: Fleet): Promise<void> => {
    await Promise.all(services.map((service) => service.stop()));
  };
  try {
    const one = await start("one, without Redis", 1, {});
    const routes = (await fetchRoutes(one.services[0]?.url ?? "")).slice(0, ROUTES);
    await measureUpstreams(one, routes);
    await stop(one);
    const three = await start("three, with Redis", REPLICAS, { SHARED_STATE: redis.url });
    await measureUpstreams(three, routes);
    await measureRedis(redis, three, routes);
    await measureFaults(redis, three, routes);
    await stop(three);
    const limits = { IP_RATE_LIMIT_REQ_PER_SEC: LIMIT };
    const alone = await start("limit counted in the process", 1, limits);
    await quote(alone, routes, WARM_UP_SECONDS);
    await measureLatency(alone, routes);
    await stop(alone);
    const counted = await start("limit counted by Redis", 1, { ...limits, SHARED_STATE: redis.url });
    await quote(counted, routes, WARM_UP_SECONDS);
    await measureFaults(redis, counted, routes);
  } finally {
    await Promise.all(fleets.map(stop));
    await redis.close();
    await upstreams.close();
  }
}

/** Sends quotes to all replicas; returns the latencies in milliseconds. */
async function quote({ services }: Fleet, routes: readonly Route[], seconds: number) {
  const samples = createLatencySamples();
  let refused = 0;
  await Promise.all(
    services.map(({ url }) =>
      runHttpLoad({
        url,
        connections: CONNECTIONS,
        seconds,
        perSecond: QUOTES_PER_SECOND,
        request: (index) => buildGetRequest(buildQuotePath(routes[index % routes.length] as Route, index)),
        onResponse(status, tookMs) {
          if (status !== 200) refused += 1;
          samples.add(tookMs);
        },
      }),
    ),
  );
  return { refused, median: samples.quantile(0.5), p99: samples.quantile(0.99) };
}

async function measureUpstreams(fleet: Fleet, routes: readonly Route[]): Promise<void> {
  const { name, upstreams, services } = fleet;
  const count = (): number => upstreams.chainRequests().length + upstreams.otherRequests().length;
  upstreams.reset();
  // The first quotes of all replicas at the same time.
  await Promise.all(
    services.flatMap(({ url }) => routes.map((route) => timedGet(`${url}${buildQuotePath(route, 0)}`))),
  );
  const first = count();
  await quote(fleet, routes, WARM_UP_SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    upstreams.reset();
    const { median, p99, refused } = await quote(fleet, routes, ROUND_SECONDS);
    const perSecond = (count() / ROUND_SECONDS).toFixed(1);
    console.log(
      `  ${name}: first quotes ${first}, then ${perSecond} upstream requests/s; p50 ${median.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${refused} refused`,
    );
  }
}

async function measureRedis(redis: RedisServer, fleet: Fleet, routes: readonly Route[]): Promise<void> {
  const before = await readRedisStats(redis);
  await quote(fleet, routes, ROUND_SECONDS);
  const after = await readRedisStats(redis);
  const perSecond = (name: string): string => ((after(name) - before(name)) / ROUND_SECONDS).toFixed(0);
  console.log(
    `  Redis for ${fleet.name}, per second: ${perSecond("total_commands_processed")} commands, ` +
      `${perSecond("total_net_input_bytes")} bytes in, ${perSecond("total_net_output_bytes")} bytes out; ` +
      `${(after("used_memory") / 1024 / 1024).toFixed(1)} MiB used`,
  );
}

async function readRedisStats(redis: RedisServer): Promise<(name: string) => number> {
  const text = String(await redis.command("INFO"));
  return (name) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1]);
}

async function measureLatency(fleet: Fleet, routes: readonly Route[]): Promise<void> {
  const { median, p99, refused } = await quote(fleet, routes, ROUND_SECONDS);
  console.log(`  ${fleet.name}: p50 ${median.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${refused} refused`);
}

/** Quotes while Redis is available and while something is wrong with it, in turn. */
async function measureFaults(redis: RedisServer, fleet: Fleet, routes: readonly Route[]): Promise<void> {
  for (const [what, begin, end] of listFaults(redis)) {
    await measureLatency(fleet, routes);
    const quotes = quote(fleet, routes, FAULT_SECONDS + 2);
    await sleep(1_000);
    await begin();
    await sleep(FAULT_SECONDS * 1_000);
    await end();
    const { median, p99, refused } = await quotes;
    console.log(
      `  ${fleet.name}, Redis ${what}: p50 ${median.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, ${refused} refused`,
    );
    await sleep(3_000);
  }
}

type Fault = readonly [name: string, begin: () => Promise<unknown>, end: () => Promise<unknown>];

function listFaults(redis: RedisServer): readonly Fault[] {
  let timer: NodeJS.Timeout | undefined;
  const repeat = (work: () => Promise<unknown>) => async () => {
    timer = setInterval(() => void work(), FAULT_INTERVAL_MS);
  };
  const stop = async () => clearInterval(timer);
  return [
    ["paused", () => redis.signalAll("SIGSTOP"), () => redis.signalAll("SIGCONT")],
    ["killed", () => redis.kill(), () => redis.start()],
    ["flushed again and again", repeat(() => redis.command("FLUSHALL")), stop],
    ["full of garbage", repeat(() => spoil(redis)), stop],
  ];
}

/** Puts nonsense under all keys that there are. */
async function spoil(redis: RedisServer): Promise<void> {
  for (const key of (await redis.command("KEYS", "*")) as string[]) await redis.command("SET", key, "nonsense");
}

await runBench(() => withLocalNetwork(measure));
