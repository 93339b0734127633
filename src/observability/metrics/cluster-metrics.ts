import type { Worker } from "node:cluster";
import type { TakenMetrics } from "./exposition.js";
import { createSharedText } from "./throttled-scrape.js";

// Where several processes share one port, whichever is asked answers for all: it asks the process over them, which asks
// every one and adds up.

/** What the process over the workers says to one. */
type ToWorker = { readonly takeMetrics: true } | { readonly metricsText: number; readonly text: string | undefined };
/** What a worker says to it. */
type ToPrimary = { readonly metricsTaken: TakenMetrics } | { readonly wantMetrics: number };

/** How long the process over them waits for each; what a worker said the time before then stands for it. */
const takeMs = 1_000;
/** How long a worker waits for the process over it. */
const answerMs = 3_000;

/** The metrics of all workers, in the process over them. */
export interface WorkersMetrics {
  /** Counts a new worker in, from now on also beyond its end. */
  add(worker: Worker): void;
  text(): Promise<string>;
}

interface Member {
  /** What it said last. */
  last: TakenMetrics | undefined;
  /** Told when it says something. */
  told: () => void;
}

export function createWorkersMetrics(): WorkersMetrics {
  const members = new Map<Worker, Member>();
  /** The counts of those that have ended: a sum that falls would be taken for a beginning. */
  let ended: TakenMetrics = [];
  /** The end of what is added to them: of workers that end together each is added to those before. */
  let adding: Promise<void> = Promise.resolve();

  function take(worker: Worker, member: Member): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, takeMs);
      member.told = () => {
        clearTimeout(timer);
        resolve();
      };
      if (!say(worker, { takeMetrics: true })) member.told();
    });
  }

  async function gather(): Promise<string> {
    // Loaded where somebody asks: this process does nothing but watch the others.
    const { toText } = await import("./exposition.js");
    await Promise.all([...members].map(([worker, member]) => take(worker, member)));
    return toText([...[...members.values()].flatMap(({ last }) => (last === undefined ? [] : [last])), ended]);
  }

  const text = createSharedText(gather);

  async function addEnded(worker: Worker, { last }: Member): Promise<void> {
    if (last !== undefined) {
      const { countsOf } = await import("./exposition.js");
      ended = await countsOf([ended, last]);
    }
    members.delete(worker);
  }

  return {
    add(worker) {
      const member: Member = { last: undefined, told: () => {} };
      members.set(worker, member);
      worker.on("message", (message: ToPrimary) => {
        if ("metricsTaken" in message) {
          member.last = message.metricsTaken;
          member.told();
        } else if ("wantMetrics" in message) {
          const answer = (all: string | undefined) => say(worker, { metricsText: message.wantMetrics, text: all });
          text().then(answer, () => answer(undefined));
        }
      });
      worker.once("exit", () => {
        member.told();
        adding = adding.then(() => addEnded(worker, member));
      });
    },
    text,
  };
}

/** False where a worker cannot be reached. */
function say(worker: Worker, message: ToWorker): boolean {
  return worker.isConnected() && worker.send(message, undefined, () => {});
}

/**
 * In a worker: tells the process over it of this one's metrics, whenever it asks.
 * @returns asks it for those of all workers; rejects where it gives none in time
 */
export function tellMetrics(take: () => Promise<TakenMetrics>): () => Promise<string> {
  const waiting = new Map<number, (text: string | undefined) => void>();
  let asked = 0;
  const tell = (message: ToPrimary): void => void process.send?.(message, undefined, undefined, () => {});
  process.on("message", (message: ToWorker) => {
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
      }, answerMs);
      waiting.set(id, (text) => {
        waiting.delete(id);
        clearTimeout(timer);
        if (text === undefined) fail();
        else resolve(text);
      });
      tell({ wantMetrics: id });
    });
}
