import { setImmediate } from "node:timers/promises";
import type { ChangedTransfer, IndexChangeFeed } from "../index/store/changes/index-changes.js";

/** Reads what changes in the index, for all watches of this process. */
export interface IndexChangeReader {
  close(): void;
}

export interface IndexChangeReaderOptions {
  /** Returns undefined while the index is not open. */
  readonly getFeed: () => IndexChangeFeed | undefined;
  readonly onChanges: (changed: readonly ChangedTransfer[]) => void;
  /** Called when changes were missed: anything may have changed. */
  readonly onGap: () => void;
  /** Called when everything up to now was read, with the sequence of the last change. */
  readonly onCaughtUp?: (sequence: number) => void;
  /** Changes to read that precede the beginning. Default: none */
  readonly lookBack?: number;
}

/** Other processes write the same index: only its sequence tells of their changes. A read of it takes some microseconds. */
const POLL_MS = 1_000;
const CHANGES_PER_READ = 500;

export function createIndexChangeReader(options: IndexChangeReaderOptions): IndexChangeReader {
  const { getFeed, onChanges, onGap, onCaughtUp, lookBack = 0 } = options;
  let feed: IndexChangeFeed | undefined;
  let unsubscribe: (() => void) | undefined;
  /** Sequence of the last change that was read; undefined: none was asked for yet. */
  let sequence: number | undefined;
  let isReading = false;
  let isWoken = false;

  async function readAll(current: IndexChangeFeed): Promise<void> {
    const newest = await current.readSequence();
    sequence ??= Math.max(0, newest - lookBack);
    // A lower one is of an index that was built again.
    if (newest < sequence) {
      sequence = newest;
      onGap();
    }
    for (let hasMore = newest > sequence; hasMore; ) {
      const changes = await current.readChanges(sequence, CHANGES_PER_READ);
      sequence = changes.sequence;
      hasMore = changes.hasMore;
      if (!changes.isComplete) onGap();
      onChanges(changes.changed);
      // Reads of a file do not wait: what precedes the beginning may be much.
      if (hasMore && lookBack > 0) await setImmediate();
    }
    onCaughtUp?.(sequence);
  }

  async function read(): Promise<void> {
    const current = getFeed();
    isWoken = true;
    if (isReading || current === undefined) return;
    if (current !== feed) {
      unsubscribe?.();
      feed = current;
      unsubscribe = current.subscribe(() => void read());
    }
    isReading = true;
    try {
      while (isWoken) {
        isWoken = false;
        await readAll(current);
      }
    } catch {
      // The index cannot be read now: the next poll goes on from the same sequence.
    } finally {
      isReading = false;
    }
  }

  const timer = setInterval(() => void read(), POLL_MS);
  timer.unref();
  void read();
  return {
    close() {
      clearInterval(timer);
      unsubscribe?.();
    },
  };
}
