import { setTimeout as delay } from "node:timers/promises";

export interface Clocks {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds on a clock that is never set; for ages and delays. */
  readonly monotonicNow: () => number;
}

/**
 * Milliseconds on a clock that nobody sets: for ages, pauses and rests. The wall clock may be put back an hour, and what
 * is to be read again in a second would be read again in an hour and a second. Counts from about 1970, like the other.
 */
export function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}

/** Resolves when the time, in milliseconds, is over or the signal fires. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
