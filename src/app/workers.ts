import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { generateEndpointNameKey } from "../chain/endpoints/endpoint-name.js";
import type { Config } from "../config/config.js";
import { getErrorMessage } from "../errors.js";
import { createLogger } from "../observability/log.js";
import { openNonBlocking } from "../observability/log-output.js";
import { ClusterMetrics } from "../observability/metrics/cluster-metrics.js";
import { PROMETHEUS_MEDIA_TYPE } from "../observability/metrics/exposition.js";
import { createLivenessReport } from "../observability/probes.js";
import { answerPings, createWorkerLiveness } from "../observability/worker-liveness.js";
import { composeMetricsListener } from "./compose-metrics-listener.js";
import type { Gateway, GatewayOptions } from "./gateway.js";
import { describeStartupError, exitAfter, logStartupWarnings, StartupError } from "./process-lifecycle.js";

/**
 * Messages from a worker to the primary. The channel also carries those of the metrics, of the liveness checks and of the
 * rate limiter: messages of unknown type are ignored.
 */
type WorkerMessage =
  | { readonly type: "listening"; readonly url: string }
  | { readonly type: "startup-failed"; readonly reason: string };

/** Message from the primary to a worker. */
const STOP_MESSAGE = { type: "stop" } as const;

/** Time a worker has to stop, in addition to the request timeout. */
const STOP_MARGIN_MS = 3_000;
/** A worker that ran for at least this long resets the restart backoff. */
const MIN_STABLE_UPTIME_MS = 10_000;
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

/** Environment variable by which the workers get the key of the names of endpoints. */
const ENDPOINT_NAME_KEY_VARIABLE = "HOP_GATEWAY_ENDPOINT_NAME_KEY";

interface WorkerExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly uptimeMs: number;
}

/** Of a worker for which the system lacks memory: Node.js throws then. */
const NOT_STARTED: WorkerExit = { code: null, signal: null, uptimeMs: 0 };

export const isWorker = cluster.isWorker;

/** A forked process. */
class WorkerHandle {
  isListening = false;
  /** Resolves when the worker listens; rejects with StartupError if it exits before that. */
  readonly url: Promise<string>;
  readonly exited: Promise<WorkerExit>;

  constructor(
    readonly worker: Worker,
    onUnreachable: (error: Error) => void,
  ) {
    const startedAt = performance.now();
    this.exited = new Promise((resolve) => {
      const handleExit = (code: number | null, signal: string | null): void =>
        resolve({ code, signal, uptimeMs: performance.now() - startedAt });
      worker.once("exit", handleExit);
      worker.on("error", (error) => {
        onUnreachable(error);
        if (worker.process.pid === undefined) handleExit(null, null);
      });
    });
    this.url = new Promise((resolve, reject) => {
      worker.on("message", (message: WorkerMessage) => {
        if (message.type === "startup-failed") reject(new StartupError(message.reason));
        if (message.type !== "listening") return;
        this.isListening = true;
        resolve(message.url);
      });
      void this.exited.then(({ code, signal }) =>
        reject(new StartupError(`a worker exited during startup (${signal ?? code})`)),
      );
    });
  }
}

/**
 * Runs the gateway in `config.workerCount` processes that share one port and one rate limit per caller. Restarts workers
 * that exit; fails the start if any worker exits before it listens.
 */
export class WorkerSupervisor implements Gateway {
  readonly #config: Config;
  readonly #logger;
  readonly #metrics = new ClusterMetrics();
  readonly #metricsListener;
  readonly #running = new Set<WorkerHandle>();
  readonly #shutdown = new AbortController();
  /** The same in all workers, also in restarted ones: their metrics are summed by the names of endpoints. */
  readonly #endpointNameKey = generateEndpointNameKey();

  constructor(config: Config) {
    this.#config = config;
    this.#logger = createLogger(config.logLevel);
    // Node's default is the path of the command line, which leads to other code after a build.
    cluster.setupPrimary({ exec: fileURLToPath(new URL("../main.js", import.meta.url)) });
    const checkWorkers = createWorkerLiveness(() => this.#listListening().map(({ worker }) => worker));
    this.#metricsListener = composeMetricsListener({
      config,
      logger: this.#logger,
      readMetrics: async () => {
        return { status: 200, contentType: PROMETHEUS_MEDIA_TYPE, body: await this.#metrics.renderText() };
      },
      readLiveness: () => (this.#shutdown.signal.aborted ? createLivenessReport(true) : checkWorkers()),
    });
  }

  async start() {
    const { rateLimit, host, port: configuredPort, workerCount } = this.#config;
    // Before the workers: when one exits, Node.js sets a socket that all share back to the mode it had at its start.
    openNonBlocking(1);
    logStartupWarnings(this.#config, this.#logger);
    if (rateLimit !== undefined) new (await import("rate-limiter-flexible")).RateLimiterClusterMaster();
    // Runs however this process exits: a busy worker would not notice that its primary is gone.
    process.once("exit", () => this.#killAll());
    const port = configuredPort === 0 ? await findFreePort(host) : configuredPort;
    const workers = Array.from({ length: workerCount }, () => this.#fork(port));
    const [url = ""] = await Promise.all(workers.map((handle) => handle.url)).catch((error: unknown) => {
      // A start that is interrupted by a stop has not failed; the stop exits the process.
      if (this.#shutdown.signal.aborted) return new Promise<never>(() => {});
      throw error;
    });
    const metricsUrl = await this.#metricsListener?.listen();
    for (const handle of workers) void this.#supervise(handle, port);
    return { url, metricsUrl };
  }

  async stop(): Promise<void> {
    this.#shutdown.abort();
    const draining = this.#listListening();
    for (const { worker, isListening } of this.#running) {
      if (isListening) worker.send(STOP_MESSAGE);
      // It has no requests to finish.
      else worker.process.kill("SIGKILL");
    }
    const killTimer = setTimeout(() => this.#killAll(), this.#config.requestTimeoutMs + STOP_MARGIN_MS);
    const exits = await Promise.all(draining.map(({ exited }) => exited));
    clearTimeout(killTimer);
    await this.#metricsListener?.close();
    const failedCount = exits.filter(({ code }) => code !== 0).length;
    if (failedCount > 0) throw new Error(`${failedCount} of ${exits.length} workers did not stop cleanly`);
  }

  #listListening(): readonly WorkerHandle[] {
    return [...this.#running].filter(({ isListening }) => isListening);
  }

  #fork(port: number): WorkerHandle {
    // The port is fixed: workers that pick a free port themselves would get another one once all of them have exited.
    const worker = cluster.fork({ PORT: `${port}`, [ENDPOINT_NAME_KEY_VARIABLE]: this.#endpointNameKey });
    const handle = new WorkerHandle(worker, ({ message }) =>
      this.#logger.warn({ workerPid: worker.process.pid, error: message }, "worker is unreachable"),
    );
    this.#running.add(handle);
    this.#metrics.addWorker(worker);
    void handle.exited.then(() => this.#running.delete(handle));
    return handle;
  }

  #tryFork(port: number): WorkerHandle | undefined {
    try {
      return this.#fork(port);
    } catch (error) {
      this.#logger.error({ error: getErrorMessage(error) }, "worker failed to start");
      return undefined;
    }
  }

  /** Restarts a worker whenever it exits, with exponential backoff while it keeps exiting soon after its start. */
  async #supervise(first: WorkerHandle, port: number): Promise<void> {
    const { signal: stopping } = this.#shutdown;
    let crashes = 0;
    for (let current: WorkerHandle | undefined = first; ; current = this.#tryFork(port)) {
      current?.url.catch(({ message }: Error) => {
        if (!stopping.aborted) this.#logger.error({ error: message }, "worker failed to start");
      });
      const { code, signal, uptimeMs } = (await current?.exited) ?? NOT_STARTED;
      if (stopping.aborted) return;
      const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** crashes, MAX_BACKOFF_MS);
      crashes = uptimeMs < MIN_STABLE_UPTIME_MS ? crashes + 1 : 0;
      const workerPid = current?.worker.process.pid;
      this.#logger.error({ workerPid, code, signal, backoffMs }, "worker exited; restarting");
      await sleep(backoffMs, undefined, { signal: stopping }).catch(() => {});
      if (stopping.aborted) return;
    }
  }

  #killAll(): void {
    for (const { worker } of this.#running) worker.process.kill("SIGKILL");
  }
}

/** Serves in a forked process; stops when the primary asks for it. */
export async function serveAsWorker(createGateway: (options: GatewayOptions) => Promise<Gateway>): Promise<void> {
  const report = (message: WorkerMessage): Promise<void> =>
    new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
  // Ctrl-C and service managers signal every process of the group; only the primary decides when to stop.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
  answerPings();
  try {
    const gateway = await createGateway({ endpointNameKey: process.env[ENDPOINT_NAME_KEY_VARIABLE] });
    process.on("message", ({ type }: typeof STOP_MESSAGE) => {
      if (type === STOP_MESSAGE.type) exitAfter(gateway.stop());
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
