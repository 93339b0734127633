import type { Worker } from "node:cluster";
import type { MetricsJson } from "./exposition.js";
import { createThrottledScrape } from "./throttled-scrape.js";

// Where several processes share one port, whichever is asked answers for all: it asks the process over them, which asks
// every one and adds up.

/** What the process over the workers says to one. */
type PrimaryToWorkerMessage =
  | { readonly takeMetrics: true }
  | { readonly metricsText: number; readonly text: string | undefined };
/** What a worker says to it. */
type WorkerToPrimaryMessage = { readonly metricsTaken: MetricsJson } | { readonly wantMetrics: number };

/** How long the process over them waits for each; what a worker said the time before then stands for it. */
const WORKER_TIMEOUT_MS = 1_000;
/** How long a worker waits for the process over it. */
const PRIMARY_TIMEOUT_MS = 3_000;

/** The metrics of all workers, in the process over them. */
export interface ClusterMetrics {
  /** Counts a new worker in, from now on also beyond its end. */
  addWorker(worker: Worker): void;
  renderText(): Promise<string>;
}

interface WorkerEntry {
  /** What it said last. */
  lastMetrics: MetricsJson | undefined;
  /** Told when it says something. */
  onReply: () => void;
}

export function createClusterMetrics(): ClusterMetrics {
  const members = new Map<Worker, WorkerEntry>();
  /** The counts of those that have ended: a sum that falls would be taken for a beginning. */
  let ended: MetricsJson = [];
  /** The end of what is added to them: of workers that end together each is added to those before. */
  let adding: Promise<void> = Promise.resolve();

  function take(worker: Worker, member: WorkerEntry): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, WORKER_TIMEOUT_MS);
      member.onReply = () => {
        clearTimeout(timer);
        resolve();
      };
      if (!sendToWorker(worker, { takeMetrics: true })) member.onReply();
    });
  }

  async function gather(): Promise<string> {
    // Loaded where somebody asks: this process does nothing but watch the others.
    const { renderMetricsText } = await import("./exposition.js");
    await Promise.all([...members].map(([worker, member]) => take(worker, member)));
    return renderMetricsText([
      ...[...members.values()].flatMap(({ lastMetrics }) => (lastMetrics === undefined ? [] : [lastMetrics])),
      ended,
    ]);
  }

  const renderText = createThrottledScrape(gather);

  async function addEnded(worker: Worker, { lastMetrics }: WorkerEntry): Promise<void> {
    if (lastMetrics !== undefined) {
      const { mergeCumulativeMetrics } = await import("./exposition.js");
      ended = await mergeCumulativeMetrics([ended, lastMetrics]);
    }
    members.delete(worker);
  }

  return {
    addWorker(worker) {
      const member: WorkerEntry = { lastMetrics: undefined, onReply: () => {} };
      members.set(worker, member);
      worker.on("message", (message: WorkerToPrimaryMessage) => {
        if ("metricsTaken" in message) {
          member.lastMetrics = message.metricsTaken;
          member.onReply();
        } else if ("wantMetrics" in message) {
          const answer = (all: string | undefined) =>
            sendToWorker(worker, { metricsText: message.wantMetrics, text: all });
          renderText().then(answer, () => answer(undefined));
        }
      });
      worker.once("exit", () => {
        member.onReply();
        adding = adding.then(() => addEnded(worker, member));
      });
    },
    renderText,
  };
}

/** False where a worker cannot be reached. */
function sendToWorker(worker: Worker, message: PrimaryToWorkerMessage): boolean {
  return worker.isConnected() && worker.send(message, undefined, () => {});
}

/**
 * In a worker: tells the process over it of this one's metrics, whenever it asks.
 * @returns asks it for those of all workers; rejects where it gives none in time
 */
export function createWorkerMetricsClient(take: () => Promise<MetricsJson>): () => Promise<string> {
  const waiting = new Map<number, (text: string | undefined) => void>();
  let asked = 0;
  const tell = (message: WorkerToPrimaryMessage): void => void process.send?.(message, undefined, undefined, () => {});
  process.on("message", (message: PrimaryToWorkerMessage) => {
    if (typeof message !== "object") return;
    if ("takeMetrics" in message)
      take().then(
        (metricsTaken) => tell({ metricsTaken }),
        () => {},
      );
    else if ("metricsText" in message) waiting.get(message.metricsText)?.(message.text);
  });
  return () =>
    new Promise((resolve, reject) => {
      asked += 1;
      const id = asked;
      const fail = (): void => reject(new Error("the metrics of all workers cannot be had"));
      const timer = setTimeout(() => {
        waiting.delete(id);
        fail();
      }, PRIMARY_TIMEOUT_MS);
      waiting.set(id, (text) => {
        waiting.delete(id);
        clearTimeout(timer);
        if (text === undefined) fail();
        else resolve(text);
      });
      tell({ wantMetrics: id });
    });
}
