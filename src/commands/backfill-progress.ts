import type { BackfillProgress } from "../transfers/index/sync/index-sync.js";

/** Minimum time between two lines of a chain. */
const LINE_INTERVAL_MS = 10_000;

/** Prints the progress of a backfill: a line for each chain from time to time, and one when it is complete. */
export class ProgressDisplay {
  readonly #output: { write(text: string): unknown };
  readonly #now: () => number;
  readonly #startedAt = new Map<string, number>();
  readonly #printedAt = new Map<string, number>();

  /** @param now milliseconds on a monotonic clock */
  constructor(output: { write(text: string): unknown }, now: () => number) {
    this.#output = output;
    this.#now = now;
  }

  readonly update = (progress: BackfillProgress): void => {
    const { chain, blocksDone, blocksTotal, events } = progress;
    const now = this.#now();
    // A backfill that failed starts again with the remaining blocks.
    if (blocksDone === 0 || !this.#startedAt.has(chain)) this.#startedAt.set(chain, now);
    const isDue = now - (this.#printedAt.get(chain) ?? Number.NEGATIVE_INFINITY) >= LINE_INTERVAL_MS;
    if (!isDue && blocksDone < blocksTotal) return;
    this.#printedAt.set(chain, now);
    const seconds = (now - (this.#startedAt.get(chain) ?? now)) / 1_000;
    const rate = seconds > 0 ? blocksDone / seconds : 0;
    const left = blocksDone >= blocksTotal ? "done" : formatTimeLeft((blocksTotal - blocksDone) / rate);
    const counts = `${blocksDone}/${blocksTotal} blocks, ${events} events, ${Math.round(rate)} blocks/s`;
    this.printLine(`${chain}: ${counts}, ${left}`);
  };

  printLine(line: string): void {
    this.#output.write(`${line}\n`);
  }
}

/** @param seconds not finite: not known yet */
function formatTimeLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) return "time left unknown";
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${Math.ceil(seconds)} s left`;
  return minutes < 60 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}
