import type { Writable } from "node:stream";
import cliProgress from "cli-progress";
import type { HistoryProgress } from "../transfers/index/sync/backfill.js";

/** Shows how far a history is filled. */
export interface ProgressDisplay {
  show(progress: HistoryProgress): void;
  /** A line between all that. */
  say(line: string): void;
  stop(): void;
}

export interface ProgressOptions {
  readonly output: Writable & { readonly isTTY?: boolean };
  /** Milliseconds on a steady clock. */
  readonly now: () => number;
}

/** Where the output is no terminal, how often a chain says how far it is. */
const lineMs = 10_000;
/** Narrow enough that the time left is seen on 80 columns. */
const format = "{chain} {bar} {percentage}% | {events} events | {rate} blocks/s | {left}";
const barsize = 10;

/** A bar for each chain on a terminal, else a line now and then. */
export function createProgressDisplay({ output, now }: ProgressOptions): ProgressDisplay {
  return output.isTTY === true ? onTerminal(output, now) : inLines(output, now);
}

/** What is known of a chain's speed. */
function createSpeed(now: () => number) {
  const startedAt = new Map<string, number>();
  return ({ slug, done, total }: HistoryProgress) => {
    // After a failure what is left begins anew.
    const started = (done > 0 ? startedAt.get(slug) : undefined) ?? now();
    startedAt.set(slug, started);
    const seconds = (now() - started) / 1_000;
    const rate = seconds > 0 ? done / seconds : 0;
    return { rate: Math.round(rate), left: done >= total ? "done" : timeLeft((total - done) / rate) };
  };
}

/** @param seconds not a finite number: not known yet */
function timeLeft(seconds: number): string {
  if (!Number.isFinite(seconds)) return "time left unknown";
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${Math.ceil(seconds)} s left`;
  return minutes < 60 ? `${minutes} min left` : `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

function onTerminal(output: ProgressOptions["output"], now: () => number): ProgressDisplay {
  const bars = new cliProgress.MultiBar(
    { format, barsize, stream: output, hideCursor: true },
    cliProgress.Presets.rect,
  );
  const bySlug = new Map<string, cliProgress.SingleBar>();
  const speedOf = createSpeed(now);
  return {
    show(progress) {
      const { slug, done, total, events } = progress;
      // A chain without blocks to read has no bar.
      if (total === 0) return;
      const payload = { chain: slug.padEnd(9), events, ...speedOf(progress) };
      const bar = bySlug.get(slug) ?? bars.create(total, 0, payload);
      bySlug.set(slug, bar);
      bar.setTotal(total);
      bar.update(done, payload);
    },
    say: (line) => bars.log(`${line}\n`),
    stop: () => bars.stop(),
  };
}

function inLines(output: Writable, now: () => number): ProgressDisplay {
  const saidAt = new Map<string, number>();
  const speedOf = createSpeed(now);
  return {
    show(progress) {
      const { slug, done, total, events } = progress;
      const { rate, left } = speedOf(progress);
      const isDue = now() - (saidAt.get(slug) ?? Number.NEGATIVE_INFINITY) >= lineMs;
      if (!isDue && done < total) return;
      saidAt.set(slug, now());
      output.write(`${slug}: ${done}/${total} blocks, ${events} events, ${rate} blocks/s, ${left}\n`);
    },
    say: (line) => void output.write(`${line}\n`),
    stop: () => {},
  };
}
