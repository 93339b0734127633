import { cpus, loadavg } from "node:os";
import { startLocalNetwork } from "../devnet/network.js";
import { startPgBouncer } from "../test/replicas/support/pgbouncer.js";
import { startPostgres } from "../test/replicas/support/postgres-server.js";
import { type RedisServer, startRedis } from "../test/replicas/support/redis-server.js";
import { QUOTE_PATHS } from "../test/support/service/quote-paths.js";
import { enableIntervalMining } from "./support/interval-mining.js";
import { runRollingRestart } from "./support/rolling-restart.js";

// Restarts three replicas behind HAProxy one after the other, under load. Needs HAProxy, PostgreSQL, PgBouncer, Redis and h2load.

const WATCHES = Number(process.env.WATCHES ?? 5_000);
const REQUESTS_PER_SECOND = Number(process.env.REQUESTS_PER_SECOND ?? 2_000);

type LocalNetwork = Awaited<ReturnType<typeof startLocalNetwork>>;

/** Runs it, and prints what was counted. */
async function measureRollingRestart(network: LocalNetwork, redis: RedisServer): Promise<void> {
  const postgres = await startPostgres();
  const bouncer = await startPgBouncer(postgres);
  try {
    const direct = new URL(await postgres.createDatabase());
    const index = { INDEX: bouncer.url(direct.pathname.slice(1)), INDEX_LISTEN_URL: direct.href };
    const [loadBefore = 0] = loadavg();
    const result = await runRollingRestart({
      environment: { ...network.environment, ...index, SHARED_STATE: redis.url },
      ...{ chains: network.chains, quotePaths: QUOTE_PATHS, watches: WATCHES, requestsPerSecond: REQUESTS_PER_SECOND },
    });
    const { requests } = result;
    const [loadAfter = 0] = loadavg();
    console.log(
      `\nrolling restart, ${WATCHES} watches, ${REQUESTS_PER_SECOND} requests/s\n\n| what | count |\n|---|---|`,
    );
    console.log(
      `| requests; failed; slowest | ${requests.sent}; ${requests.failed}; ${Math.round(requests.slowestMs)} ms |`,
    );
    const { byReplicas, byHaproxy } = result.errors;
    console.log(`| answers of 500 and more by replicas; by HAProxy | ${byReplicas}; ${byHaproxy} |`);
    console.log(
      `| exit codes; seconds of each restart | ${result.exitCodes.join(", ")}; ${result.restartSeconds.map((s) => s.toFixed(1)).join(", ")} |`,
    );
    console.log(`| states received; lost; repeated | ${result.states}; ${result.lost}; ${result.repeated} |`);
    const failed = [...result.failedAttempts].map(([cause, count]) => `${count} (${cause})`).join(", ") || "0";
    console.log(`| streams resumed; attempts that failed | ${result.resumptions}; ${failed} |`);
    console.log(
      `| cores; load average before, after | ${cpus().length}; ${loadBefore.toFixed(1)}, ${loadAfter.toFixed(1)} |`,
    );
  } finally {
    await bouncer.close();
    await postgres.close();
  }
}

const network = await startLocalNetwork({ log: (line) => console.log(`(local network: ${line})`) });
const redis = await startRedis();
try {
  await enableIntervalMining(network.environment);
  await measureRollingRestart(network, redis);
} finally {
  await redis.close();
  await network.stop();
}
process.exit();
