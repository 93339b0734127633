import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSingleFlight } from "../../../src/resilience/single-flight.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

function setup() {
  const closing = new AbortController();
  const sharing = createSingleFlight<string>(closing.signal);
  const works: (ReturnType<typeof createDeferred<string>> & { readonly signal: AbortSignal })[] = [];
  return {
    closing,
    works,
    /** Someone who wants what is under a key. */
    join(key = "key") {
      const caller = new AbortController();
      const result = sharing.run(key, caller.signal, (signal) => {
        const work = { ...createDeferred<string>(), signal };
        works.push(work);
        return work.promise;
      });
      const outcome = { now: "waits" };
      result.then(
        (value) => {
          outcome.now = value;
        },
        (error: unknown) => {
          outcome.now = error === caller.signal.reason ? "left" : String(error);
        },
      );
      return { result, outcome, leave: () => caller.abort() };
    },
    /** The newest work. */
    latest() {
      const work = works.at(-1);
      if (work === undefined) throw new Error("nothing was begun");
      return work;
    },
  };
}

describe("work that several want", () => {
  test("is done once for all who wait at a time, and anew for who comes after", async () => {
    const { join, latest, works } = setup();
    const [a, b, other] = [join(), join(), join("other")];
    expect(works).toHaveLength(2);
    works[0]?.resolve("one");
    latest().resolve("other's");
    expect(await Promise.all([a.result, b.result, other.result])).toEqual(["one", "one", "other's"]);
    const c = join();
    expect(works).toHaveLength(3);
    latest().resolve("two");
    expect(await c.result).toBe("two");
  });

  test("fails for all, and is done anew", async () => {
    const { join, latest, works } = setup();
    const [a, b] = [join(), join()];
    latest().reject(new Error("broken"));
    await expect(a.result).rejects.toThrow("broken");
    await expect(b.result).rejects.toThrow("broken");
    const c = join();
    expect(works).toHaveLength(2);
    latest().resolve("well");
    expect(await c.result).toBe("well");
  });

  test("goes on for who stays when another leaves, the first as well", async () => {
    const { join, latest } = setup();
    const [a, b] = [join(), join()];
    a.leave();
    await flushEventLoop();
    expect([a.outcome.now, b.outcome.now, latest().signal.aborted]).toEqual(["left", "waits", false]);
    latest().resolve("one");
    expect(await b.result).toBe("one");
  });

  test("is broken off by the last who leaves; who comes then begins it anew", async () => {
    const { join, latest, works } = setup();
    const [a, b] = [join(), join()];
    a.leave();
    b.leave();
    await flushEventLoop();
    const [broken] = works;
    expect(broken?.signal.aborted).toBe(true);
    const c = join();
    expect(works).toHaveLength(2);
    // What was broken off ends later, and disturbs nobody.
    broken?.reject(new Error("broken off"));
    await flushEventLoop();
    const d = join();
    expect([c.outcome.now, latest().signal.aborted, works.length]).toEqual(["waits", false, 2]);
    latest().resolve("anew");
    expect(await Promise.all([c.result, d.result])).toEqual(["anew", "anew"]);
  });

  test("is kept by who comes in the moment in which the last one leaves", async () => {
    const { join, latest, works } = setup();
    join().leave();
    const b = join();
    await flushEventLoop();
    expect([works.length, latest().signal.aborted]).toEqual([1, false]);
    latest().resolve("one");
    expect(await b.result).toBe("one");
  });

  test("is not begun for who has left", async () => {
    const { closing, works } = setup();
    closing.abort();
    const sharing = createSingleFlight<string>(new AbortController().signal);
    await expect(sharing.run("key", closing.signal, async () => "never")).rejects.toBe(closing.signal.reason);
    expect(works).toEqual([]);
  });

  test("that fails before it has begun is an error, and leaves nothing", async () => {
    const sharing = createSingleFlight<string>(new AbortController().signal);
    const { signal } = new AbortController();
    const fails = sharing.run("key", signal, () => {
      throw new Error("at once");
    });
    await expect(fails).rejects.toThrow("at once");
    expect(await sharing.run("key", signal, async () => "well")).toBe("well");
  });

  test("ends at the close, what is begun then at once", async () => {
    const { closing, join, works } = setup();
    join("one");
    closing.abort();
    join("two");
    expect(works.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    for (const work of works) work.reject(new Error("closed"));
    await flushEventLoop();
  });

  test("is shared as a simple model says, in any order of coming, leaving and ending", async () => {
    const step = fc.oneof(
      fc.constant({ do: "join" as const }),
      fc.record({ do: fc.constant("leave" as const), who: fc.nat(20) }),
      fc.record({ do: fc.constantFrom("resolve" as const, "reject" as const), which: fc.nat(20) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { join, works } = setup();
        const callers: (ReturnType<typeof join> & { work: number; is: string })[] = [];
        /** Works that may be joined or were: who waits for each, and whether it has ended. */
        const model: { isOpen: boolean; hasEnded: boolean }[] = [];
        const waitingFor = (work: number) => callers.filter((caller) => caller.work === work && caller.is === "waits");
        for (const each of steps) {
          if (each.do === "join") {
            const open = model.findIndex(({ isOpen }) => isOpen);
            const work = open < 0 ? model.push({ isOpen: true, hasEnded: false }) - 1 : open;
            callers.push({ ...join(), work, is: "waits" });
          } else if (each.do === "leave") {
            const caller = callers[each.who];
            caller?.leave();
            if (caller?.is === "waits") {
              caller.is = "left";
              const work = model[caller.work];
              if (work !== undefined && waitingFor(caller.work).length === 0) work.isOpen = false;
            }
          } else {
            const [work, ended] = [works[each.which], model[each.which]];
            if (work !== undefined && ended?.hasEnded === false) {
              const value = `work ${each.which}`;
              if (each.do === "resolve") work.resolve(value);
              else work.reject(value);
              for (const caller of waitingFor(each.which)) caller.is = value;
              ended.isOpen = false;
              ended.hasEnded = true;
            }
          }
          await flushEventLoop();
          expect(callers.map(({ outcome }) => outcome.now)).toEqual(callers.map(({ is }) => is));
          expect(works.map(({ signal }) => !signal.aborted)).toEqual(model.map(({ isOpen }) => isOpen));
        }
      }),
      { numRuns: 200 },
    );
  });
});
