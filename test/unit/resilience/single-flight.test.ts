import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SingleFlight } from "../../../src/resilience/single-flight.js";
import { Waiters } from "../../../src/resilience/waiters.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

function setup() {
  const closing = new AbortController();
  const singleFlight = new SingleFlight<string>(closing.signal);
  const calls: (ReturnType<typeof createDeferred<string>> & {
    readonly signal: AbortSignal;
    readonly waiters: Waiters;
  })[] = [];
  const startWork = (waiters: Waiters): Promise<string> => {
    const work = { ...createDeferred<string>(), signal: waiters.signal, waiters };
    calls.push(work);
    return work.promise;
  };
  return {
    closing,
    calls,
    joinAsGroup: (group: Waiters, key = "key") =>
      singleFlight.run(key, { caller: "", signal: group.signal, waiters: group }, startWork),
    /** Starts a caller that waits for a key. */
    startCaller(key = "key", name = "caller") {
      const caller = new AbortController();
      const result = singleFlight.run(key, { caller: name, signal: caller.signal }, startWork);
      const outcome = { now: "waiting" };
      result.then(
        (value) => (outcome.now = value),
        (error: unknown) => (outcome.now = error === caller.signal.reason ? "left" : String(error)),
      );
      return { result, outcome, leave: () => caller.abort() };
    },
    /** The newest call. */
    latest() {
      const work = calls.at(-1);
      if (work === undefined) throw new Error("no call was started");
      return work;
    },
  };
}

describe("single flight", () => {
  test("shows its work who waits at any time, also the callers of a group", async () => {
    const { startCaller, joinAsGroup, latest } = setup();
    startCaller("key", "a");
    const b = startCaller("key", "b");
    const group = new Waiters();
    group.add("c");
    const result = joinAsGroup(group);
    expect([...latest().waiters]).toEqual(["a", "b", "c"]);
    group.add("d");
    group.remove("c");
    b.leave();
    await flushEventLoop();
    expect([...latest().waiters]).toEqual(["a", "d"]);
    latest().resolve("one");
    expect(await result).toBe("one");
  });

  test("starts again for a caller who comes as the last one of a group leaves", async () => {
    const { startCaller, joinAsGroup, latest, calls } = setup();
    const group = new Waiters();
    group.add("a");
    const left = joinAsGroup(group);
    group.remove("a");
    const b = startCaller();
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await expect(left).rejects.toBe(group.signal.reason);
    latest().resolve("one");
    expect(await b.result).toBe("one");
  });

  test("survives when a new caller arrives as the last one leaves", async () => {
    const { startCaller, latest, calls } = setup();
    startCaller().leave();
    const b = startCaller();
    await flushEventLoop();
    expect([calls.length, latest().signal.aborted]).toEqual([1, false]);
    latest().resolve("one");
    expect(await b.result).toBe("one");
  });

  test("does not start for a caller that has already left", async () => {
    const { closing, calls } = setup();
    closing.abort();
    const singleFlight = new SingleFlight<string>(new AbortController().signal);
    await expect(singleFlight.run("key", { caller: "", signal: closing.signal }, async () => "never")).rejects.toBe(
      closing.signal.reason,
    );
    expect(calls).toEqual([]);
  });

  test("propagates a synchronous failure and keeps no entry", async () => {
    const singleFlight = new SingleFlight<string>(new AbortController().signal);
    const requester = { caller: "", signal: new AbortController().signal };
    const fails = singleFlight.run("key", requester, () => {
      throw new Error("at once");
    });
    await expect(fails).rejects.toThrow("at once");
    expect(await singleFlight.run("key", requester, async () => "done")).toBe("done");
  });

  test("aborts on close, and calls started afterwards abort at once", async () => {
    const { closing, startCaller, calls } = setup();
    startCaller("one");
    closing.abort();
    startCaller("two");
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    for (const work of calls) work.reject(new Error("closed"));
    await flushEventLoop();
  });

  test("matches a simple model for any order of arrivals, departures and completions", async () => {
    const step = fc.oneof(
      fc.constant({ do: "join" as const }),
      fc.record({ do: fc.constant("leave" as const), who: fc.nat(20) }),
      fc.record({ do: fc.constantFrom("resolve" as const, "reject" as const), which: fc.nat(20) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { startCaller, calls } = setup();
        const callers: (ReturnType<typeof startCaller> & { work: number; is: string })[] = [];
        /** All calls so far: whether they can be joined, and whether they have ended. */
        const model: { isOpen: boolean; hasEnded: boolean }[] = [];
        const waitingFor = (work: number) =>
          callers.filter((caller) => caller.work === work && caller.is === "waiting");
        for (const action of steps) {
          if (action.do === "join") {
            const open = model.findIndex(({ isOpen }) => isOpen);
            const work = open < 0 ? model.push({ isOpen: true, hasEnded: false }) - 1 : open;
            callers.push({ ...startCaller(), work, is: "waiting" });
          } else if (action.do === "leave") {
            const caller = callers[action.who];
            caller?.leave();
            if (caller?.is === "waiting") {
              caller.is = "left";
              const work = model[caller.work];
              if (work !== undefined && waitingFor(caller.work).length === 0) work.isOpen = false;
            }
          } else {
            const [work, ended] = [calls[action.which], model[action.which]];
            if (work !== undefined && ended?.hasEnded === false) {
              const value = `work ${action.which}`;
              if (action.do === "resolve") work.resolve(value);
              else work.reject(value);
              for (const caller of waitingFor(action.which)) caller.is = value;
              ended.isOpen = false;
              ended.hasEnded = true;
            }
          }
          await flushEventLoop();
          expect(callers.map(({ outcome }) => outcome.now)).toEqual(callers.map(({ is }) => is));
          expect(calls.map(({ signal }) => !signal.aborted)).toEqual(model.map(({ isOpen }) => isOpen));
        }
      }),
      { numRuns: 200 },
    );
  });
});
