import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { buildService } from "../support/service/build-service.js";
import { QUOTE_PATHS } from "../support/service/quote-paths.js";
import { startServiceProcess } from "../support/service/service-process.js";
import { type SentTestTransfer, sendTestTransfers } from "./support/callers/transfer-sender.js";
import { createWatchClient, type WatchCaller, watchEvents, watchMessages } from "./support/callers/watch-caller.js";
import { countFaults } from "./support/callers/watch-record.js";
import { type Haproxy, startHaproxy } from "./support/haproxy.js";
import { HAPROXY_SERIES } from "./support/haproxy-series.js";
import { type PgBouncer, startPgBouncer } from "./support/pgbouncer.js";
import { type PostgresServer, startPostgres } from "./support/postgres-server.js";
import { type RedisServer, startRedis } from "./support/redis-server.js";
import { type ReplicaGroup, startReplicaGroup } from "./support/replica-group.js";
import {
  haproxyProgram,
  leftOut,
  pgBouncerProgram,
  postgresPrograms,
  redisProgram,
} from "./support/server-programs.js";

// The whole deployment: HAProxy with the configuration of deploy/, three replicas, PostgreSQL behind PgBouncer, Redis, and the
// local chains. Replicas stop and are killed while callers ask and watch.

const programs = [haproxyProgram, postgresPrograms, pgBouncerProgram, redisProgram];
const CALLERS_OF_EACH_PROTOCOL = 30;

describe.skipIf(programs.includes(undefined))(`three replicas behind HAProxy${leftOut(...programs)}`, () => {
  let postgres: PostgresServer;
  let bouncer: PgBouncer;
  let redis: RedisServer;
  let group: ReplicaGroup;
  let haproxy: Haproxy;
  const callers: WatchCaller[] = [];

  beforeAll(async () => {
    const command = await buildService();
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    bouncer = await startPgBouncer(postgres);
    const direct = new URL(await postgres.createDatabase());
    group = await startReplicaGroup((port) =>
      startServiceProcess(command, {
        PORT: `${port}`,
        LOG_LEVEL: "info",
        TRUST_PROXY: "true",
        INDEX: bouncer.url(direct.pathname.slice(1)),
        INDEX_LISTEN_URL: direct.href,
        SHARED_STATE: redis.url,
      }),
    );
    haproxy = await startHaproxy(group.ports);
    await areAllUp();
  });
  // The replica with the fewest streams gets the next ones.
  afterEach(async () => {
    await Promise.all(callers.splice(0).map((caller) => caller.close()));
  });
  afterAll(async () => {
    group?.kill();
    await haproxy?.close();
    await bouncer?.close();
    await Promise.all([postgres?.close(), redis?.close()]);
  });

  async function areAllUp(): Promise<void> {
    await vi.waitFor(async () => expect(await haproxy.readUp()).toEqual([true, true, true]), { timeout: 60_000 });
  }

  async function watch(transfers: readonly SentTestTransfer[]): Promise<readonly WatchCaller[]> {
    const hashes = transfers.map(({ transactionHash }) => transactionHash);
    const client = createWatchClient(haproxy.url);
    const opened = Array.from({ length: CALLERS_OF_EACH_PROTOCOL }, () => [
      watchEvents(haproxy.url, { hashes }),
      watchMessages(client, { hashes }),
    ]).flat();
    callers.push(...opened);
    await expect
      .poll(() => opened.filter(({ record }) => record.states.length === hashes.length).length)
      .toBe(opened.length);
    return opened;
  }

  /** Returns what is wrong with what the callers have received, once nothing more is missing. */
  async function findFaults(watching: readonly WatchCaller[], transfers: readonly SentTestTransfer[]) {
    const expected = new Map(transfers.map(({ transactionHash }) => [transactionHash, ["PENDING", "BONDED"]]));
    const count = () => watching.map(({ record }) => countFaults(record, expected));
    await expect.poll(() => count().reduce((sum, { lost }) => sum + lost, 0)).toBe(0);
    // What is repeated would come when the streams are resumed, or with the next state.
    return {
      repeated: count().reduce((sum, { repeated }) => sum + repeated, 0),
      failures: watching.flatMap(({ record }) => record.failures),
    };
  }

  /** Asks without pause, with several requests at the same time. */
  function startLoad() {
    let isStopped = false;
    let count = 0;
    const failures: string[] = [];
    const work = Array.from({ length: 4 }, async () => {
      while (!isStopped) {
        const path = QUOTE_PATHS[count++ % QUOTE_PATHS.length];
        const response = await fetch(`${haproxy.url}${path}`).catch((error: Error) => error);
        if (response instanceof Error) failures.push(String(response.cause ?? response));
        else {
          const body = await response.text();
          if (response.status !== 200) failures.push(`${response.status} ${body}`);
        }
        await sleep(5);
      }
    });
    return async () => {
      isStopped = true;
      await Promise.all(work);
      return { count, failures };
    };
  }

  test("HAProxy has the metrics that alerts and dashboard use", async () => {
    const text = await haproxy.readMetrics();
    for (const [name, labels] of HAPROXY_SERIES) {
      const [, found = ""] = new RegExp(`^${name}(?:\\{(.*)\\})? `, "m").exec(text) ?? [undefined, "no such metric"];
      expect(
        [...found.matchAll(/(\w+)="/g)].map(([, label]) => label),
        name,
      ).toEqual(labels);
      expect(found, name).not.toBe("no such metric");
    }
  });

  test("a rolling restart fails no request, and loses and repeats no state", async () => {
    const transfers = await sendTestTransfers(inject("network").chains, 6);
    const watching = await watch(transfers);
    const stopLoad = startLoad();
    const deliveries = transfers.values();
    for (const index of [0, 1, 2]) {
      const ended = group.end(index, "SIGTERM");
      await deliveries.next().value?.deliver();
      expect(await ended).toBe(0);
      await deliveries.next().value?.deliver();
      await group.start(index);
      await areAllUp();
    }
    expect(await findFaults(watching, transfers)).toEqual({ repeated: 0, failures: [] });
    const { count, failures } = await stopLoad();
    expect(failures).toEqual([]);
    expect(count).toBeGreaterThan(100);
    expect(Math.min(...watching.map(({ record }) => record.resumptions))).toBeGreaterThan(0);
  });

  test("a replica that is killed loses and repeats no state of its watches", async () => {
    const transfers = await sendTestTransfers(inject("network").chains, 2);
    const watching = await watch(transfers);
    await transfers[0]?.deliver();
    await group.end(1, "SIGKILL");
    await transfers[1]?.deliver();
    expect((await findFaults(watching, transfers)).repeated).toBe(0);
    expect(watching.some(({ record }) => record.resumptions > 0)).toBe(true);
    await group.start(1);
    await areAllUp();
  });
});
