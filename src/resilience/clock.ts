import { setTimeout as delay } from "node:timers/promises";

/** The two clocks of the process, as an option that tests replace. */
export interface Clocks {
  /** Wall clock: milliseconds since 1970. */
  readonly now: () => number;
  /** Monotonic clock in milliseconds, for ages, timeouts and intervals. */
  readonly monotonicNow: () => number;
}

/**
 * Returns milliseconds on a monotonic clock, for ages, timeouts and intervals. The wall clock can be set back: a value
 * that is due in a second would then be due in an hour and a second. Starts near the wall clock's time.
 */
export function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * Returns a clock that reads another one once per turn of the event loop: many short calls in a turn then see the time of
 * the first. Reading a clock of the system takes up to a quarter of a microsecond on virtual machines, and a quote needs
 * the time eight times.
 */
export function createTurnClock(read: () => number): () => number {
  let time: number | undefined;
  // Runs after the events of this turn. It also keeps the next turn from waiting for events with the old time.
  const forget = (): void => {
    time = undefined;
  };
  return () => {
    if (time === undefined) {
      time = read();
      setImmediate(forget);
    }
    return time;
  };
}

/** Resolves after a time in milliseconds, or when the signal aborts. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
