import type { Writable } from "node:stream";
import cliProgress from "cli-progress";
import type { BackfillProgress } from "../transfers/index/sync/index-sync.js";

/** Shows the progress of a backfill. */
export interface ProgressDisplay {
  update(progress: BackfillProgress): void;
  /** Prints a message between the progress output. */
  printLine(line: string): void;
  stop(): void;
}

/** Minimum time between two progress lines of a chain when the output is not a terminal. */
const LINE_INTERVAL_MS = 10_000;
/** Narrow enough to show the remaining time within 80 columns. */
const PROGRESS_FORMAT = "{chain} {bar} {percentage}% | {events} events | {rate} blocks/s | {left}";
const BAR_SIZE = 10;

/**
 * Shows a progress bar per chain on a terminal, else prints a line per chain from time to time.
 * @param now milliseconds on a monotonic clock
 */
export function createProgressDisplay(
  output: Writable & { readonly isTTY?: boolean },
  now: () => number,
): ProgressDisplay {
  return output.isTTY === true ? createTerminalDisplay(output, now) : createLineDisplay(output, now);
}

/** Estimates the speed and the remaining time of each chain. */
function createSpeedEstimator(now: () => number) {
  const startedAt = new Map<string, number>();
  return ({ chain, blocksDone, blocksTotal }: BackfillProgress) => {
    // A backfill that failed starts again with the remaining blocks.
    const start = (blocksDone > 0 ? startedAt.get(chain) : undefined) ?? now();
    startedAt.set(chain, start);
    const seconds = (now() - start) / 1_000;
    const rate = seconds > 0 ? blocksDone / seconds : 0;
    return {
      rate: Math.round(rate),
      left: blocksDone >= blocksTotal ? "done" : formatTimeLeft((blocksTotal - blocksDone) / rate),
    };
  };
}

/** @param seconds not finite: not known yet */
function formatTimeLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) return "time left unknown";
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${Math.ceil(seconds)} s left`;
  return minutes < 60 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

function createTerminalDisplay(output: Writable, now: () => number): ProgressDisplay {
  const multiBar = new cliProgress.MultiBar(
    { format: PROGRESS_FORMAT, barsize: BAR_SIZE, stream: output, hideCursor: true },
    cliProgress.Presets.rect,
  );
  const bars = new Map<string, cliProgress.SingleBar>();
  const estimateSpeed = createSpeedEstimator(now);
  return {
    update(progress) {
      const { chain, blocksDone, blocksTotal, events } = progress;
      // A chain without blocks to read gets no bar.
      if (blocksTotal === 0) return;
      const payload = { chain: chain.padEnd(9), events, ...estimateSpeed(progress) };
      const bar = bars.get(chain) ?? multiBar.create(blocksTotal, 0, payload);
      bars.set(chain, bar);
      bar.setTotal(blocksTotal);
      bar.update(blocksDone, payload);
    },
    printLine: (line) => multiBar.log(`${line}\n`),
    stop: () => multiBar.stop(),
  };
}

function createLineDisplay(output: Writable, now: () => number): ProgressDisplay {
  const printedAt = new Map<string, number>();
  const estimateSpeed = createSpeedEstimator(now);
  return {
    update(progress) {
      const { chain, blocksDone, blocksTotal, events } = progress;
      const { rate, left } = estimateSpeed(progress);
      const isDue = now() - (printedAt.get(chain) ?? Number.NEGATIVE_INFINITY) >= LINE_INTERVAL_MS;
      if (!isDue && blocksDone < blocksTotal) return;
      printedAt.set(chain, now());
      output.write(`${chain}: ${blocksDone}/${blocksTotal} blocks, ${events} events, ${rate} blocks/s, ${left}\n`);
    },
    printLine: (line) => void output.write(`${line}\n`),
    stop: () => {},
  };
}
