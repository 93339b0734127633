/** What is told after each look: whether there is something to wait for, and whether it changed since the last look. */
export type Look = "over" | "changed" | "same";

const firstPauseMs = 2_000;
const longestPauseMs = 30_000;
const growth = 1.5;

/**
 * Looks again and again until it is over: soon after something changed, then less and less often, and not at all while
 * nobody sees the page.
 */
export async function watch(deps: {
  /** Does not fail. */
  readonly look: () => Promise<Look>;
  /** Resolves after a while, at once where the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Resolves as soon as the page is seen, at once where the signal aborts. */
  readonly seen: (signal: AbortSignal) => Promise<void>;
  /** Told before each pause. */
  readonly onPause: (ms: number) => void;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { look, pause, seen, onPause, signal } = deps;
  let pauseMs = firstPauseMs;
  while (!signal.aborted) {
    const found = await look();
    if (signal.aborted || found === "over") return;
    pauseMs = found === "changed" ? firstPauseMs : Math.min(pauseMs * growth, longestPauseMs);
    onPause(pauseMs);
    await pause(pauseMs, signal);
    await seen(signal);
  }
}
