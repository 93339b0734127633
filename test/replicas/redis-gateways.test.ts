import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
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
/** Time for the first quotes of a replica. */
const FIRST_QUOTES_MS = 1_500;
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
  const started: Replicas[] = [];

  beforeAll(async () => {
    command = await buildService();
    redis = await startRedis();
    network = await startLocalNetwork();
    upstreams = await startCountedUpstreams(network);
  });
  afterAll(async () => {
    await Promise.all([redis?.close(), upstreams?.close()]);
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

  async function countUpstreamRequests(replicas: Replicas): Promise<number> {
    upstreams.reset();
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
    return upstreams.count();
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
  /** How many replicas read a chain for all. */
  const countReaders = async (replicas: Replicas): Promise<number> =>
    (await replicas.readMetric("hop_gateway_shared_state_readers", "chain mainnet polygon")).reduce((a, b) => a + b, 0);

  // The counts follow each other: again if the load of the machine changed in between.
  test("send about as many requests to the upstreams as one replica does", { retry: 2 }, async () => {
    const alone = await start(1, { SHARED_STATE: "off" });
    const one = await countUpstreamRequests(alone);
    alone.kill();
    const three = await countUpstreamRequests(await start(3));
    process.stdout.write(`upstream requests: ${one} of one replica, ${three} of three: ${(three / one).toFixed(2)}\n`);
    expect(three / one).toBeLessThanOrEqual(1.2);
  });

  test("answer every quote, and the same, whatever happens to Redis, and share again after it", async () => {
    const replicas = await start(3);
    await expect.poll(() => isConnected(replicas)).toEqual([1, 1, 1]);
    const load = generateLoad(replicas);
    const isWell = async () => {
      await expect.poll(() => isConnected(replicas)).toEqual([1, 1, 1]);
      await expect.poll(() => countReaders(replicas)).toBe(1);
    };
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

    // Under all keys and over all channels that there are.
    for (const key of (await redis.command("KEYS", "*")) as string[]) await redis.command("SET", key, "nonsense");
    for (const channel of (await redis.command("PUBSUB", "CHANNELS")) as string[])
      await redis.command("PUBLISH", channel, '{"block":["1","1"],"readAt":0}');
    await isWell();
    expect(
      (await replicas.readMetric("hop_gateway_redis_refused_values_total", "forged")).every((count) => count > 0),
    ).toBe(true);

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
    await expect.poll(() => isConnected(replicas)).toEqual([1, 1, 1]);
    await expect.poll(() => countReaders(replicas)).toBe(1);
  });

  test("of several workers each share as one: one process in all reads a chain", async () => {
    const replicas = await start(2, { WORKERS: "2" });
    await expect.poll(() => isConnected(replicas)).toEqual([1, 1]);
    // Connections are distributed to the workers in turn.
    const getOnNewConnection = async (url: string): Promise<number> => {
      const response = await fetch(`${url}${QUOTE_PATHS[0]}`, { headers: { connection: "close" } });
      await response.text();
      return response.status;
    };
    const askAll = () =>
      Promise.all(replicas.services.flatMap(({ url }) => Array.from({ length: 4 }, () => getOnNewConnection(url))));
    const statuses: number[] = [];
    await expect
      .poll(async () => {
        statuses.push(...(await askAll()));
        return countReaders(replicas);
      })
      .toBe(1);
    // The machine that does not read a chain takes what the other one has read.
    const count = () => replicas.readMetric("hop_gateway_upstream_requests_total", 'chain="polygon"');
    const countReads = async (): Promise<readonly number[]> => {
      const before = await count();
      for (let round = 0; round < 30; round++) {
        statuses.push(...(await askAll()));
        await sleep(100);
      }
      return (await count()).map((value, index) => value - (before[index] ?? 0)).sort((a, b) => a - b);
    };
    // Again if the other one has just taken over.
    await expect.poll(countReads).toEqual([0, expect.toSatisfy((reads: number) => reads > 0)]);
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  test.each([
    ["HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["nothing", ""],
    ["replies that nobody asked for", "%0\r\n_\r\n>1\r\n_\r\n:1\r\n"],
    ["a text without end", `%0\r\n$${2 ** 31}\r\n${"x".repeat(65_536)}`],
  ])("answer beside a server that speaks %s", async (_, junk) => {
    const sockets = new Set<Socket>();
    const fake = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("data", () => socket.write(junk));
    }).listen(0, "127.0.0.1");
    await once(fake, "listening");
    const url = `redis://127.0.0.1:${(fake.address() as AddressInfo).port}`;
    const replicas = await start(1, { SHARED_STATE: url, IP_RATE_LIMIT_REQ_PER_SEC: "1000" });
    const load = generateLoad(replicas);
    await sleep(3_000);
    expect((await load.stop()).filter(({ status }) => status !== 200)).toEqual([]);
    expect(replicas.services[0]?.isRunning()).toBe(true);
    for (const socket of sockets) socket.destroy();
    fake.close();
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
