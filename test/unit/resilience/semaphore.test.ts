import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { createSemaphore } from "../../../src/resilience/semaphore.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

/** People who come in the order of their numbers, and what became of each. */
function setup(most: number) {
  const turns = createSemaphore(most);
  const begun: number[] = [];
  const all: { is: string; leave(): void; end(): void; fail(): void }[] = [];
  return {
    begun,
    all,
    come() {
      const [number, work, caller] = [all.length, createDeferred<string>(), new AbortController()];
      const person = {
        is: "waits",
        leave: () => caller.abort(new Error("left")),
        end: () => work.resolve("done"),
        fail: () => work.reject(new Error("failed")),
      };
      all.push(person);
      const result = turns.acquire(caller.signal, () => {
        begun.push(number);
        person.is = "works";
        return work.promise;
      });
      result.then(
        (value) => {
          person.is = value;
        },
        (error: Error) => {
          person.is = error.message;
        },
      );
      return person;
    },
    states: () => all.map(({ is }) => is),
  };
}

describe("turns", () => {
  test("are taken at once up to so many, then in the order of coming", async () => {
    const { come, begun } = setup(2);
    const [first, second] = [come(), come(), come(), come()];
    expect(begun).toEqual([0, 1]);
    second?.end();
    await flushEventLoop();
    expect(begun).toEqual([0, 1, 2]);
    first?.end();
    await flushEventLoop();
    expect(begun).toEqual([0, 1, 2, 3]);
  });

  test("give what the work comes to", async () => {
    const turns = createSemaphore(1);
    const { signal } = new AbortController();
    expect(await Promise.all([1, 2, 3].map((each) => turns.acquire(signal, async () => each)))).toEqual([1, 2, 3]);
  });

  test("are not taken by who comes in the moment in which one ends", async () => {
    const { come, begun } = setup(1);
    const first = come();
    come();
    first.end();
    // It is the second's turn, though its work has not begun yet.
    for (let late = 0; late < 5; late += 1) {
      await Promise.resolve();
      come();
    }
    await flushEventLoop();
    expect(begun).toEqual([0, 1]);
  });

  test.each(["end", "fail"] as const)("pass to the next when work comes to its %s", async (comesTo) => {
    const { come, begun, states } = setup(1);
    const [first, second] = [come(), come()];
    first[comesTo]();
    await flushEventLoop();
    expect([begun, states()]).toEqual([
      [0, 1],
      [comesTo === "end" ? "done" : "failed", "works"],
    ]);
    second[comesTo]();
    await flushEventLoop();
    come();
    expect(begun).toEqual([0, 1, 2]);
  });

  test("pass to the next when work fails before it has begun", async () => {
    const turns = createSemaphore(1);
    const { signal } = new AbortController();
    const fails = turns.acquire(signal, () => {
      throw new Error("at once");
    });
    await expect(fails).rejects.toThrow("at once");
    expect(await turns.acquire(signal, async () => "well")).toBe("well");
  });

  test("are left at once by who leaves while waiting, and then not taken", async () => {
    const { come, begun, states } = setup(1);
    const [first, second] = [come(), come(), come()];
    second?.leave();
    await flushEventLoop();
    expect(states()).toEqual(["works", "left", "waits"]);
    first?.end();
    await flushEventLoop();
    expect([begun, states()]).toEqual([
      [0, 2],
      ["done", "left", "works"],
    ]);
  });

  test("are kept by who leaves while working, until the work ends", async () => {
    const { come, begun } = setup(1);
    const [first] = [come(), come()];
    first?.leave();
    await flushEventLoop();
    expect(begun).toEqual([0]);
    first?.end();
    await flushEventLoop();
    expect(begun).toEqual([0, 1]);
  });

  test("are not taken by who has left before", async () => {
    const turns = createSemaphore(1);
    const gone = AbortSignal.abort(new Error("left"));
    const { signal } = new AbortController();
    let isBegun = false;
    const work = async (): Promise<void> => {
      isBegun = true;
    };
    await expect(turns.acquire(gone, work)).rejects.toThrow("left");
    expect(isBegun).toBe(false);
    // Nor is the place lost.
    await turns.acquire(signal, work);
    expect(isBegun).toBe(true);
  });

  test("leave nothing behind on a signal that lives long", async () => {
    const turns = createSemaphore(1);
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, "addEventListener"), vi.spyOn(signal, "removeEventListener")];
    await Promise.all(Array.from({ length: 3 }, () => turns.acquire(signal, flushEventLoop)));
    expect(added).toHaveBeenCalledTimes(2);
    expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
      added.mock.calls.map(([, listener]) => listener),
    );
  });

  test("are taken as a simple model says, in any order of coming, leaving, ending and failing", async () => {
    const step = fc.oneof(
      fc.constant({ does: "come" as const, who: 0 }),
      fc.record({ does: fc.constantFrom("leave" as const, "end" as const, "fail" as const), who: fc.nat(12) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 30 }), async (most, steps) => {
        const { come, all, begun, states } = setup(most);
        const model: string[] = [];
        for (const { does, who } of steps) {
          if (does === "come") {
            come();
            model.push("waits");
          } else if (does === "leave") {
            all[who]?.leave();
            if (model[who] === "waits") model[who] = "left";
          } else if (model[who] === "works") {
            all[who]?.[does]();
            model[who] = does === "end" ? "done" : "failed";
          }
          while (model.includes("waits") && model.filter((is) => is === "works").length < most) {
            model[model.indexOf("waits")] = "works";
          }
          await flushEventLoop();
          expect(states()).toEqual(model);
        }
        expect(begun).toEqual([...begun].sort((a, b) => a - b));
      }),
      { numRuns: 200 },
    );
  });
});
