import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type AdaptiveLimiter, createAdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

const never = new AbortController().signal;
const overloaded = { reason: "OVERLOADED", retryAfterSeconds: 1 };

/** How late the event loop is. */
let lagMs = 0;
/** Whether that is so because of what it does itself. */
let isBusy = true;
/** A clock on which the event loop may be late, and how much of it went to work. */
let time = 0;
let worked = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  [lagMs, isBusy, time, worked] = [0, true, 0, 0];
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets so many looks at the event loop happen. */
async function looks(count: number): Promise<void> {
  for (let look = 0; look < count; look += 1) {
    time += 20 + lagMs;
    worked += isBusy ? 20 + lagMs : 12;
    await vi.advanceTimersByTimeAsync(20);
  }
}

/** Works that begin and end as a test wants. */
function setup() {
  const gate = createAdaptiveLimiter(
    () => time,
    () => worked,
  );
  const running: ReturnType<typeof createDeferred<string>>[] = [];
  /** Whose work began, in order. */
  const begun: string[] = [];
  const counts = { refused: 0, done: 0 };
  return {
    gate,
    running,
    begun,
    counts,
    come(caller: string, many = 1, signal = never): void {
      for (let each = 0; each < many; each += 1) {
        const passed = gate.run(caller, signal, () => {
          const work = createDeferred<string>();
          running.push(work);
          begun.push(caller);
          return work.promise;
        });
        passed.then(
          () => {
            counts.done += 1;
          },
          () => {
            counts.refused += 1;
          },
        );
      }
    },
    async end(many = 1): Promise<void> {
      for (const work of running.splice(0, many)) work.resolve("done");
      await flushEventLoop();
    },
  };
}

/** How many works of one caller it lets begin now. */
async function limitOf({ come, running, end }: ReturnType<typeof setup>): Promise<number> {
  await end(Number.POSITIVE_INFINITY);
  come("measure", 5_000);
  await flushEventLoop();
  const count = running.length;
  await end(Number.POSITIVE_INFINITY);
  return count;
}

describe("the gate of expensive work", () => {
  test("gives what the work comes to", async () => {
    const { gate } = setup();
    expect(await gate.run("a", never, async () => "well")).toBe("well");
    const failing = gate.run("a", never, async () => {
      throw new Error("mine");
    });
    await expect(failing).rejects.toThrow("mine");
  });

  test("refuses at once what it does not bear, and is open again when work has ended", async () => {
    const { gate, come, running, counts, end } = setup();
    come("a", 64 + 64);
    await expect(gate.run("a", never, async () => "never")).rejects.toMatchObject(overloaded);
    expect([running.length, counts]).toEqual([64, { refused: 0, done: 0 }]);
    await end(1);
    come("a", 2);
    await flushEventLoop();
    expect([running.length, counts]).toEqual([64, { refused: 1, done: 1 }]);
  });

  test("lets others wait while one caller has all that it may, and in before that caller's next", async () => {
    const { come, begun, counts, end } = setup();
    come("a", 136);
    come("b", 2);
    await flushEventLoop();
    expect([begun.length, counts.refused]).toEqual([64, 8]);
    come("a", 1);
    for (const many of [64, 2]) await end(many);
    come("a", 1);
    await end(1);
    expect(begun.slice(127)).toEqual(["a", "b", "b", "a"]);
    expect(counts).toEqual({ refused: 9, done: 67 });
  });

  test("forgets who leaves the line", async () => {
    const { come, running, counts, end } = setup();
    const leaving = new AbortController();
    come("a", 64);
    come("b", 1, leaving.signal);
    leaving.abort(new Error("left"));
    await flushEventLoop();
    expect(counts).toEqual({ refused: 1, done: 0 });
    await end(64);
    expect(running.length).toBe(0);
    come("a", 64);
    expect(running.length).toBe(64);
  });

  test("lets more through while all of it is used and the event loop keeps up, and lets in who waits", async () => {
    const { come, running } = setup();
    come("a", 64);
    come("b", 8);
    await looks(1);
    expect(running.length).toBe(71);
    await looks(1);
    // Nobody came in between, but somebody waits.
    expect(running.length).toBe(72);
  });

  test("gets wider for work that only waits, up to a bound", async () => {
    const parts = setup();
    for (let look = 0; look < 60; look += 1) {
      parts.come("a", 5_000);
      await looks(1);
    }
    expect(parts.running.length).toBe(2_048);
  });

  test("stays as it is where it is not used up", async () => {
    const parts = setup();
    parts.come("a", 10);
    await looks(20);
    expect(await limitOf(parts)).toBe(64);
  });

  test("lets less through where the event loop does not keep up, down to a bound", async () => {
    const parts = setup();
    parts.come("a", 50);
    lagMs = 30;
    await looks(1);
    expect(await limitOf(parts)).toBe(40);
    parts.come("a", 40);
    await looks(20);
    expect(await limitOf(parts)).toBe(16);
  });

  test("lets no less through where it is another process that makes the event loop late", async () => {
    const parts = setup();
    parts.come("a", 50);
    [lagMs, isBusy] = [30, false];
    await looks(20);
    expect(await limitOf(parts)).toBe(64);
  });

  test.each([
    ["little", 30],
    ["much", 0],
  ])("lets as many through as at the start when all work has ended, however %s was let through", async (_, lag) => {
    const parts = setup();
    lagMs = lag;
    for (let look = 0; look < 20; look += 1) {
      parts.come("a", 500);
      await looks(1);
    }
    while (parts.running.length > 0) await parts.end(Number.POSITIVE_INFINITY);
    await looks(1);
    expect(await limitOf(parts)).toBe(64);
  });

  test("comes back when the event loop keeps up again", async () => {
    const parts = setup();
    parts.come("a", 64);
    lagMs = 30;
    await looks(20);
    lagMs = 0;
    await parts.end(Number.POSITIVE_INFINITY);
    // Less than a second of more than it bears.
    for (let look = 0; look < 40; look += 1) {
      parts.come("a", 100);
      await looks(1);
    }
    expect(parts.running.length).toBeGreaterThan(64);
  });

  test("looks at the event loop only while there is work", async () => {
    const { come, end } = setup();
    expect(vi.getTimerCount()).toBe(0);
    come("a", 2);
    expect(vi.getTimerCount()).toBe(1);
    await end(2);
    await looks(1);
    expect(vi.getTimerCount()).toBe(0);
    come("a");
    expect(vi.getTimerCount()).toBe(1);
  });

  test("says beforehand who would be sent away, and counts that as too little room", async () => {
    const { gate, come, running } = setup();
    come("a", 127);
    expect(() => gate.assertCapacity("a")).not.toThrow();
    come("a", 1);
    expect(() => gate.assertCapacity("a")).toThrow(expect.objectContaining(overloaded));
    expect(() => gate.assertCapacity("b")).not.toThrow();
    expect(running.length).toBe(64);
  });

  test("does not begin for who has left before", async () => {
    const { gate }: { gate: AdaptiveLimiter } = setup();
    let isBegun = false;
    const passed = gate.run("a", AbortSignal.abort(new Error("left")), async () => {
      isBegun = true;
    });
    await expect(passed).rejects.toThrow("left");
    expect(isBegun).toBe(false);
  });

  test("loses no place, in whatever order work comes, ends, fails and is left", async () => {
    const step = fc.record({
      what: fc.constantFrom("come", "throw", "end", "fail", "leave", "look", "lag"),
      many: fc.integer({ min: 1, max: 150 }),
      caller: fc.constantFrom("a", "b", "c"),
      heeds: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const gate = createAdaptiveLimiter(
          () => time,
          () => worked,
        );
        const all = new Set<ReturnType<typeof createDeferred<string>>>();
        const callers: AbortController[] = [];
        let [running, refused] = [0, 0];
        const come = (caller: string, heeds: boolean, isWrong: boolean): void => {
          const leaving = new AbortController();
          callers.push(leaving);
          const passed = gate.run(caller, leaving.signal, () => {
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
          passed.catch(({ reason }) => {
            if (reason === "OVERLOADED") refused += 1;
          });
        };
        for (const { what, many, caller, heeds } of steps) {
          lagMs = what === "lag" ? 30 : 0;
          if (what === "look" || what === "lag") await looks(1 + (many % 9));
          else if (what === "leave") for (const each of callers.splice(0, many)) each.abort(new Error("left"));
          else if (what === "come" || what === "throw") {
            for (let each = 0; each < many; each += 1) come(caller, heeds, what === "throw");
          } else
            for (const work of [...all].slice(0, many)) what === "end" ? work.resolve("") : work.reject(new Error());
          await flushEventLoop();
          expect(running).toBeLessThanOrEqual(2_048);
        }
        for (const each of callers.splice(0)) each.abort(new Error("left"));
        while (running > 0) {
          for (const work of all) work.resolve("");
          await flushEventLoop();
        }
        lagMs = 0;
        await looks(2);
        // As new: all that one caller may have at work and in line, and nothing more.
        refused = 0;
        for (let each = 0; each < 136; each += 1) come("d", true, false);
        await flushEventLoop();
        expect([running, refused]).toEqual([64, 8]);
        for (const each of callers) each.abort(new Error("left"));
        await flushEventLoop();
        await looks(1);
      }),
      { numRuns: 60 },
    );
  });
});
