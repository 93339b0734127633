/** A single timer that runs one task at the earliest of the scheduled times. */
export interface RefreshScheduler {
  isScheduled(): boolean;
  /** Makes sure that the task runs within this time; never postpones a run that is scheduled earlier. */
  scheduleWithin(delayMs: number): void;
  cancel(): void;
}

/**
 * Creates a scheduler; its timer does not keep the process alive.
 * @param run may schedule the next run
 * @param now milliseconds on a monotonic clock
 */
export function createRefreshScheduler(run: () => void, now: () => number): RefreshScheduler {
  const state: { timer: NodeJS.Timeout | undefined; dueAt: number } = {
    timer: undefined,
    dueAt: Number.POSITIVE_INFINITY,
  };

  function fire(): void {
    state.timer = undefined;
    run();
  }

  return {
    isScheduled: () => state.timer !== undefined,
    scheduleWithin(delayMs) {
      const dueAt = now() + delayMs;
      if (state.timer !== undefined && state.dueAt <= dueAt) return;
      clearTimeout(state.timer);
      state.timer = setTimeout(fire, delayMs).unref();
      state.dueAt = dueAt;
    },
    cancel() {
      clearTimeout(state.timer);
    },
  };
}
