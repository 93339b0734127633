import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiterClusterMaster } from "rate-limiter-flexible";
import type { Config } from "../config/config.js";
import { createLogger } from "../observability/log.js";
import { createClusterMetrics } from "../observability/metrics/cluster-metrics.js";
import { createMetricsListener } from "../observability/metrics/metrics-listener.js";
import type { Gateway } from "./gateway.js";
import { describeStartupError, StartupError } from "./startup-error.js";
import { exitAfter } from "./stop-on-signals.js";

/** What a worker tells the primary. */
type WorkerMessage = { readonly listensOn: string } | { readonly cannotStart: string };

/** What the primary tells a worker. */
const STOP_MESSAGE = "stop";

/** What a worker may take to stop, beyond the longest that any answer may take. */
const STOP_MARGIN_MS = 3_000;
/** A worker that lived this long did not die of what killed the one before it. */
const MIN_STABLE_UPTIME_MS = 10_000;
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 30_000;

interface WorkerExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly uptimeMs: number;
}

/** A forked process. */
interface WorkerHandle {
  readonly worker: Worker;
  /** Rejects with StartFailure where it ends before it listens. */
  readonly url: Promise<string>;
  readonly exited: Promise<WorkerExit>;
  isListening(): boolean;
}

export const isWorker = cluster.isWorker;

/**
 * Runs the gateway in `config.workers` processes that share one port and one limit per caller. A worker that dies is
 * replaced; a start of which any worker dies fails.
 */
export function createWorkerSupervisor(config: Config): Gateway {
  const logger = createLogger(config.logLevel);
  const running = new Set<WorkerHandle>();
  const stopping = new AbortController();
  const metrics = createClusterMetrics();
  const { host, metricsPort } = config;
  const metricsListener =
    metricsPort === undefined
      ? undefined
      : createMetricsListener({ host, port: metricsPort, renderText: metrics.renderText });

  function launch(port: number): WorkerHandle {
    // Workers that ask for a free port themselves would get another one when all of them had died.
    const worker = cluster.fork({ PORT: `${port}` });
    const began = performance.now();
    let isListening = false;
    const exited = new Promise<WorkerExit>((resolve) => {
      const end = (code: number | null, signal: string | null): void =>
        resolve({ code, signal, uptimeMs: performance.now() - began });
      worker.once("exit", end);
      worker.on("error", (error) => {
        logger.warn({ workerPid: worker.process.pid, error: error.message }, "a worker cannot be reached");
        if (worker.process.pid === undefined) end(null, null);
      });
    });
    const url = new Promise<string>((resolve, reject) => {
      worker.on("message", (message: WorkerMessage) => {
        if ("listensOn" in message) {
          isListening = true;
          resolve(message.listensOn);
        } else if ("cannotStart" in message) reject(new StartupError(message.cannotStart));
      });
      void exited.then(({ code, signal }) =>
        reject(new StartupError(`a worker died at its start (${signal ?? code})`)),
      );
    });
    const started = { worker, url, exited, isListening: () => isListening };
    running.add(started);
    metrics.addWorker(worker);
    void exited.then(() => running.delete(started));
    return started;
  }

  /** Puts another worker in the place of every one that dies, after a pause that grows while they die quickly. */
  async function replace(first: WorkerHandle, port: number): Promise<void> {
    let quickDeaths = 0;
    for (let current = first; ; current = launch(port)) {
      current.url.catch((error: Error) => {
        if (!stopping.signal.aborted) logger.error({ error: error.message }, "a worker did not start");
      });
      const { code, signal, uptimeMs } = await current.exited;
      if (stopping.signal.aborted) return;
      const backoffMs = Math.min(INITIAL_BACKOFF_MS * 2 ** quickDeaths, MAX_BACKOFF_MS);
      quickDeaths = uptimeMs < MIN_STABLE_UPTIME_MS ? quickDeaths + 1 : 0;
      logger.error(
        { workerPid: current.worker.process.pid, code, signal, backoffMs },
        "a worker died: another will follow",
      );
      await sleep(backoffMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
    }
  }

  function kill(): void {
    for (const { worker } of running) worker.process.kill("SIGKILL");
  }

  return {
    async start() {
      new RateLimiterClusterMaster();
      // However this process ends: a worker that is busy would not notice.
      process.once("exit", kill);
      const metricsUrl = (await metricsListener?.listen())?.url;
      if (metricsUrl !== undefined) logger.info({ url: metricsUrl }, "metrics have a port of their own");
      const port = config.port === 0 ? await findFreePort(config.host) : config.port;
      const first = Array.from({ length: config.workerCount }, () => launch(port));
      const [url = ""] = await Promise.all(first.map((each) => each.url)).catch((error: unknown) => {
        // What a stop ends has not failed, and the stop ends this process.
        if (stopping.signal.aborted) return new Promise<never>(() => {});
        throw error;
      });
      for (const each of first) void replace(each, port);
      return { url, metricsUrl };
    },
    async stop() {
      stopping.abort();
      const draining = [...running].filter((each) => each.isListening());
      for (const each of running) {
        if (each.isListening()) each.worker.send(STOP_MESSAGE);
        // It has nothing to finish.
        else each.worker.process.kill("SIGKILL");
      }
      const cut = setTimeout(kill, config.requestTimeoutMs + STOP_MARGIN_MS);
      const deaths = await Promise.all(draining.map((each) => each.exited));
      clearTimeout(cut);
      await metricsListener?.close();
      const failed = deaths.filter(({ code }) => code !== 0).length;
      if (failed > 0) throw new StartupError(`${failed} of ${deaths.length} workers did not stop as they should`);
    },
  };
}

/** Serves in a forked process and stops when the primary says so. */
export async function serveAsWorker(createGateway: () => Promise<Gateway>): Promise<void> {
  const report = (message: WorkerMessage): Promise<void> =>
    new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
  // Ctrl-C and service managers signal every process there is; the primary then says what to do, once.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
  try {
    const gateway = await createGateway();
    process.on("message", (message) => {
      if (message === STOP_MESSAGE) exitAfter(gateway.stop());
    });
    const { url } = await gateway.start();
    await report({ listensOn: url });
  } catch (error) {
    await report({ cannotStart: describeStartupError(error) });
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
