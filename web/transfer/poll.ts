/** Result of one poll: `done` ends polling, `changed` shortens the interval, `unchanged` lengthens it. */
export type PollResult = "done" | "changed" | "unchanged";

const INITIAL_INTERVAL_MS = 2_000;
const MAX_INTERVAL_MS = 30_000;
const BACKOFF_FACTOR = 1.5;

/** Polls with exponential backoff until done. A change resets the interval. Pauses while the page is hidden. */
export async function pollWithBackoff(options: {
  /** Must not reject. */
  readonly poll: () => Promise<PollResult>;
  /** Resolves after a delay, or immediately when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Resolves when the page is visible, or immediately when the signal aborts. */
  readonly waitUntilVisible: (signal: AbortSignal) => Promise<void>;
  /** Called before every wait. */
  readonly onWait: (ms: number) => void;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { poll, sleep, waitUntilVisible, onWait, signal } = options;
  let intervalMs = INITIAL_INTERVAL_MS;
  while (!signal.aborted) {
    const result = await poll();
    if (signal.aborted || result === "done") return;
    intervalMs = result === "changed" ? INITIAL_INTERVAL_MS : Math.min(intervalMs * BACKOFF_FACTOR, MAX_INTERVAL_MS);
    onWait(intervalMs);
    await sleep(intervalMs, signal);
    await waitUntilVisible(signal);
  }
}
