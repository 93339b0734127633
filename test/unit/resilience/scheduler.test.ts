import { beforeEach, describe, expect, test, vi } from "vitest";
import { type JobRun, Scheduler } from "../../../src/resilience/scheduler.js";
import { createDeferred } from "../../support/stubs/transfer-fixtures.js";

beforeEach(() => void vi.useFakeTimers());

/** Creates a scheduler, and a job that counts its runs and lasts until `end` of each. */
function setup() {
  const errors: [unknown, string][] = [];
  const scheduler = new Scheduler({ onError: (...error) => errors.push(error), random: () => 0.75 });
  const runs: ReturnType<typeof createDeferred<void>>[] = [];
  const signals: AbortSignal[] = [];
  const run: JobRun = (signal) => {
    const deferred = createDeferred<void>();
    runs.push(deferred);
    signals.push(signal);
    return deferred.promise;
  };
  return { scheduler, errors, run, runs, signals };
}

describe("a scheduler", () => {
  test("runs a job after each interval", () => {
    const { scheduler } = setup();
    const job = vi.fn();
    scheduler.every("job", 1_000, job);
    vi.advanceTimersByTime(999);
    expect(job).not.toHaveBeenCalled();
    vi.advanceTimersByTime(2_001);
    expect(job).toHaveBeenCalledTimes(3);
  });

  test("begins with the first delay where one is given", () => {
    const { scheduler } = setup();
    const job = vi.fn();
    scheduler.every("job", 1_000, job, { firstDelayMs: 0 });
    vi.advanceTimersByTime(1);
    expect(job).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1_000);
    expect(job).toHaveBeenCalledTimes(2);
  });

  test("asks for the interval after each run", () => {
    const { scheduler } = setup();
    const [job, intervals] = [vi.fn(), [100, 200, 400]];
    scheduler.every("job", () => intervals.shift() ?? 10_000, job);
    for (const [elapsedMs, count] of [
      [100, 1],
      [200, 2],
      [399, 2],
      [1, 3],
    ] as const) {
      vi.advanceTimersByTime(elapsedMs);
      expect(job).toHaveBeenCalledTimes(count);
    }
  });

  test("varies the interval by the jitter", () => {
    const { scheduler } = setup();
    const job = vi.fn();
    scheduler.every("job", 1_000, job, { jitter: 0.2 });
    vi.advanceTimersByTime(1_099);
    expect(job).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(job).toHaveBeenCalledTimes(1);
  });

  test("never starts a run before the one before has ended, and counts the interval from its end", async () => {
    const { scheduler, run, runs } = setup();
    scheduler.every("job", 1_000, run);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs).toHaveLength(1);
    runs[0]?.resolve();
    await vi.advanceTimersByTimeAsync(999);
    expect(runs).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toHaveLength(2);
  });

  const fail = (): never => {
    throw new Error("broken");
  };

  test.each<[string, () => Promise<void>]>([
    ["throws", fail],
    ["rejects", async () => fail()],
  ])("reports the error of a run that %s, and goes on", async (_, job) => {
    const { scheduler, errors } = setup();
    scheduler.every("read", 1_000, job);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(errors).toEqual(Array(2).fill([new Error("broken"), "read"]));
  });

  test("runs a job at once on demand, and once more after a run in progress", async () => {
    const { scheduler, run, runs } = setup();
    const job = scheduler.every("job", 1_000, run);
    job.runNow();
    expect(runs).toHaveLength(1);
    job.runNow();
    job.runNow();
    expect(runs).toHaveLength(1);
    runs[0]?.resolve();
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toHaveLength(2);
    runs[1]?.resolve();
    await vi.advanceTimersByTimeAsync(999);
    expect(runs).toHaveLength(2);
  });

  test("stops a job, and aborts the signal of the run in progress without reporting its error", async () => {
    const { scheduler, errors, run, runs, signals } = setup();
    const job = scheduler.every("job", 1_000, run);
    await vi.advanceTimersByTimeAsync(1_000);
    job.stop();
    expect(signals[0]?.aborted).toBe(true);
    runs[0]?.reject(new Error("aborted"));
    job.runNow();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs).toHaveLength(1);
    expect(errors).toEqual([]);
  });

  test("stops all jobs when it is closed, and starts no further one", async () => {
    const { scheduler } = setup();
    const [one, other, late] = [vi.fn(), vi.fn(), vi.fn()];
    scheduler.every("one", 1_000, one);
    scheduler.every("other", 2_000, other);
    scheduler.close();
    scheduler.every("late", 1_000, late).runNow();
    await vi.advanceTimersByTimeAsync(10_000);
    for (const job of [one, other, late]) expect(job).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("does not keep the process alive", () => {
    vi.useRealTimers();
    const started = vi.spyOn(globalThis, "setTimeout");
    const job = new Scheduler().every("job", 60_000, () => {});
    expect(started.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef())).toEqual([false]);
    job.stop();
    started.mockRestore();
  });
});
