import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createEventLoopDelay, sleepOnTime } from "../../../../src/chain/endpoints/event-loop-delay.js";

let nowMs = 0;
const now = (): number => nowMs;
const never = new AbortController().signal;
beforeEach(() => {
  nowMs = 0;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets time pass while the event loop runs. */
function run(ms: number): void {
  for (let passed = 0; passed < ms; passed += 10) {
    nowMs += 10;
    vi.advanceTimersByTime(10);
  }
}

/** Lets time pass while the event loop is blocked. */
function block(ms: number): void {
  nowMs += ms;
}

describe("the event-loop delay", () => {
  test("is the time by which timers were late, while somebody measures", () => {
    const delay = createEventLoopDelay(now);
    block(5_000);
    expect(delay.totalMs()).toBe(0);
    const end = delay.measure();
    run(1_000);
    expect(delay.totalMs()).toBe(0);
    block(2_000);
    // Known before the late timer fires.
    expect(delay.totalMs()).toBe(1_950);
    run(1_000);
    expect(delay.totalMs()).toBeGreaterThanOrEqual(1_950);
    expect(delay.totalMs()).toBeLessThanOrEqual(2_000);
    const total = delay.totalMs();
    end();
    block(5_000);
    expect(delay.totalMs()).toBe(total);
  });

  test("costs one timer however many measure, and none when nobody does", () => {
    const delay = createEventLoopDelay(now);
    const ends = Array.from({ length: 100 }, () => delay.measure());
    expect(vi.getTimerCount()).toBe(1);
    for (const end of ends) end();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a wait", () => {
  test("is prolonged by what the event loop was late", async () => {
    let lateMs = 0;
    const waits: number[] = [];
    const lateness = [800, 300, 0];
    await Promise.all([
      sleepOnTime(
        1_500,
        never,
        async (ms) => {
          waits.push(ms);
          lateMs += lateness.shift() ?? 0;
        },
        { measure: () => () => {}, totalMs: () => lateMs },
      ),
      vi.advanceTimersByTimeAsync(1),
    ]);
    expect(waits).toEqual([1_500, 800, 300]);
  });

  test("ends after I/O that was pending when its time was over", async () => {
    vi.useRealTimers();
    const order: string[] = [];
    const waiting = sleepOnTime(1, never, async () => {}, { measure: () => () => {}, totalMs: () => 0 });
    setImmediate(() => order.push("I/O"));
    await waiting.then(() => order.push("wait"));
    expect(order).toEqual(["I/O", "wait"]);
  });
});
