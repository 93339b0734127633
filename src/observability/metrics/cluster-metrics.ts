import type { Worker } from "node:cluster";
import { withTimeoutOrFallback } from "../../resilience/abort-scope.js";
import { createThrottledScrape, type MetricsJson, mergeCumulativeMetrics, renderMetricsText } from "./exposition.js";

// Several workers share one port, so a scrape reaches any of them and must return the metrics of all: the worker asks the
// primary, which collects the metrics of every worker and aggregates them with prom-client.

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

interface WorkerEntry {
  lastMetrics: MetricsJson | undefined;
  /** Called when the worker replies, or never will. */
  onReply: () => void;
}

/** The metrics of all workers, in the primary. */
export class ClusterMetrics {
  readonly #workers = new Map<Worker, WorkerEntry>();
  /** Totals of the counters of exited workers: Prometheus would take a sum that falls for a counter reset. */
  #exitedTotals: MetricsJson = [];
  /** Serializes the updates of the totals, so that workers that exit together are all added. */
  #exitQueue: Promise<void> = Promise.resolve();
  readonly renderText = createThrottledScrape(() => this.#aggregate());

  /** Includes a worker from now on. Its counters stay included after it has exited. */
  addWorker(worker: Worker): void {
    const entry: WorkerEntry = { lastMetrics: undefined, onReply: () => {} };
    this.#workers.set(worker, entry);
    worker.on("message", (message: WorkerToPrimaryMessage) => {
      if (message.type === "worker-metrics") {
        entry.lastMetrics = message.metrics;
        entry.onReply();
      } else if (message.type === "request-cluster-metrics") {
        const { id } = message;
        const reply = (text: string | undefined) => sendToWorker(worker, { type: "cluster-metrics", id, text });
        this.renderText().then(reply, () => reply(undefined));
      }
    });
    worker.once("exit", () => {
      entry.onReply();
      this.#exitQueue = this.#exitQueue.then(() => this.#addToExitedTotals(worker, entry));
    });
  }

  async #aggregate(): Promise<string> {
    await Promise.all([...this.#workers].map(([worker, entry]) => collectFrom(worker, entry)));
    const present = [...this.#workers.values()].flatMap(({ lastMetrics }) =>
      lastMetrics === undefined ? [] : [lastMetrics],
    );
    return renderMetricsText([...present, this.#exitedTotals]);
  }

  async #addToExitedTotals(worker: Worker, { lastMetrics }: WorkerEntry): Promise<void> {
    if (lastMetrics !== undefined) this.#exitedTotals = await mergeCumulativeMetrics([this.#exitedTotals, lastMetrics]);
    this.#workers.delete(worker);
  }
}

function collectFrom(worker: Worker, entry: WorkerEntry): Promise<void> {
  const replied = new Promise<void>((resolve) => {
    entry.onReply = resolve;
  });
  if (!sendToWorker(worker, { type: "collect-metrics" })) entry.onReply();
  return withTimeoutOrFallback(replied, WORKER_TIMEOUT_MS, undefined);
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
  return async () => {
    lastId += 1;
    const id = lastId;
    const answered = new Promise<string | undefined>((resolve) => pending.set(id, resolve));
    send({ type: "request-cluster-metrics", id });
    const text = await withTimeoutOrFallback(answered, PRIMARY_TIMEOUT_MS, undefined);
    pending.delete(id);
    if (text === undefined) throw new Error("the metrics of all workers are unavailable");
    return text;
  };
}
