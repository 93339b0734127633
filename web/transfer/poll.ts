/** What is told after each look: whether there is something to wait for, and whether it changed since the last look. */
export type PollResult = "over" | "changed" | "same";

const INITIAL_INTERVAL_MS = 2_000;
const MAX_INTERVAL_MS = 30_000;
const BACKOFF_FACTOR = 1.5;

/**
 * Looks again and again until it is over: soon after something changed, then less and less often, and not at all while
 * nobody sees the page.
 */
export async function pollWithBackoff(deps: {
  /** Does not fail. */
  readonly look: () => Promise<PollResult>;
  /** Resolves after a while, at once where the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Resolves as soon as the page is visible, at once where the signal aborts. */
  readonly waitUntilVisible: (signal: AbortSignal) => Promise<void>;
  /** Told before each pause. */
  readonly onPause: (ms: number) => void;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { look, sleep, waitUntilVisible, onPause, signal } = deps;
  let pauseMs = INITIAL_INTERVAL_MS;
  while (!signal.aborted) {
    const found = await look();
    if (signal.aborted || found === "over") return;
    pauseMs = found === "changed" ? INITIAL_INTERVAL_MS : Math.min(pauseMs * BACKOFF_FACTOR, MAX_INTERVAL_MS);
    onPause(pauseMs);
    await sleep(pauseMs, signal);
    await waitUntilVisible(signal);
  }
}
