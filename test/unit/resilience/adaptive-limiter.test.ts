import fc from "fast-check";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { AdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

const never = new AbortController().signal;
const overloaded = { reason: "OVERLOADED", retryAfterSeconds: 1 };

/** Event-loop lag. */
let lagMs = 0;
/** Whether work on the event loop causes the lag. */
let isBusy = true;
/** The clock, and the active time of the event loop. */
let time = 0;
let activeMs = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  [lagMs, isBusy, time, activeMs] = [0, true, 0, 0];
});

/** Advances the time by a number of samples. */
async function passSamples(count: number): Promise<void> {
  for (let sample = 0; sample < count; sample += 1) {
    time += 20 + lagMs;
    activeMs += isBusy ? 20 + lagMs : 12;
    await vi.advanceTimersByTimeAsync(20);
  }
}

/** Creates a limiter and functions that submit and end work. */
function setup() {
  const limiter = new AdaptiveLimiter(
    () => time,
    () => activeMs,
  );
  const running: ReturnType<typeof createDeferred<string>>[] = [];
  /** Callers whose work has started, in order. */
  const started: string[] = [];
  const counts = { rejected: 0, done: 0 };
  return {
    limiter,
    running,
    started,
    counts,
    submit(caller: string, count = 1, signal = never): void {
      for (let index = 0; index < count; index += 1) {
        const result = limiter.run(caller, signal, () => {
          const work = createDeferred<string>();
          running.push(work);
          started.push(caller);
          return work.promise;
        });
        result.then(
          () => (counts.done += 1),
          () => (counts.rejected += 1),
        );
      }
    },
    async end(count = 1): Promise<void> {
      for (const work of running.splice(0, count)) work.resolve("done");
      await flushEventLoop();
    },
  };
}

/** Returns how many calls of one caller run concurrently. */
async function measureLimit({ submit, running, end }: ReturnType<typeof setup>): Promise<number> {
  await end(Number.POSITIVE_INFINITY);
  submit("measure", 5_000);
  await flushEventLoop();
  const count = running.length;
  await end(Number.POSITIVE_INFINITY);
  return count;
}

describe("adaptive limiter", () => {
  test("queues other callers while one holds its maximum, and runs them before its next work", async () => {
    const { submit, started, counts, end } = setup();
    submit("a", 136);
    submit("b", 2);
    await flushEventLoop();
    expect([started.length, counts.rejected]).toEqual([64, 8]);
    submit("a", 1);
    for (const count of [64, 2]) await end(count);
    submit("a", 1);
    await end(1);
    expect(started.slice(127)).toEqual(["a", "b", "b", "a"]);
    expect(counts).toEqual({ rejected: 9, done: 67 });
  });

  test("raises the limit while saturated without lag, and admits queued work", async () => {
    const { submit, running } = setup();
    submit("a", 64);
    submit("b", 8);
    await passSamples(1);
    expect(running.length).toBe(71);
    await passSamples(1);
    // No new work was submitted, but queued work counts as saturation.
    expect(running.length).toBe(72);
  });

  test("raises the limit for work that only waits, up to the maximum", async () => {
    const parts = setup();
    for (let look = 0; look < 60; look += 1) {
      parts.submit("a", 5_000);
      await passSamples(1);
    }
    expect(parts.running.length).toBe(2_048);
  });

  test("lowers the limit while the event loop lags, down to the minimum", async () => {
    const parts = setup();
    parts.submit("a", 50);
    lagMs = 30;
    await passSamples(1);
    expect(await measureLimit(parts)).toBe(40);
    parts.submit("a", 40);
    await passSamples(20);
    expect(await measureLimit(parts)).toBe(16);
  });

  test("keeps the limit when another process causes the lag", async () => {
    const parts = setup();
    parts.submit("a", 50);
    [lagMs, isBusy] = [30, false];
    await passSamples(20);
    expect(await measureLimit(parts)).toBe(64);
  });

  test.each([
    ["little", 30],
    ["much", 0],
  ])("resets the limit when all work has ended, however %s was allowed", async (_, lag) => {
    const parts = setup();
    lagMs = lag;
    for (let look = 0; look < 20; look += 1) {
      parts.submit("a", 500);
      await passSamples(1);
    }
    while (parts.running.length > 0) await parts.end(Number.POSITIVE_INFINITY);
    await passSamples(1);
    expect(await measureLimit(parts)).toBe(64);
  });

  test("recovers when the lag has ended", async () => {
    const parts = setup();
    parts.submit("a", 64);
    lagMs = 30;
    await passSamples(20);
    lagMs = 0;
    await parts.end(Number.POSITIVE_INFINITY);
    // Less than a second of overload.
    for (let sample = 0; sample < 40; sample += 1) {
      parts.submit("a", 100);
      await passSamples(1);
    }
    expect(parts.running.length).toBeGreaterThan(64);
  });

  test("samples the event loop only while there is work", async () => {
    const { submit, end } = setup();
    expect(vi.getTimerCount()).toBe(0);
    submit("a", 2);
    expect(vi.getTimerCount()).toBe(1);
    await end(2);
    await passSamples(1);
    expect(vi.getTimerCount()).toBe(0);
    submit("a");
    expect(vi.getTimerCount()).toBe(1);
  });

  test("rejects in assertCapacity like in run, and counts that as saturation", async () => {
    const { limiter, submit, running } = setup();
    submit("a", 127);
    expect(() => limiter.assertCapacity("a")).not.toThrow();
    submit("a", 1);
    expect(() => limiter.assertCapacity("a")).toThrow(expect.objectContaining(overloaded));
    expect(() => limiter.assertCapacity("b")).not.toThrow();
    expect(running.length).toBe(64);
  });

  test("loses no slot for any order of arrivals, completions, failures and departures", async () => {
    const step = fc.record({
      action: fc.constantFrom("arrive", "throw", "end", "fail", "leave", "sample", "lag"),
      count: fc.integer({ min: 1, max: 150 }),
      caller: fc.constantFrom("a", "b", "c"),
      stopsOnAbort: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const limiter = new AdaptiveLimiter(
          () => time,
          () => activeMs,
        );
        const all = new Set<ReturnType<typeof createDeferred<string>>>();
        const callers: AbortController[] = [];
        let [running, rejected] = [0, 0];
        const submit = (caller: string, stopsOnAbort: boolean, throwsAtOnce: boolean): void => {
          const leaving = new AbortController();
          callers.push(leaving);
          const result = limiter.run(caller, leaving.signal, () => {
            if (throwsAtOnce) throw new Error("at once");
            running += 1;
            const work = createDeferred<string>();
            all.add(work);
            // Some work continues after its caller has left.
            if (stopsOnAbort) leaving.signal.addEventListener("abort", () => work.reject(new Error("left")));
            return work.promise.finally(() => {
              running -= 1;
              all.delete(work);
            });
          });
          result.catch(({ reason }) => {
            if (reason === "OVERLOADED") rejected += 1;
          });
        };
        for (const { action, count, caller, stopsOnAbort } of steps) {
          lagMs = action === "lag" ? 30 : 0;
          if (action === "sample" || action === "lag") await passSamples(1 + (count % 9));
          else if (action === "leave") for (const caller of callers.splice(0, count)) caller.abort(new Error("left"));
          else if (action === "arrive" || action === "throw") {
            for (let index = 0; index < count; index += 1) submit(caller, stopsOnAbort, action === "throw");
          } else
            for (const work of [...all].slice(0, count)) action === "end" ? work.resolve("") : work.reject(new Error());
          await flushEventLoop();
          expect(running).toBeLessThanOrEqual(2_048);
        }
        for (const caller of callers.splice(0)) caller.abort(new Error("left"));
        while (running > 0) {
          for (const work of all) work.resolve("");
          await flushEventLoop();
        }
        lagMs = 0;
        await passSamples(2);
        // As for a new limiter: the full capacity of one caller, running and queued, and no more.
        rejected = 0;
        for (let index = 0; index < 136; index += 1) submit("d", true, false);
        await flushEventLoop();
        expect([running, rejected]).toEqual([64, 8]);
        for (const caller of callers) caller.abort(new Error("left"));
        await flushEventLoop();
        await passSamples(1);
      }),
      { numRuns: 60 },
    );
  });
});
