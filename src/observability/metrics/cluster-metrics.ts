import type { Worker } from "node:cluster";
import { type MetricsJson, mergeCumulativeMetrics, renderMetricsText } from "./exposition.js";
import { createThrottledScrape } from "./throttled-scrape.js";

// Several workers share one port, so a scrape reaches any of them and must return the metrics of all: the worker asks the
// primary, which collects the metrics of every worker and aggregates them.

type PrimaryToWorkerMessage =
  | { readonly type: "collect-metrics" }
  /** Answers the request of that id; text undefined: the metrics could not be rendered. */
  | { readonly type: "cluster-metrics"; readonly id: number; readonly text: string | undefined };

type WorkerToPrimaryMessage =
  | { readonly type: "worker-metrics"; readonly metrics: MetricsJson }
  | { readonly type: "request-cluster-metrics"; readonly id: number };

/** The primary waits this long for each worker, then uses the worker's previous metrics. */
const WORKER_TIMEOUT_MS = 1_000;
/** A worker waits this long for the primary. */
const PRIMARY_TIMEOUT_MS = 3_000;

/** The metrics of all workers, in the primary. */
export interface ClusterMetrics {
  /** Includes a worker from now on. Its counters stay included after it has exited. */
  addWorker(worker: Worker): void;
  renderText(): Promise<string>;
}

interface WorkerEntry {
  lastMetrics: MetricsJson | undefined;
  /** Called when the worker replies, or never will. */
  onReply: () => void;
}

export function createClusterMetrics(): ClusterMetrics {
  const workers = new Map<Worker, WorkerEntry>();
  /** Totals of the counters of exited workers: Prometheus would take a sum that falls for a counter reset. */
  let exitedTotals: MetricsJson = [];
  /** Serializes the updates of `exitedTotals`, so that workers that exit together are all added. */
  let exitQueue: Promise<void> = Promise.resolve();

  function collectFrom(worker: Worker, entry: WorkerEntry): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, WORKER_TIMEOUT_MS);
      entry.onReply = () => {
        clearTimeout(timer);
        resolve();
      };
      if (!sendToWorker(worker, { type: "collect-metrics" })) entry.onReply();
    });
  }

  async function aggregate(): Promise<string> {
    await Promise.all([...workers].map(([worker, entry]) => collectFrom(worker, entry)));
    return renderMetricsText([
      ...[...workers.values()].flatMap(({ lastMetrics }) => (lastMetrics === undefined ? [] : [lastMetrics])),
      exitedTotals,
    ]);
  }

  const renderText = createThrottledScrape(aggregate);

  async function addToExitedTotals(worker: Worker, { lastMetrics }: WorkerEntry): Promise<void> {
    if (lastMetrics !== undefined) {
      exitedTotals = await mergeCumulativeMetrics([exitedTotals, lastMetrics]);
    }
    workers.delete(worker);
  }

  return {
    addWorker(worker) {
      const entry: WorkerEntry = { lastMetrics: undefined, onReply: () => {} };
      workers.set(worker, entry);
      worker.on("message", (message: WorkerToPrimaryMessage) => {
        if (message.type === "worker-metrics") {
          entry.lastMetrics = message.metrics;
          entry.onReply();
        } else if (message.type === "request-cluster-metrics") {
          const { id } = message;
          const reply = (text: string | undefined) => sendToWorker(worker, { type: "cluster-metrics", id, text });
          renderText().then(reply, () => reply(undefined));
        }
      });
      worker.once("exit", () => {
        entry.onReply();
        exitQueue = exitQueue.then(() => addToExitedTotals(worker, entry));
      });
    },
    renderText,
  };
}

/** Returns false if the worker cannot be reached. */
function sendToWorker(worker: Worker, message: PrimaryToWorkerMessage): boolean {
  return worker.isConnected() && worker.send(message, undefined, () => {});
}

/**
 * Answers the primary's requests for this worker's metrics.
 * @returns a function that requests the metrics of all workers; it rejects if the primary does not return them in time
 */
export function createWorkerMetricsClient(collectJson: () => Promise<MetricsJson>): () => Promise<string> {
  const pending = new Map<number, (text: string | undefined) => void>();
  let lastId = 0;
  const send = (message: WorkerToPrimaryMessage): void => void process.send?.(message, undefined, undefined, () => {});
  process.on("message", (message: PrimaryToWorkerMessage) => {
    if (message.type === "collect-metrics") {
      collectJson().then(
        (metrics) => send({ type: "worker-metrics", metrics }),
        () => {},
      );
    } else if (message.type === "cluster-metrics") pending.get(message.id)?.(message.text);
  });
  return () =>
    new Promise((resolve, reject) => {
      lastId += 1;
      const id = lastId;
      const fail = (): void => reject(new Error("the metrics of all workers are unavailable"));
      const timer = setTimeout(() => {
        pending.delete(id);
        fail();
      }, PRIMARY_TIMEOUT_MS);
      pending.set(id, (text) => {
        pending.delete(id);
        clearTimeout(timer);
        if (text === undefined) fail();
        else resolve(text);
      });
      send({ type: "request-cluster-metrics", id });
    });
}
