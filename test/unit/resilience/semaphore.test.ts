import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { createSemaphore } from "../../../src/resilience/semaphore.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

/** Creates a semaphore and workers, which are numbered in order of arrival. */
function setup(limit: number) {
  const semaphore = createSemaphore(limit);
  const started: number[] = [];
  const all: { is: string; leave(): void; end(): void; fail(): void }[] = [];
  return {
    started,
    all,
    addWorker() {
      const [number, work, caller] = [all.length, createDeferred<string>(), new AbortController()];
      const worker = {
        is: "waiting",
        leave: () => caller.abort(new Error("left")),
        end: () => work.resolve("done"),
        fail: () => work.reject(new Error("failed")),
      };
      all.push(worker);
      const result = semaphore.acquire(caller.signal, () => {
        started.push(number);
        worker.is = "working";
        return work.promise;
      });
      result.then(
        (value) => {
          worker.is = value;
        },
        (error: Error) => {
          worker.is = error.message;
        },
      );
      return worker;
    },
    states: () => all.map(({ is }) => is),
  };
}

describe("semaphore", () => {
  test("runs up to the limit at once, then in order of arrival", async () => {
    const { addWorker, started } = setup(2);
    const [first, second] = [addWorker(), addWorker(), addWorker(), addWorker()];
    expect(started).toEqual([0, 1]);
    second?.end();
    await flushEventLoop();
    expect(started).toEqual([0, 1, 2]);
    first?.end();
    await flushEventLoop();
    expect(started).toEqual([0, 1, 2, 3]);
  });

  test("settles like the work", async () => {
    const semaphore = createSemaphore(1);
    const { signal } = new AbortController();
    expect(await Promise.all([1, 2, 3].map((each) => semaphore.acquire(signal, async () => each)))).toEqual([1, 2, 3]);
  });

  test("does not let a new arrival overtake when a permit is released", async () => {
    const { addWorker, started } = setup(1);
    const first = addWorker();
    addWorker();
    first.end();
    // The permit belongs to the second worker, although its work has not started yet.
    for (let late = 0; late < 5; late += 1) {
      await Promise.resolve();
      addWorker();
    }
    await flushEventLoop();
    expect(started).toEqual([0, 1]);
  });

  test.each(["end", "fail"] as const)("passes the permit on when work ends by: %s", async (outcome) => {
    const { addWorker, started, states } = setup(1);
    const [first, second] = [addWorker(), addWorker()];
    first[outcome]();
    await flushEventLoop();
    expect([started, states()]).toEqual([
      [0, 1],
      [outcome === "end" ? "done" : "failed", "working"],
    ]);
    second[outcome]();
    await flushEventLoop();
    addWorker();
    expect(started).toEqual([0, 1, 2]);
  });

  test("passes the permit on when work fails synchronously", async () => {
    const semaphore = createSemaphore(1);
    const { signal } = new AbortController();
    const fails = semaphore.acquire(signal, () => {
      throw new Error("at once");
    });
    await expect(fails).rejects.toThrow("at once");
    expect(await semaphore.acquire(signal, async () => "done")).toBe("done");
  });

  test("rejects a waiter that leaves at once and gives it no permit", async () => {
    const { addWorker, started, states } = setup(1);
    const [first, second] = [addWorker(), addWorker(), addWorker()];
    second?.leave();
    await flushEventLoop();
    expect(states()).toEqual(["working", "left", "waiting"]);
    first?.end();
    await flushEventLoop();
    expect([started, states()]).toEqual([
      [0, 2],
      ["done", "left", "working"],
    ]);
  });

  test("holds the permit of a caller that leaves while working until its work ends", async () => {
    const { addWorker, started } = setup(1);
    const [first] = [addWorker(), addWorker()];
    first?.leave();
    await flushEventLoop();
    expect(started).toEqual([0]);
    first?.end();
    await flushEventLoop();
    expect(started).toEqual([0, 1]);
  });

  test("gives no permit to a caller that has already left", async () => {
    const semaphore = createSemaphore(1);
    const gone = AbortSignal.abort(new Error("left"));
    const { signal } = new AbortController();
    let hasStarted = false;
    const work = async (): Promise<void> => {
      hasStarted = true;
    };
    await expect(semaphore.acquire(gone, work)).rejects.toThrow("left");
    expect(hasStarted).toBe(false);
    // The permit is not lost.
    await semaphore.acquire(signal, work);
    expect(hasStarted).toBe(true);
  });

  test("leaves no listener on a long-lived signal", async () => {
    const semaphore = createSemaphore(1);
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, "addEventListener"), vi.spyOn(signal, "removeEventListener")];
    await Promise.all(Array.from({ length: 3 }, () => semaphore.acquire(signal, flushEventLoop)));
    expect(added).toHaveBeenCalledTimes(2);
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
      added.mock.calls.map(([, listener]) => listener),
    );
  });

  test("matches a simple model for any order of arrivals, departures, completions and failures", async () => {
    const step = fc.oneof(
      fc.constant({ does: "come" as const, who: 0 }),
      fc.record({ does: fc.constantFrom("leave" as const, "end" as const, "fail" as const), who: fc.nat(12) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 30 }), async (limit, steps) => {
        const { addWorker, all, started, states } = setup(limit);
        const model: string[] = [];
        for (const { does, who } of steps) {
          if (does === "come") {
            addWorker();
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
          expect(states()).toEqual(model);
        }
        expect(started).toEqual([...started].sort((a, b) => a - b));
      }),
      { numRuns: 200 },
    );
  });
});
