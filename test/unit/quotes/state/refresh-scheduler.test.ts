import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createRefreshScheduler } from "../../../../src/quotes/state/refresh-scheduler.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setup() {
  const run = vi.fn();
  return { run, scheduler: createRefreshScheduler(run, Date.now) };
}

describe("createRefreshScheduler", () => {
  test("runs once, at the earliest of the scheduled times", () => {
    const { run, scheduler } = setup();
    scheduler.scheduleWithin(2_000);
    scheduler.scheduleWithin(1_000);
    scheduler.scheduleWithin(3_000);
    vi.advanceTimersByTime(999);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(10_000);
    expect(run).toHaveBeenCalledTimes(1);
  });

  test("is scheduled until it runs, and can be scheduled again by the run", () => {
    const { run, scheduler } = setup();
    run.mockImplementationOnce(() => {
      expect(scheduler.isScheduled()).toBe(false);
      scheduler.scheduleWithin(500);
    });
    scheduler.scheduleWithin(1_000);
    expect(scheduler.isScheduled()).toBe(true);
    vi.advanceTimersByTime(1_500);
    expect(run).toHaveBeenCalledTimes(2);
    expect(scheduler.isScheduled()).toBe(false);
  });

  test("does not run after it is cancelled", () => {
    const { run, scheduler } = setup();
    scheduler.scheduleWithin(1_000);
    scheduler.cancel();
    vi.advanceTimersByTime(10_000);
    expect(run).not.toHaveBeenCalled();
  });
});
