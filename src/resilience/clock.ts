import { setImmediate } from "node:timers";
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

/** The clocks of the system. */
export const SYSTEM_CLOCKS: Clocks = { now: () => Date.now(), monotonicNow };

/** The turn of the event loop, and whether its end is awaited. */
const turn = { number: 0, endsByImmediate: false };

/** Runs after the events of a turn. While it is awaited, the process does not wait for further events either. */
function endTurn(): void {
  turn.number += 1;
  turn.endsByImmediate = false;
}

/**
 * Returns a clock that reads another one once per turn of the event loop: many short calls in a turn then see the time of
 * the first. Reading a clock of the system takes up to a quarter of a microsecond on virtual machines, and a quote needs
 * the time eight times.
 */
export function createTurnClock(read: () => number): () => number {
  let time = 0;
  let readInTurn = -1;
  return () => {
    if (readInTurn !== turn.number) {
      time = read();
      readInTurn = readTurn();
    }
    return time;
  };
}

/** Returns both clocks as `createTurnClock` does. They are read at the same time, so that their difference is right. */
export function createTurnClocks(clocks: Clocks): Clocks {
  let wallTime = 0;
  const readMonotonic = createTurnClock(() => {
    wallTime = clocks.now();
    return clocks.monotonicNow();
  });
  return {
    monotonicNow: readMonotonic,
    now() {
      readMonotonic();
      return wallTime;
    },
  };
}

/** Returns the number of this turn of the event loop. */
export function readTurn(): number {
  if (!turn.endsByImmediate) {
    turn.endsByImmediate = true;
    setImmediate(endTurn);
  }
  return turn.number;
}

/** Resolves after a time in milliseconds, or when the signal aborts. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
