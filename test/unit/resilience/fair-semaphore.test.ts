import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { FairQuota } from "../../../src/resilience/fair-quota.js";
import { FairSemaphore, MAX_WAITING } from "../../../src/resilience/fair-semaphore.js";
import { Waiters } from "../../../src/resilience/waiters.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

function createWaiters(...callers: readonly string[]): Waiters {
  const waiters = new Waiters();
  for (const caller of callers) waiters.add(caller);
  return waiters;
}

/** Creates a semaphore and functions that start and end work, which is numbered in order of arrival. */
function setupCallers(permitsPerCaller: number) {
  const semaphore = new FairSemaphore(permitsPerCaller);
  const running: { readonly caller: string; readonly number: number; end(): void }[] = [];
  /** The numbers of all work that has begun, in order. */
  const begun: number[] = [];
  let arrived = 0;
  return {
    semaphore,
    running,
    begun,
    countOf: (caller: string) => running.filter((work) => work.caller === caller).length,
    start(caller: string) {
      const [work, leaving] = [createDeferred<string>(), new AbortController()];
      arrived += 1;
      const entry = { caller, number: arrived, end: () => work.resolve("done") };
      const state = { is: "waiting" };
      const result = semaphore.acquire(caller, leaving.signal, async () => {
        running.push(entry);
        begun.push(entry.number);
        state.is = "working";
        return work.promise.finally(() => running.splice(running.indexOf(entry), 1));
      });
      result.then(
        (value) => (state.is = value),
        (error: Error) => (state.is = error.message),
      );
      const fail = (): void => work.reject(new Error("failed"));
      return { result, state, end: entry.end, fail, leave: () => leaving.abort(new Error("left")) };
    },
    async endFirst(caller: string) {
      running.find((work) => work.caller === caller)?.end();
      await flushEventLoop();
    },
  };
}

describe("a fair semaphore with several callers", () => {
  test("runs another caller's work at once, however long a queue is", async () => {
    const { start, countOf } = setupCallers(4);
    for (let at = 0; at < 1_000; at += 1) start("a");
    start("b");
    start("c");
    expect([countOf("a"), countOf("b"), countOf("c")]).toEqual([4, 1, 1]);
  });

  test("prefers callers that hold less once all permits are taken", async () => {
    const { start, countOf, endFirst } = setupCallers(2);
    for (const caller of ["a", "a", "a", "b", "c", "d"]) start(caller);
    expect(countOf("a") + countOf("b") + countOf("c") + countOf("d")).toBe(4);
    expect(countOf("d")).toBe(0);
    await endFirst("a");
    expect([countOf("a"), countOf("d")]).toEqual([1, 1]);
  });

  test("forgets a waiter that leaves", async () => {
    const { start, running, endFirst } = setupCallers(1);
    start("a");
    const waiting = start("a");
    start("a");
    waiting.leave();
    await expect(waiting.result).rejects.toThrow("left");
    await endFirst("a");
    expect(running.map(({ number }) => number)).toEqual([3]);
  });

  test("leaves no listener at the signal of work that had to wait", async () => {
    const semaphore = new FairSemaphore(1);
    const { signal } = new AbortController();
    const work = async (): Promise<number> => getEventListeners(signal, "abort").length;
    const counts = await Promise.all([1, 2, 3].map(() => semaphore.acquire("a", signal, work)));
    expect(counts.at(-1)).toBe(0);
  });

  test("never exceeds its permits and leaves nobody waiting in the end, in any order", async () => {
    const callers = ["a", "b", "c"];
    const event = fc.record({ type: fc.constantFrom("start", "end", "leave"), at: fc.nat(2), which: fc.nat(20) });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
        const { start, running, countOf } = setupCallers(2);
        const started: ReturnType<typeof start>[] = [];
        for (const { type, at, which } of events) {
          if (type === "start") started.push(start(callers[at] ?? ""));
          else if (type === "end") running[which % Math.max(1, running.length)]?.end();
          else started[which % Math.max(1, started.length)]?.leave();
          await flushEventLoop();
          expect(running.length).toBeLessThanOrEqual(4);
          for (const caller of callers) expect(countOf(caller)).toBeLessThanOrEqual(2);
        }
        while (running.length > 0) {
          for (const work of [...running]) work.end();
          await flushEventLoop();
        }
        await Promise.allSettled(started.map(({ result }) => result));
      }),
      { numRuns: 50 },
    );
  });
});

describe("work of several callers", () => {
  /** A semaphore whose permits are taken by `greedy`, for whom more waits. */
  function setupGreedy() {
    const callers = setupCallers(2);
    for (let at = 0; at < 100; at += 1) callers.start("greedy");
    const begun: string[] = [];
    return {
      ...callers,
      begun,
      share(waiters: Waiters) {
        const result = callers.semaphore.acquire(waiters, waiters.signal, async (caller) => void begun.push(caller));
        result.catch(() => {});
        return result;
      },
    };
  }

  test("begins in the first turn that comes to one of them", async () => {
    const { share, begun } = setupGreedy();
    await share(createWaiters("greedy", "you"));
    expect(begun).toEqual(["you"]);
  });

  test("begins for a caller that joins while it waits, and takes no turn of the others", async () => {
    const { share, begun, running, endFirst } = setupGreedy();
    const waiters = createWaiters("greedy");
    const result = share(waiters);
    await flushEventLoop();
    expect(begun).toEqual([]);
    waiters.add("you");
    await result;
    await endFirst("greedy");
    expect([begun, running.map(({ number }) => number)]).toEqual([["you"], [2, 3]]);
  });

  test("begins in no turn of a caller that has left it", async () => {
    const { share, begun, running, endFirst } = setupGreedy();
    const waiters = createWaiters("greedy");
    const result = share(waiters);
    waiters.remove("greedy");
    await expect(result).rejects.toBe(waiters.signal.reason);
    for (let at = 0; at < 100; at += 1) await endFirst("greedy");
    expect([begun, running]).toEqual([[], []]);
  });
});

describe("work that outlives all its callers", () => {
  test("keeps the place of the last, and waits as the last one's when it begins to wait", async () => {
    const { semaphore, start, endFirst, running } = setupCallers(1);
    for (const caller of ["a", "b", "a"]) start(caller);
    const { signal } = new AbortController();
    const waiters = createWaiters("b", "a");
    const begun: string[] = [];
    const acquire = () => semaphore.acquire(waiters, signal, async (caller) => void begun.push(caller));
    const earlier = acquire();
    for (const caller of ["b", "a"]) waiters.remove(caller);
    const later = acquire();
    for (let at = 0; at < 2; at += 1) await endFirst("a");
    await Promise.all([earlier, later]);
    expect([begun, running.map(({ caller }) => caller)]).toEqual([["a", "a"], ["b"]]);
  });

  test("leaves nothing in the queue of the last when it runs for a caller who joined later", async () => {
    const { semaphore, start, endFirst, countOf } = setupCallers(1);
    for (const caller of ["a", "b"]) start(caller);
    const waiters = createWaiters("a");
    const { signal } = new AbortController();
    const result = semaphore.acquire(waiters, signal, async (caller) => caller);
    waiters.remove("a");
    waiters.add("c");
    await endFirst("b");
    expect(await result).toBe("c");
    await endFirst("a");
    // No permit is lost to the place that "a" had.
    for (const caller of ["a", "b"]) start(caller);
    expect([countOf("a"), countOf("b")]).toEqual([1, 1]);
  });

  test("leaves nothing in the queue when it is aborted in the end", async () => {
    const { semaphore, start, endFirst } = setupCallers(1);
    for (const caller of ["a", "b"]) start(caller);
    const leaving = new AbortController();
    const waiters = createWaiters("a");
    const result = semaphore.acquire(waiters, leaving.signal, async () => expect.unreachable("it was aborted"));
    waiters.remove("a");
    leaving.abort(new Error("too late"));
    await expect(result).rejects.toThrow("too late");
    await endFirst("a");
    // Nothing of "a" waits that this would have to stand behind.
    expect(await semaphore.acquire("a", new AbortController().signal, async () => "ran")).toBe("ran");
  });
});

describe("the queue of a fair semaphore", () => {
  test("refuses what exceeds its bound, a caller alone at half of it, and has room again when its work leaves", async () => {
    const semaphore = new FairSemaphore(1);
    const leaving = new AbortController();
    const acquire = (caller: string) =>
      semaphore.acquire(caller, leaving.signal, () => createDeferred<void>().promise).catch((error: Error) => error);
    for (let at = 0; at < 1 + MAX_WAITING / 2; at += 1) void acquire("greedy");
    expect(await acquire("greedy")).toMatchObject({ reason: "OVERLOADED" });
    const others = Array.from({ length: MAX_WAITING / 2 }, (_, index) => acquire(`other ${index}`));
    // The first of the others has a permit.
    void acquire("late");
    expect(await acquire("later")).toMatchObject({ reason: "OVERLOADED" });
    leaving.abort(new Error("left"));
    expect(await Promise.all(others.slice(1))).toEqual(others.slice(1).map(() => leaving.signal.reason));
    const signal = new AbortController().signal;
    const next = semaphore.acquire("greedy", signal, async () => "ran").catch((error: Error) => error);
    expect(await Promise.race([next, flushEventLoop().then(() => "waits")])).toBe("waits");
  });

  test("asks no more callers for a permit than hold one, however many wait", async () => {
    const { start, semaphore } = setupCallers(2);
    for (let at = 0; at < 1_000; at += 1) start(`caller ${at}`);
    const asked = vi.spyOn(FairQuota.prototype, "tryAcquire");
    semaphore.setPermitsPerCaller(3);
    expect(asked.mock.calls.map(([caller]) => caller)).toEqual(["caller 4", "caller 5"]);
    asked.mockRestore();
  });
});

test("work of one caller matches a simple model for any order of arrivals, departures, completions and failures", async () => {
  const step = fc.oneof(
    fc.constant({ does: "come" as const, who: 0 }),
    fc.record({ does: fc.constantFrom("leave" as const, "end" as const, "fail" as const), who: fc.nat(12) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 30 }), async (limit, steps) => {
      const { start, begun } = setupCallers(limit);
      const all: ReturnType<typeof start>[] = [];
      const model: string[] = [];
      for (const { does, who } of steps) {
        if (does === "come") {
          all.push(start(""));
          model.push("waiting");
        } else if (does === "leave") {
          all[who]?.leave();
          if (model[who] === "waiting") model[who] = "left";
        } else if (model[who] === "working") {
          all[who]?.[does]();
          model[who] = does === "end" ? "done" : "failed";
        }
        while (model.includes("waiting") && model.filter((is) => is === "working").length < limit) {
          model[model.indexOf("waiting")] = "working";
        }
        await flushEventLoop();
        expect(all.map(({ state }) => state.is)).toEqual(model);
      }
      expect(begun).toEqual([...begun].sort((a, b) => a - b));
    }),
    { numRuns: 200 },
  );
});
