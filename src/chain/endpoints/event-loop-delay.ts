/**
 * Measures how late the event loop is, so that a busy machine is not taken for a slow endpoint: a response may have
 * arrived and not have been read yet, or the request may not even have been sent.
 */
export interface EventLoopDelay {
  /** Measures until the returned function is called. Costs one timer however many measure at the same time. */
  measure(): () => void;
  /** Returns by how much timers have been late so far while somebody measured, in milliseconds. Never falls. */
  totalMs(): number;
}

/** Sampling interval, and the lateness that does not count, both in milliseconds. */
const SAMPLE_INTERVAL_MS = 50;
const TOLERANCE_MS = 25;

/** @param now monotonic clock, in milliseconds */
export function createEventLoopDelay(now: () => number): EventLoopDelay {
  const state: { timer: NodeJS.Timeout | undefined; measuring: number; sampledAt: number; countedMs: number } = {
    timer: undefined,
    measuring: 0,
    sampledAt: 0,
    countedMs: 0,
  };

  /** Returns by how much the next sample is late at this moment. */
  function currentMs(): number {
    if (state.timer === undefined) return 0;
    const lateMs = now() - state.sampledAt - SAMPLE_INTERVAL_MS;
    return lateMs > TOLERANCE_MS ? lateMs : 0;
  }

  function sample(): void {
    state.countedMs += currentMs();
    state.sampledAt = now();
  }

  return {
    measure() {
      state.measuring += 1;
      if (state.timer === undefined) {
        state.sampledAt = now();
        state.timer = setInterval(sample, SAMPLE_INTERVAL_MS).unref();
      }
      return () => {
        state.measuring -= 1;
        if (state.measuring > 0) return;
        sample();
        clearInterval(state.timer);
        state.timer = undefined;
      };
    },
    totalMs: () => state.countedMs + currentMs(),
  };
}

/** Returns a function that returns the time since now without the time for which the event loop was late. */
export function startStopwatch(now: () => number, delay: EventLoopDelay): () => number {
  const [startedAt, lateBefore] = [now(), delay.totalMs()];
  return () => now() - startedAt - (delay.totalMs() - lateBefore);
}

/**
 * Waits for a time in milliseconds, longer by what the event loop was late meanwhile, and until responses that have
 * arrived by then have been read.
 */
export async function sleepOnTime(
  ms: number,
  signal: AbortSignal,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
  delay: EventLoopDelay,
): Promise<void> {
  let remainingMs = ms;
  while (remainingMs > 0 && !signal.aborted) {
    const lateBefore = delay.totalMs();
    await sleep(remainingMs, signal);
    remainingMs = delay.totalMs() - lateBefore;
  }
  // Timers run before I/O: two turns of the event loop read what is pending, and parse it.
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
