import type { Writable } from "node:stream";
import cliProgress from "cli-progress";
import type { BackfillProgress } from "../transfers/index/sync/backfill.js";

/** Shows how far a history is filled. */
export interface ProgressDisplay {
  update(progress: BackfillProgress): void;
  /** A line between all that. */
  printLine(line: string): void;
  stop(): void;
}

export interface ProgressDisplayOptions {
  readonly output: Writable & { readonly isTTY?: boolean };
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** Where the output is no terminal, how often a chain says how far it is. */
const LINE_INTERVAL_MS = 10_000;
/** Narrow enough that the time left is seen on 80 columns. */
const PROGRESS_FORMAT = "{chain} {bar} {percentage}% | {events} events | {rate} blocks/s | {left}";
const BAR_SIZE = 10;

/** A bar for each chain on a terminal, else a line now and then. */
export function createProgressDisplay({ output, now }: ProgressDisplayOptions): ProgressDisplay {
  return output.isTTY === true ? createTerminalDisplay(output, now) : createLineDisplay(output, now);
}

/** What is known of a chain's speed. */
function createSpeedEstimator(now: () => number) {
  const startedAt = new Map<string, number>();
  return ({ chain, blocksDone, blocksTotal }: BackfillProgress) => {
    // After a failure what is left begins anew.
    const started = (blocksDone > 0 ? startedAt.get(chain) : undefined) ?? now();
    startedAt.set(chain, started);
    const seconds = (now() - started) / 1_000;
    const rate = seconds > 0 ? blocksDone / seconds : 0;
    return {
      rate: Math.round(rate),
      left: blocksDone >= blocksTotal ? "done" : formatTimeLeft((blocksTotal - blocksDone) / rate),
    };
  };
}

/** @param seconds not a finite number: not known yet */
function formatTimeLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) return "time left unknown";
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${Math.ceil(seconds)} s left`;
  return minutes < 60 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

function createTerminalDisplay(output: ProgressDisplayOptions["output"], now: () => number): ProgressDisplay {
  const bars = new cliProgress.MultiBar(
    { format: PROGRESS_FORMAT, barsize: BAR_SIZE, stream: output, hideCursor: true },
    cliProgress.Presets.rect,
  );
  const bySlug = new Map<string, cliProgress.SingleBar>();
  const speedOf = createSpeedEstimator(now);
  return {
    update(progress) {
      const { chain, blocksDone, blocksTotal, events } = progress;
      // A chain without blocks to read has no bar.
      if (blocksTotal === 0) return;
      const payload = { chain: chain.padEnd(9), events, ...speedOf(progress) };
      const bar = bySlug.get(chain) ?? bars.create(blocksTotal, 0, payload);
      bySlug.set(chain, bar);
      bar.setTotal(blocksTotal);
      bar.update(blocksDone, payload);
    },
    printLine: (line) => bars.log(`${line}\n`),
    stop: () => bars.stop(),
  };
}

function createLineDisplay(output: Writable, now: () => number): ProgressDisplay {
  const saidAt = new Map<string, number>();
  const speedOf = createSpeedEstimator(now);
  return {
    update(progress) {
      const { chain, blocksDone, blocksTotal, events } = progress;
      const { rate, left } = speedOf(progress);
      const isDue = now() - (saidAt.get(chain) ?? Number.NEGATIVE_INFINITY) >= LINE_INTERVAL_MS;
      if (!isDue && blocksDone < blocksTotal) return;
      saidAt.set(chain, now());
      output.write(`${chain}: ${blocksDone}/${blocksTotal} blocks, ${events} events, ${rate} blocks/s, ${left}\n`);
    },
    printLine: (line) => void output.write(`${line}\n`),
    stop: () => {},
  };
}
