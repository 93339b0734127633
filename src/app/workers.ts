import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiterClusterMaster } from "rate-limiter-flexible";
import type { Config } from "../config/config.js";
import { createLogger } from "../observability/log.js";
import { createWorkersMetrics } from "../observability/metrics/cluster-metrics.js";
import { createMetricsListener } from "../observability/metrics/metrics-listener.js";
import type { Gateway } from "./gateway.js";
import { describeFailure, StartFailure } from "./startup-error.js";
import { exitAfter } from "./stop-on-signals.js";

/** What a worker tells the primary. */
type Report = { readonly listensOn: string } | { readonly cannotStart: string };

/** What the primary tells a worker. */
const stopMessage = "stop";

/** What a worker may take to stop, beyond the longest that any answer may take. */
const stopMarginMs = 3_000;
/** A worker that lived this long did not die of what killed the one before it. */
const steadyMs = 10_000;
const firstPauseMs = 100;
const longestPauseMs = 30_000;

interface Death {
  readonly code: number | null;
  readonly signal: string | null;
  readonly livedMs: number;
}

/** A forked process. */
interface Running {
  readonly worker: Worker;
  /** Rejects with StartFailure where it ends before it listens. */
  readonly url: Promise<string>;
  readonly ended: Promise<Death>;
  isListening(): boolean;
}

export const isWorker = cluster.isWorker;

/**
 * Runs the gateway in `config.workers` processes that share one port and one limit per caller. A worker that dies is
 * replaced; a start of which any worker dies fails.
 */
export function createWorkers(config: Config): Gateway {
  const logger = createLogger(config.logLevel);
  const running = new Set<Running>();
  const stopping = new AbortController();
  const metrics = createWorkersMetrics();
  const { host, metricsPort } = config;
  const metricsListener =
    metricsPort === undefined ? undefined : createMetricsListener({ host, port: metricsPort, text: metrics.text });

  function launch(port: number): Running {
    // Workers that ask for a free port themselves would get another one when all of them had died.
    const worker = cluster.fork({ PORT: `${port}` });
    const began = performance.now();
    let isListening = false;
    const ended = new Promise<Death>((resolve) => {
      const end = (code: number | null, signal: string | null): void =>
        resolve({ code, signal, livedMs: performance.now() - began });
      worker.once("exit", end);
      worker.on("error", (error) => {
        logger.warn({ worker: worker.process.pid, problem: error.message }, "a worker cannot be reached");
        if (worker.process.pid === undefined) end(null, null);
      });
    });
    const url = new Promise<string>((resolve, reject) => {
      worker.on("message", (message: Report) => {
        if ("listensOn" in message) {
          isListening = true;
          resolve(message.listensOn);
        } else if ("cannotStart" in message) reject(new StartFailure(message.cannotStart));
      });
      void ended.then(({ code, signal }) => reject(new StartFailure(`a worker died at its start (${signal ?? code})`)));
    });
    const started = { worker, url, ended, isListening: () => isListening };
    running.add(started);
    metrics.add(worker);
    void ended.then(() => running.delete(started));
    return started;
  }

  /** Puts another worker in the place of every one that dies, after a pause that grows while they die quickly. */
  async function replace(first: Running, port: number): Promise<void> {
    let quickDeaths = 0;
    for (let current = first; ; current = launch(port)) {
      current.url.catch((error: Error) => {
        if (!stopping.signal.aborted) logger.error({ problem: error.message }, "a worker did not start");
      });
      const { code, signal, livedMs } = await current.ended;
      if (stopping.signal.aborted) return;
      const pauseMs = Math.min(firstPauseMs * 2 ** quickDeaths, longestPauseMs);
      quickDeaths = livedMs < steadyMs ? quickDeaths + 1 : 0;
      logger.error({ worker: current.worker.process.pid, code, signal, pauseMs }, "a worker died: another will follow");
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {});
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
      const port = config.port === 0 ? await freePort(config.host) : config.port;
      const first = Array.from({ length: config.workers }, () => launch(port));
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
        if (each.isListening()) each.worker.send(stopMessage);
        // It has nothing to finish.
        else each.worker.process.kill("SIGKILL");
      }
      const cut = setTimeout(kill, config.requestTimeoutMs + stopMarginMs);
      const deaths = await Promise.all(draining.map((each) => each.ended));
      clearTimeout(cut);
      await metricsListener?.close();
      const failed = deaths.filter(({ code }) => code !== 0).length;
      if (failed > 0) throw new StartFailure(`${failed} of ${deaths.length} workers did not stop as they should`);
    },
  };
}

/** Serves in a forked process and stops when the primary says so. */
export async function serveAsWorker(createGateway: () => Promise<Gateway>): Promise<void> {
  const report = (message: Report): Promise<void> =>
    new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()));
  // Ctrl-C and service managers signal every process there is; the primary then says what to do, once.
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
  try {
    const gateway = await createGateway();
    process.on("message", (message) => {
      if (message === stopMessage) exitAfter(gateway.stop());
    });
    const { url } = await gateway.start();
    await report({ listensOn: url });
  } catch (error) {
    await report({ cannotStart: describeFailure(error) });
    process.exit(1);
  }
}

async function freePort(host: string): Promise<number> {
  const server = createServer().listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
