import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { generateEndpointNameKey } from "../chain/endpoints/endpoint-name.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { createLogger } from "../observability/log.js";
import { openNonBlocking } from "../observability/log-descriptor.js";
import { createClusterMetrics } from "../observability/metrics/cluster-metrics.js";
import { PROMETHEUS_MEDIA_TYPE } from "../observability/metrics/media-type.js";
import { createLivenessReport } from "../observability/probes.js";
import { answerPings, createWorkerLiveness } from "../observability/worker-liveness.js";
import { monotonicNow } from "../resilience/clock.js";
import { createWorkerChannel, joinOverIpc } from "../shared-state/cluster-ipc.js";
import { createSharedStateHub } from "../shared-state/hub.js";
import { composeMetricsListener } from "./compose-metrics-listener.js";
import type { Gateway, GatewayOptions } from "./gateway.js";
import { COMPARISON_TOPIC, createRecentDifferences } from "./shadow-comparison/recent-differences.js";
import { describeStartupError, StartupError } from "./startup/startup-error.js";
import { logStartupWarnings } from "./startup/startup-warnings.js";
import { exitAfter } from "./stop-on-signals.js";

/**
 * Messages from a worker to the primary. The channel also carries the messages of the cluster metrics, of the
 * liveness checks and of the rate limiter: messages of unknown type are ignored.
 */
type WorkerToPrimaryMessage =
  | { readonly type: "listening"; readonly url: string }
  | { readonly type: "startup-failed"; readonly reason: string };

/** Messages from the primary to a worker. */
interface PrimaryToWorkerMessage {
  readonly type: "stop";
}

/** Time a worker has to stop, in addition to the request timeout. */
const STOP_MARGIN_MS = 3_000;
/** A worker that ran for at least this long resets the restart backoff. */
const MIN_STABLE_UPTIME_MS = 10_000;
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

/** Environment variable by which the primary tells its workers the key of the names of endpoints. */
const ENDPOINT_NAME_KEY_VARIABLE = "HOP_GATEWAY_ENDPOINT_NAME_KEY";

interface WorkerExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly uptimeMs: number;
}

/** Of a worker for which the system lacks memory: Node.js throws then. */
const NOT_STARTED: WorkerExit = { code: null, signal: null, uptimeMs: 0 };

/** A forked process. */
interface WorkerHandle {
  readonly worker: Worker;
  /** Resolves when the worker listens; rejects with StartupError if it exits before that. */
  readonly url: Promise<string>;
  readonly exited: Promise<WorkerExit>;
  isListening(): boolean;
}

export const isWorker = cluster.isWorker;

/**
 * Runs the gateway in `config.workerCount` processes that share one port and one rate limit per caller. Restarts workers
 * that exit; fails the start if any worker exits before it listens.
 */
export function createWorkerSupervisor(config: Config): Gateway {
  const logger = createLogger(config.logLevel);
  // Node's default is the path of the command line, which leads to other code after a build.
  cluster.setupPrimary({ exec: fileURLToPath(new URL("../main.js", import.meta.url)) });
  const running = new Set<WorkerHandle>();
  const shutdown = new AbortController();
  const metrics = createClusterMetrics();
  // The same in all workers, also in restarted ones: their metrics are summed by the names of endpoints.
  const endpointNameKey = generateEndpointNameKey();
  const differences = createRecentDifferences();
  const sharedStateHub = createSharedStateHub({
    now: monotonicNow,
    onPublish(topic, text) {
      if (topic === COMPARISON_TOPIC) differences.add(text);
    },
  });
  const checkWorkers = createWorkerLiveness(() =>
    [...running].filter((handle) => handle.isListening()).map(({ worker }) => worker),
  );
  const metricsListener = composeMetricsListener({
    config,
    logger,
    readMetrics: async () => ({ status: 200, contentType: PROMETHEUS_MEDIA_TYPE, body: await metrics.renderText() }),
    readLiveness: () => (shutdown.signal.aborted ? createLivenessReport(true) : checkWorkers()),
    differences,
  });

  function forkWorker(port: number): WorkerHandle {
    // The port is fixed: workers that pick a free port themselves would get another one once all of them have exited.
    const worker = cluster.fork({ PORT: `${port}`, [ENDPOINT_NAME_KEY_VARIABLE]: endpointNameKey });
    const startedAt = performance.now();
    let isListening = false;
    const exited = new Promise<WorkerExit>((resolve) => {
      const handleExit = (code: number | null, signal: string | null): void =>
        resolve({ code, signal, uptimeMs: performance.now() - startedAt });
      worker.once("exit", handleExit);
      worker.on("error", (error) => {
        logger.warn({ workerPid: worker.process.pid, error: error.message }, "worker is unreachable");
        if (worker.process.pid === undefined) handleExit(null, null);
      });
    });
    const url = new Promise<string>((resolve, reject) => {
      worker.on("message", (message: WorkerToPrimaryMessage) => {
        if (message.type === "listening") {
          isListening = true;
          resolve(message.url);
        } else if (message.type === "startup-failed") reject(new StartupError(message.reason));
      });
      void exited.then(({ code, signal }) =>
        reject(new StartupError(`a worker exited during startup (${signal ?? code})`)),
      );
    });
    const handle = { worker, url, exited, isListening: () => isListening };
    running.add(handle);
    metrics.addWorker(worker);
    const leaveHub = sharedStateHub.addMember(createWorkerChannel(worker), () =>
      logger.warn({ workerPid: worker.process.pid }, "worker does not respond; others read the chains in its place"),
    );
    void exited.then(() => {
      running.delete(handle);
      leaveHub();
    });
    return handle;
  }

  function tryForkWorker(port: number): WorkerHandle | undefined {
    try {
      return forkWorker(port);
    } catch (error) {
      logger.error({ error: getErrorMessage(error) }, "worker failed to start");
      return undefined;
    }
  }

  /** Restarts a worker whenever it exits, with exponential backoff while it keeps exiting soon after its start. */
  async function superviseWorker(first: WorkerHandle, port: number): Promise<void> {
    let consecutiveCrashes = 0;
    for (let current: WorkerHandle | undefined = first; ; current = tryForkWorker(port)) {
      current?.url.catch((error: Error) => {
        if (!shutdown.signal.aborted) logger.error({ error: error.message }, "worker failed to start");
      });
      const { code, signal, uptimeMs } = (await current?.exited) ?? NOT_STARTED;
      if (shutdown.signal.aborted) return;
      const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** consecutiveCrashes, MAX_BACKOFF_MS);
      consecutiveCrashes = uptimeMs < MIN_STABLE_UPTIME_MS ? consecutiveCrashes + 1 : 0;
      logger.error({ workerPid: current?.worker.process.pid, code, signal, backoffMs }, "worker exited; restarting");
      await sleep(backoffMs, undefined, { signal: shutdown.signal }).catch(() => {});
      if (shutdown.signal.aborted) return;
    }
  }

  function killAll(): void {
    for (const { worker } of running) worker.process.kill("SIGKILL");
  }

  return {
    async start() {
      // Before the workers: when one exits, Node.js sets a socket that all share back to the mode it had at its start.
      openNonBlocking(1);
      logStartupWarnings(config, logger);
      if (config.rateLimit !== undefined) new (await import("rate-limiter-flexible")).RateLimiterClusterMaster();
      // Runs however this process exits: a busy worker would not notice that its primary is gone.
      process.once("exit", killAll);
      const port = config.port === 0 ? await findFreePort(config.host) : config.port;
      const workers = Array.from({ length: config.workerCount }, () => forkWorker(port));
      const [url = ""] = await Promise.all(workers.map((worker) => worker.url)).catch((error: unknown) => {
        // A start that is interrupted by a stop has not failed; the stop exits the process.
        if (shutdown.signal.aborted) return new Promise<never>(() => {});
        throw error;
      });
      const metricsUrl = await metricsListener?.listen();
      for (const worker of workers) void superviseWorker(worker, port);
      return { url, metricsUrl };
    },
    async stop() {
      shutdown.abort();
      const draining = [...running].filter((handle) => handle.isListening());
      for (const { worker, isListening } of running) {
        if (isListening()) worker.send({ type: "stop" } satisfies PrimaryToWorkerMessage);
        // It has no requests to finish.
        else worker.process.kill("SIGKILL");
      }
      const killTimer = setTimeout(killAll, config.requestTimeoutMs + STOP_MARGIN_MS);
      const exits = await Promise.all(draining.map(({ exited }) => exited));
      clearTimeout(killTimer);
      sharedStateHub.close();
      await metricsListener?.close();
      const failedCount = exits.filter(({ code }) => code !== 0).length;
      if (failedCount > 0) throw new Error(`${failedCount} of ${exits.length} workers did not stop cleanly`);
    },
  };
}

/** Serves in a forked process; stops when the primary asks for it. */
export async function serveAsWorker(createGateway: (options: GatewayOptions) => Promise<Gateway>): Promise<void> {
  const report = (message: WorkerToPrimaryMessage): Promise<void> =>
    new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
  // Ctrl-C and service managers signal every process of the group; only the primary decides when to stop.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
  answerPings();
  try {
    const gateway = await createGateway({
      endpointNameKey: process.env[ENDPOINT_NAME_KEY_VARIABLE],
      joinWorkers: joinOverIpc,
    });
    process.on("message", (message: PrimaryToWorkerMessage) => {
      if (message.type === "stop") exitAfter(gateway.stop());
    });
    const { url } = await gateway.start();
    await report({ type: "listening", url });
  } catch (error) {
    await report({ type: "startup-failed", reason: describeStartupError(error) });
    process.exit(1);
  }
}

async function findFreePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
