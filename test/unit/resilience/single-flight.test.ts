import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSingleFlight } from "../../../src/resilience/single-flight.js";
import { createDeferred, flushEventLoop } from "../../support/stubs/transfer-fixtures.js";

function setup() {
  const closing = new AbortController();
  const singleFlight = createSingleFlight<string>(closing.signal);
  const calls: (ReturnType<typeof createDeferred<string>> & {
    readonly signal: AbortSignal;
    readonly detach: () => void;
  })[] = [];
  return {
    closing,
    calls,
    /** Starts a caller that waits for a key. */
    startCaller(key = "key") {
      const caller = new AbortController();
      const result = singleFlight.run(key, caller.signal, (signal, detach) => {
        const work = { ...createDeferred<string>(), signal, detach };
        calls.push(work);
        return work.promise;
      });
      const outcome = { now: "waiting" };
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
    /** The newest call. */
    latest() {
      const work = calls.at(-1);
      if (work === undefined) throw new Error("no call was started");
      return work;
    },
  };
}

describe("single flight", () => {
  test("runs once for concurrent callers and again for later ones", async () => {
    const { startCaller, latest, calls } = setup();
    const [a, b, other] = [startCaller(), startCaller(), startCaller("other")];
    expect(calls).toHaveLength(2);
    calls[0]?.resolve("one");
    latest().resolve("other's");
    expect(await Promise.all([a.result, b.result, other.result])).toEqual(["one", "one", "other's"]);
    const c = startCaller();
    expect(calls).toHaveLength(3);
    latest().resolve("two");
    expect(await c.result).toBe("two");
  });

  test("rejects for every caller and runs again afterwards", async () => {
    const { startCaller, latest, calls } = setup();
    const [a, b] = [startCaller(), startCaller()];
    latest().reject(new Error("broken"));
    await expect(a.result).rejects.toThrow("broken");
    await expect(b.result).rejects.toThrow("broken");
    const c = startCaller();
    expect(calls).toHaveLength(2);
    latest().resolve("done");
    expect(await c.result).toBe("done");
  });

  test("continues while any caller waits, even after the first has left", async () => {
    const { startCaller, latest } = setup();
    const [a, b] = [startCaller(), startCaller()];
    a.leave();
    await flushEventLoop();
    expect([a.outcome.now, b.outcome.now, latest().signal.aborted]).toEqual(["left", "waiting", false]);
    latest().resolve("one");
    expect(await b.result).toBe("one");
  });

  test("aborts when the last caller leaves and starts again for the next", async () => {
    const { startCaller, latest, calls } = setup();
    const [a, b] = [startCaller(), startCaller()];
    a.leave();
    b.leave();
    await flushEventLoop();
    const [aborted] = calls;
    expect(aborted?.signal.aborted).toBe(true);
    const c = startCaller();
    expect(calls).toHaveLength(2);
    // The late failure of the aborted call affects no other caller.
    aborted?.reject(new Error("aborted"));
    await flushEventLoop();
    const d = startCaller();
    expect([c.outcome.now, latest().signal.aborted, calls.length]).toEqual(["waiting", false, 2]);
    latest().resolve("second");
    expect(await Promise.all([c.result, d.result])).toEqual(["second", "second"]);
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
    const singleFlight = createSingleFlight<string>(new AbortController().signal);
    await expect(singleFlight.run("key", closing.signal, async () => "never")).rejects.toBe(closing.signal.reason);
    expect(calls).toEqual([]);
  });

  test("propagates a synchronous failure and keeps no entry", async () => {
    const singleFlight = createSingleFlight<string>(new AbortController().signal);
    const { signal } = new AbortController();
    const fails = singleFlight.run("key", signal, () => {
      throw new Error("at once");
    });
    await expect(fails).rejects.toThrow("at once");
    expect(await singleFlight.run("key", signal, async () => "done")).toBe("done");
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

describe("a detached call", () => {
  test("is finished after its last waiter has left, and shared by later ones", async () => {
    const { startCaller, latest, calls } = setup();
    const first = startCaller();
    latest().detach();
    first.leave();
    await flushEventLoop();
    expect(first.outcome.now).toBe("left");
    expect(latest().signal.aborted).toBe(false);
    const second = startCaller();
    expect(calls).toHaveLength(1);
    latest().resolve("one");
    expect(await second.result).toBe("one");
    startCaller();
    expect(calls).toHaveLength(2);
  });

  test("is aborted by closing, and may fail without a waiter", async () => {
    const { startCaller, latest, calls, closing } = setup();
    startCaller().leave();
    await flushEventLoop();
    expect(latest().signal.aborted).toBe(true);
    const second = startCaller();
    latest().detach();
    second.leave();
    closing.abort();
    expect(latest().signal.aborted).toBe(true);
    latest().reject(new Error("closed"));
    await flushEventLoop();
    startCaller();
    expect(calls).toHaveLength(3);
  });
});
