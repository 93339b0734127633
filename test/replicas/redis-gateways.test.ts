import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type LocalNetwork, startLocalNetwork } from "../../devnet/network.js";
import { buildService } from "../support/service/build-service.js";
import { QUOTE_PATHS } from "../support/service/quote-paths.js";
import { type RedisServer, startRedis } from "./support/redis-server.js";
import { type CountedUpstreams, type Replicas, startCountedUpstreams, startReplicas } from "./support/replicas.js";
import { leftOut, redisProgram } from "./support/server-programs.js";

// Three processes of the service share state through a real Redis, and do without it. The network is the test's own: a
// transaction of another test would change gas, and so quotes.

/** Fifteen times the shortest interval between two reads of a chain. */
const COUNTED_MS = 15_000;
/**
 * How often replicas may read for each read of a single process. Processes that do not share read as often as there are
 * processes. It is above 1 because a process that waits longer than a second for the read of another one reads for itself.
 */
const MAX_READ_RATIO = 1.5;
/** Time for the first quotes of a replica. */
const FIRST_QUOTES_MS = 1_500;
/** The state of a chain that the quotes of this test read. */
const STATE_KEY = "hop-gateway:4:{mainnet polygon}:value";
/** The default of QUOTE_MAX_STALE_MS. */
const MAX_STALE_SECONDS = 30;
/** Deliveries carry a deadline. One second in 256 it has a zero byte more, which costs less gas: some millionths. */
const MAX_DIFFERENCE = 1e-5;

interface Answer {
  readonly path: string;
  readonly status: number;
  readonly age: number;
  readonly received: string | undefined;
}

describe.skipIf(redisProgram === undefined)(`three replicas with Redis${leftOut(redisProgram)}`, () => {
  let command: string;
  let redis: RedisServer;
  let network: LocalNetwork;
  let upstreams: CountedUpstreams;
  /** The same chains, counted for a process that does not share. */
  let upstreamsOfOne: CountedUpstreams;
  const started: Replicas[] = [];

  beforeAll(async () => {
    command = await buildService();
    redis = await startRedis();
    network = await startLocalNetwork();
    [upstreams, upstreamsOfOne] = await Promise.all([startCountedUpstreams(network), startCountedUpstreams(network)]);
  });
  afterAll(async () => {
    await Promise.all([redis?.close(), upstreams?.close(), upstreamsOfOne?.close()]);
    await network?.stop();
  });
  afterEach(async () => {
    for (const replicas of started.splice(0)) replicas.kill();
    if (!redis.isRunning()) await redis.start();
    await redis.command("FLUSHALL");
  });

  async function start(count: number, environment: Readonly<Record<string, string>> = {}): Promise<Replicas> {
    const replicas = await startReplicas(command, count, {
      ...network.environment,
      ...upstreams.environment,
      SHARED_STATE: redis.url,
      REQUEST_TIMEOUT_MS: "60000",
      ...environment,
    });
    started.push(replicas);
    return replicas;
  }

  async function get(url: string, path: string): Promise<Answer> {
    const response = await fetch(`${url}${path}`);
    const body = (await response.json()) as { estimatedReceived?: string };
    const age = Number(response.headers.get("age") ?? 0);
    return { path, status: response.status, age, received: body.estimatedReceived };
  }

  async function countUpstreamRequests(replicas: Replicas, { reset, count }: CountedUpstreams): Promise<number> {
    reset();
    const startedAt = performance.now();
    // The first quotes of each replica one after the other, as replicas start: what is asked for at the very same time on a
    // busy machine may be read more than once. One replica gets as many, so that as much time passes.
    for (let start = 0; start < 3; start++) {
      const { url } = replicas.services[start % replicas.services.length] ?? { url: "" };
      await Promise.all(QUOTE_PATHS.map((path) => get(url, path)));
      await sleep((start + 1) * FIRST_QUOTES_MS - (performance.now() - startedAt));
    }
    while (performance.now() - startedAt < COUNTED_MS) {
      const calls = replicas.services.flatMap(({ url }) => QUOTE_PATHS.map((path) => get(url, path)));
      expect((await Promise.all(calls)).filter(({ status }) => status !== 200)).toEqual([]);
      await sleep(100);
    }
    return count();
  }

  /** Sends quotes to the replicas in turn at a constant rate, whether or not the earlier ones are answered. */
  function generateLoad({ services }: Replicas) {
    const sent: Promise<Answer>[] = [];
    const timer = setInterval(() => {
      const { url } = services[sent.length % services.length] ?? { url: "" };
      sent.push(get(url, QUOTE_PATHS[sent.length % QUOTE_PATHS.length] ?? ""));
    }, 20);
    return {
      count: () => sent.length,
      async stop(): Promise<readonly Answer[]> {
        clearInterval(timer);
        return Promise.all(sent);
      },
    };
  }

  const isConnected = (replicas: Replicas) => replicas.readMetric("hop_gateway_redis_connected");
  /** Returns whether all replicas are connected, and what one of them has read is in Redis. */
  const isSharing = async (replicas: Replicas): Promise<boolean> =>
    (await isConnected(replicas)).every((connected) => connected === 1) &&
    ((await redis.command("EXISTS", STATE_KEY)) as number) === 1;

  test.each([
    ["three replicas", 3, {}],
    ["two replicas of two workers each", 2, { WORKERS: "2" }],
  ])("%s send about as many requests to the upstreams as one process does", async (name, replicaCount, options) => {
    const alone = await start(1, { ...upstreamsOfOne.environment, SHARED_STATE: "off" });
    const sharing = await start(replicaCount, options);
    await expect.poll(async () => Math.min(...(await isConnected(sharing)))).toBeGreaterThan(0);
    // At the same time, so that the load of the machine is the same.
    const [one, many] = await Promise.all([
      countUpstreamRequests(alone, upstreamsOfOne),
      countUpstreamRequests(sharing, upstreams),
    ]);
    process.stdout.write(`upstream requests: ${one} of one process, ${many} of ${name}: ${(many / one).toFixed(2)}\n`);
    expect(many / one).toBeLessThanOrEqual(MAX_READ_RATIO);
  });

  test("answer every quote, and the same, whatever happens to Redis, and share again after it", async () => {
    const replicas = await start(3);
    await expect.poll(() => isConnected(replicas)).toEqual([1, 1, 1]);
    const load = generateLoad(replicas);
    const isWell = () => expect.poll(() => isSharing(replicas)).toBe(true);
    await isWell();

    await redis.command("FLUSHALL");
    await isWell();

    await redis.kill();
    await expect.poll(() => isConnected(replicas)).toEqual([0, 0, 0]);
    await sleep(2_000);
    await redis.start();
    await isWell();

    await redis.signalAll("SIGSTOP");
    await sleep(10_000);
    await redis.signalAll("SIGCONT");
    await isWell();

    await redis.command("CONFIG", "SET", "maxmemory", "1");
    await sleep(2_000);
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    await isWell();

    for (const key of (await redis.command("KEYS", "*")) as string[]) await redis.command("SET", key, "nonsense");
    await redis.command("FLUSHALL");
    await isWell();

    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(Math.max(...answers.map(({ age }) => age))).toBeLessThanOrEqual(MAX_STALE_SECONDS);
    for (const path of QUOTE_PATHS) {
      const amounts = answers.filter((answer) => answer.path === path).map(({ received }) => Number(received));
      const [least, most] = [Math.min(...amounts), Math.max(...amounts)];
      expect(most - least, `${path}: ${least} to ${most}`).toBeLessThanOrEqual(most * MAX_DIFFERENCE);
    }
    for (const { isRunning } of replicas.services) expect(isRunning()).toBe(true);
  });

  test("start and answer without Redis, and share when it comes", async () => {
    await redis.kill();
    const replicas = await start(3);
    const answers = await Promise.all(replicas.services.map(({ url }) => get(url, QUOTE_PATHS[0] ?? "")));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await isConnected(replicas)).toEqual([0, 0, 0]);
    await redis.start();
    await Promise.all(replicas.services.map(({ url }) => get(url, QUOTE_PATHS[0] ?? "")));
    await expect
      .poll(async () => {
        await Promise.all(replicas.services.map(({ url }) => get(url, QUOTE_PATHS[0] ?? "")));
        return isSharing(replicas);
      })
      .toBe(true);
  });

  test("let a caller pass as often as one replica does", async () => {
    const limit = 200;
    const replicas = await start(3, {
      IP_RATE_LIMIT_REQ_PER_SEC: `${limit}`,
      IP_RATE_LIMIT_WINDOW_MS: "600000",
    });
    await expect.poll(() => isConnected(replicas)).toEqual([1, 1, 1]);
    let passed = 0;
    for (let round = 0; round < limit / 5; round++) {
      // Fifteen at a time over three replicas.
      const calls = replicas.services.flatMap(({ url }) =>
        Array.from({ length: 5 }, async () => (await fetch(`${url}/v1/available-routes`)).status),
      );
      passed += (await Promise.all(calls)).filter((status) => status === 200).length;
    }
    process.stdout.write(`limit of ${limit} over three replicas: ${passed} passed\n`);
    expect(passed).toBeGreaterThanOrEqual(limit);
    expect(passed).toBeLessThanOrEqual(1.05 * limit);
  });
});
