import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Alarm, createWatchClock, TICK_MS } from "../../../../src/transfers/watch/watch-clock.js";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

const now = () => Date.now();

/** An alarm that notes when it goes off, in milliseconds since the start. */
function createAlarm(next: (count: number) => number | undefined = () => undefined) {
  const times: number[] = [];
  const began = now();
  const alarm: Alarm = {
    onAlarm(time) {
      times.push(time - began);
      return next(times.length);
    },
  };
  return { alarm, times };
}

const WITHIN_A_TICK = (dueAt: number) => [expect.toSatisfy((at: number) => at >= dueAt && at <= dueAt + TICK_MS)];

test.each([1_000, 14_500, 60_000, 3_600_000])("an alarm goes off once, within a tick, after %i ms", async (delayMs) => {
  const clock = createWatchClock(now);
  let dueAt = now() + delayMs;
  const { alarm, times } = createAlarm();
  // Beyond a turn of the wheel it is visited before, and put off.
  let visits = 0;
  const visited: Alarm = {
    onAlarm(time) {
      visits += 1;
      return time < dueAt ? dueAt : alarm.onAlarm(time);
    },
  };
  clock.add(visited, dueAt);
  await vi.advanceTimersByTimeAsync(delayMs + 60_000);
  expect(times).toEqual(WITHIN_A_TICK(delayMs));
  // At most once in a turn of 32 seconds, and when it is due.
  expect(visits).toBeLessThanOrEqual(2 + delayMs / 31_000);
  dueAt = 0;
  expect(vi.getTimerCount()).toBe(0);
});

test("an alarm goes off again when it says", async () => {
  const clock = createWatchClock(now);
  const { alarm, times } = createAlarm((count) => (count < 3 ? now() + 5_000 : undefined));
  clock.add(alarm, now() + 5_000);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(times).toHaveLength(3);
  for (const [index, at] of times.entries()) expect(at - (index + 1) * 5_000).toBeLessThanOrEqual(3 * TICK_MS);
  expect(times[0]).toBeGreaterThanOrEqual(5_000);
});

test("one timer wakes ten thousand, and none is left when all are removed", async () => {
  const clock = createWatchClock(now);
  const alarms = Array.from({ length: 10_000 }, () => createAlarm());
  for (const { alarm } of alarms) clock.add(alarm, now() + 1_000);
  expect(vi.getTimerCount()).toBe(1);
  for (const { alarm } of alarms.slice(1)) clock.remove(alarm);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(alarms.filter(({ times }) => times.length > 0)).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test("an alarm that is removed by another in the same tick does not go off, nor does one that removes itself", async () => {
  const clock = createWatchClock(now);
  const second = createAlarm();
  const first: Alarm = {
    onAlarm(time) {
      clock.remove(second.alarm);
      clock.remove(first);
      return time + 1_000;
    },
  };
  const onAlarm = vi.spyOn(first, "onAlarm");
  const later = createAlarm();
  clock.add(later.alarm, now() + 5_000);
  clock.add(first, now() + 1_000);
  clock.add(second.alarm, now() + 1_000);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([onAlarm.mock.calls.length, second.times.length, later.times.length]).toEqual([1, 0, 1]);
  expect(vi.getTimerCount()).toBe(0);
});

test("an alarm that is overdue goes off at the next tick", async () => {
  const clock = createWatchClock(now);
  const { alarm, times } = createAlarm();
  clock.add(alarm, now() - 10_000);
  await vi.advanceTimersByTimeAsync(TICK_MS);
  expect(times).toEqual([TICK_MS]);
});

test("an alarm that is added again goes off at the last time only", async () => {
  const clock = createWatchClock(now);
  const { alarm, times } = createAlarm();
  clock.add(alarm, now() + 1_000);
  clock.add(alarm, now() + 5_000);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(times).toEqual(WITHIN_A_TICK(5_000));
});

test("a clock that is closed wakes nobody, and an alarm that is not there can be removed", async () => {
  const clock = createWatchClock(now);
  const { alarm, times } = createAlarm();
  clock.remove(alarm);
  clock.add(alarm, now() + 1_000);
  clock.close();
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(times).toEqual([]);
});

test("after a pause of the process each alarm goes off once", async () => {
  let skippedMs = 0;
  const clock = createWatchClock(() => Date.now() + skippedMs);
  const alarms = Array.from({ length: 50 }, () => createAlarm());
  for (const [index, { alarm }] of alarms.entries()) clock.add(alarm, now() + 500 * index);
  skippedMs = 24 * 3_600_000;
  await vi.advanceTimersByTimeAsync(TICK_MS);
  expect(alarms.map(({ times }) => times.length)).toEqual(alarms.map(() => 1));
  clock.close();
  expect(vi.getTimerCount()).toBe(0);
});
