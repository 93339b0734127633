import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type AdaptiveLimiter, createAdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

const never = new AbortController().signal;
const overloaded = { reason: "OVERLOADED", retryAfterSeconds: 1 };

/** Event-loop lag. */
let lagMs = 0;
/** Whether the event loop's own work causes it. */
let isBusy = true;
/** The clock, and how long the event loop has been active. */
let time = 0;
let worked = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  [lagMs, isBusy, time, worked] = [0, true, 0, 0];
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets a number of samples pass. */
async function passSamples(count: number): Promise<void> {
  for (let sample = 0; sample < count; sample += 1) {
    time += 20 + lagMs;
    worked += isBusy ? 20 + lagMs : 12;
    await vi.advanceTimersByTimeAsync(20);
  }
}

/** Work that a test starts and ends. */
function setup() {
  const limiter = createAdaptiveLimiter(
    () => time,
    () => worked,
  );
  const running: ReturnType<typeof createDeferred<string>>[] = [];
  /** Callers whose work has started, in order. */
  const started: string[] = [];
  const counts = { refused: 0, done: 0 };
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
          () => {
            counts.done += 1;
          },
          () => {
            counts.refused += 1;
          },
        );
      }
    },
    async end(count = 1): Promise<void> {
      for (const work of running.splice(0, count)) work.resolve("done");
      await flushEventLoop();
    },
  };
}

/** Returns how much work of one caller runs at once. */
async function measureLimit({ submit, running, end }: ReturnType<typeof setup>): Promise<number> {
  await end(Number.POSITIVE_INFINITY);
  submit("measure", 5_000);
  await flushEventLoop();
  const count = running.length;
  await end(Number.POSITIVE_INFINITY);
  return count;
}

describe("adaptive limiter", () => {
  test("settles like the work", async () => {
    const { limiter } = setup();
    expect(await limiter.run("a", never, async () => "well")).toBe("well");
    const failing = limiter.run("a", never, async () => {
      throw new Error("mine");
    });
    await expect(failing).rejects.toThrow("mine");
  });

  test("rejects at once above capacity and accepts again when work has ended", async () => {
    const { limiter, submit, running, counts, end } = setup();
    submit("a", 64 + 64);
    await expect(limiter.run("a", never, async () => "never")).rejects.toMatchObject(overloaded);
    expect([running.length, counts]).toEqual([64, { refused: 0, done: 0 }]);
    await end(1);
    submit("a", 2);
    await flushEventLoop();
    expect([running.length, counts]).toEqual([64, { refused: 1, done: 1 }]);
  });

  test("queues other callers while one holds its maximum, and runs them before its next work", async () => {
    const { submit, started, counts, end } = setup();
    submit("a", 136);
    submit("b", 2);
    await flushEventLoop();
    expect([started.length, counts.refused]).toEqual([64, 8]);
    submit("a", 1);
    for (const count of [64, 2]) await end(count);
    submit("a", 1);
    await end(1);
    expect(started.slice(127)).toEqual(["a", "b", "b", "a"]);
    expect(counts).toEqual({ refused: 9, done: 67 });
  });

  test("frees the slot of a caller that leaves the queue", async () => {
    const { submit, running, counts, end } = setup();
    const leaving = new AbortController();
    submit("a", 64);
    submit("b", 1, leaving.signal);
    leaving.abort(new Error("left"));
    await flushEventLoop();
    expect(counts).toEqual({ refused: 1, done: 0 });
    await end(64);
    expect(running.length).toBe(0);
    submit("a", 64);
    expect(running.length).toBe(64);
  });

  test("raises the limit while saturated without lag, and admits queued work", async () => {
    const { submit, running } = setup();
    submit("a", 64);
    submit("b", 8);
    await passSamples(1);
    expect(running.length).toBe(71);
    await passSamples(1);
    // Nobody came in between, but somebody waits.
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

  test("keeps the limit when it is not saturated", async () => {
    const parts = setup();
    parts.submit("a", 10);
    await passSamples(20);
    expect(await measureLimit(parts)).toBe(64);
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
    // Less than a second of more than it bears.
    for (let look = 0; look < 40; look += 1) {
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

  test("does not start for a caller that has already left", async () => {
    const { limiter }: { limiter: AdaptiveLimiter } = setup();
    let isBegun = false;
    const result = limiter.run("a", AbortSignal.abort(new Error("left")), async () => {
      isBegun = true;
    });
    await expect(result).rejects.toThrow("left");
    expect(isBegun).toBe(false);
  });

  test("loses no slot for any order of arrivals, completions, failures and departures", async () => {
    const step = fc.record({
      what: fc.constantFrom("come", "throw", "end", "fail", "leave", "look", "lag"),
      count: fc.integer({ min: 1, max: 150 }),
      caller: fc.constantFrom("a", "b", "c"),
      heeds: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const limiter = createAdaptiveLimiter(
          () => time,
          () => worked,
        );
        const all = new Set<ReturnType<typeof createDeferred<string>>>();
        const callers: AbortController[] = [];
        let [running, refused] = [0, 0];
        const submit = (caller: string, heeds: boolean, isWrong: boolean): void => {
          const leaving = new AbortController();
          callers.push(leaving);
          const result = limiter.run(caller, leaving.signal, () => {
            if (isWrong) throw new Error("at once");
            running += 1;
            const work = createDeferred<string>();
            all.add(work);
            // Some work goes on when its caller has left.
            if (heeds) leaving.signal.addEventListener("abort", () => work.reject(new Error("left")));
            return work.promise.finally(() => {
              running -= 1;
              all.delete(work);
            });
          });
          result.catch(({ reason }) => {
            if (reason === "OVERLOADED") refused += 1;
          });
        };
        for (const { what, count, caller, heeds } of steps) {
          lagMs = what === "lag" ? 30 : 0;
          if (what === "look" || what === "lag") await passSamples(1 + (count % 9));
          else if (what === "leave") for (const each of callers.splice(0, count)) each.abort(new Error("left"));
          else if (what === "come" || what === "throw") {
            for (let index = 0; index < count; index += 1) submit(caller, heeds, what === "throw");
          } else
            for (const work of [...all].slice(0, count)) what === "end" ? work.resolve("") : work.reject(new Error());
          await flushEventLoop();
          expect(running).toBeLessThanOrEqual(2_048);
        }
        for (const each of callers.splice(0)) each.abort(new Error("left"));
        while (running > 0) {
          for (const work of all) work.resolve("");
          await flushEventLoop();
        }
        lagMs = 0;
        await passSamples(2);
        // As new: all that one caller may have at work and in line, and nothing more.
        refused = 0;
        for (let each = 0; each < 136; each += 1) submit("d", true, false);
        await flushEventLoop();
        expect([running, refused]).toEqual([64, 8]);
        for (const each of callers) each.abort(new Error("left"));
        await flushEventLoop();
        await passSamples(1);
      }),
      { numRuns: 60 },
    );
  });
});
