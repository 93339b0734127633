import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  askLieQueries,
  COMMON_LIE,
  LIE_QUERIES,
  type LieAnswers,
  listUntrue,
} from "../fault-injection/lies/lie-queries.js";
import { type LyingNetwork, startLyingNetwork } from "../fault-injection/lies/lying-network.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../support/service/metrics-scrape.js";
import { type RedisServer, startRedis } from "./support/redis-server.js";
import { leftOut, redisProgram } from "./support/server-programs.js";

// Replicas with a quorum share what they have read through Redis, beside one that believes an endpoint that lies.

describe.skipIf(redisProgram === undefined)(`replicas with a quorum${leftOut(redisProgram)}`, () => {
  let redis: RedisServer;
  let network: LyingNetwork;
  let truth: LieAnswers;
  const gateways: TestGateway[] = [];

  async function startReplica(settings: Readonly<Record<string, string>>): Promise<TestGateway> {
    const gateway = await startGateway({ ...network.environment, REQUEST_TIMEOUT_MS: "60000", ...settings });
    gateways.push(gateway);
    return gateway;
  }

  const ask = ({ url }: TestGateway): Promise<LieAnswers> => askLieQueries(url, network.transfers);

  /** Starts a replica that is connected to Redis. */
  async function startSharing(quorum: number): Promise<TestGateway> {
    const gateway = await startReplica({ SHARED_STATE: redis.url, RPC_QUORUM: `${quorum}` });
    await expect.poll(async () => (await scrapeMetrics(gateway.metricsUrl)).sum("hop_gateway_redis_connected")).toBe(1);
    return gateway;
  }

  /**
   * Starts replicas and asks them, one after the other, until a condition holds: on a busy machine Redis is late, and what is
   * late is not used. Returns the queries that any of them answered with a lie.
   */
  async function askReplicas(
    quorum: number,
    isDone: (replica: TestGateway, untrue: ReadonlySet<string>) => Promise<boolean>,
  ): Promise<ReadonlySet<string>> {
    const untrue = new Set<string>();
    const askNext = async (): Promise<boolean> => {
      const replica = await startSharing(quorum);
      for (const name of listUntrue(await ask(replica), truth)) untrue.add(name);
      return isDone(replica, untrue);
    };
    await expect.poll(askNext, { interval: 500 }).toBe(true);
    return untrue;
  }

  /** Returns whether the states of two chains and two statuses are in Redis, under keys that contain this. */
  async function isShared(text: string): Promise<boolean> {
    const keys = (await redis.command("KEYS", `*${text}*`)) as string[];
    const count = (part: RegExp): number => keys.filter((key) => part.test(key)).length;
    return count(/\{mainnet .*\}:value$/) >= 2 && count(/\{status .*\}:value$/) === 2;
  }

  beforeAll(async () => {
    redis = await startRedis();
    network = await startLyingNetwork();
    truth = await ask(await startReplica({}));
    network.setLie(COMMON_LIE);
  });
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await network?.stop();
    await redis?.close();
  });

  test("share what they have confirmed, and take nothing from one that believes a lie", async () => {
    // Where the first endpoint is late, an honest one is asked beside it.
    await askReplicas(1, async (_, untrue) => untrue.size === LIE_QUERIES.length && isShared("hop-gateway:"));
    expect(await askReplicas(2, () => isShared("quorum2"))).toEqual(new Set());
    // Takes the statuses from another one.
    const hasReadNoStatus = async ({ metricsUrl }: TestGateway): Promise<boolean> =>
      (await scrapeMetrics(metricsUrl)).sum("hop_gateway_lookup_requests_total") === 0;
    expect(await askReplicas(2, hasReadNoStatus)).toEqual(new Set());
  });
});
