/** Something that is due at a time which may be put off. */
export interface Alarm {
  /** Does what is due, and returns when it is due next, in milliseconds on the monotonic clock; undefined: never. */
  onAlarm(now: number): number | undefined;
}

/**
 * Wakes thousands of watches by one timer, to within a tick. A watch is visited when it was due at its last visit: what
 * happened since only puts it off, so messages cost nothing here.
 */
export interface WatchClock {
  add(alarm: Alarm, dueAt: number): void;
  remove(alarm: Alarm): void;
  close(): void;
}

/** Time between two ticks. */
export const TICK_MS = 250;
/** Ticks of one turn; what is due later goes round once more. */
const SLOTS = 128;

/** @param now monotonic clock, in milliseconds */
export function createWatchClock(now: () => number): WatchClock {
  const slots = Array.from({ length: SLOTS }, () => new Set<Alarm>());
  const slotByAlarm = new Map<Alarm, Set<Alarm>>();
  let timer: NodeJS.Timeout | undefined;
  /** Number of the last tick that was handled. */
  let handled = 0;
  const toTick = (time: number): number => Math.floor(time / TICK_MS);

  function place(alarm: Alarm, dueAt: number): void {
    const tick = Math.min(Math.max(toTick(dueAt), handled + 1), handled + SLOTS - 1);
    const slot = slots[tick % SLOTS] as Set<Alarm>;
    slot.add(alarm);
    slotByAlarm.set(alarm, slot);
  }

  function remove(alarm: Alarm): void {
    slotByAlarm.get(alarm)?.delete(alarm);
    slotByAlarm.delete(alarm);
    if (slotByAlarm.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function onTick(): void {
    const current = toTick(now());
    // After a pause of the process each slot is visited once at most.
    for (handled = Math.max(handled, current - SLOTS); handled < current; ) {
      handled += 1;
      const due = slots[handled % SLOTS] as Set<Alarm>;
      slots[handled % SLOTS] = new Set();
      for (const alarm of due) {
        if (slotByAlarm.get(alarm) !== due) continue;
        const next = alarm.onAlarm(now());
        if (slotByAlarm.get(alarm) !== due) continue;
        if (next === undefined) remove(alarm);
        else place(alarm, next);
      }
    }
  }

  return {
    add(alarm, dueAt) {
      if (timer === undefined) {
        handled = toTick(now());
        timer = setInterval(onTick, TICK_MS);
      }
      place(alarm, dueAt);
    },
    remove,
    close() {
      clearInterval(timer);
      timer = undefined;
    },
  };
}
