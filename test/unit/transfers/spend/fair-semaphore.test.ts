import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFairSemaphore } from "../../../../src/transfers/spend/fair-semaphore.js";
import { createDeferred, flushEventLoop } from "../../../support/stubs/transfer-fixtures.js";

function setup(permitsPerCaller: number) {
  const semaphore = createFairSemaphore(permitsPerCaller);
  const running: { readonly caller: string; readonly number: number; end(): void }[] = [];
  let started = 0;
  return {
    running,
    countOf: (caller: string) => running.filter((work) => work.caller === caller).length,
    start(caller: string) {
      const [work, leaving] = [createDeferred<void>(), new AbortController()];
      started += 1;
      const number = started;
      const result = semaphore.acquire(caller, leaving.signal, async () => {
        const entry = { caller, number, end: () => work.resolve() };
        running.push(entry);
        await work.promise;
        running.splice(running.indexOf(entry), 1);
      });
      result.catch(() => {});
      return { result, leave: () => leaving.abort(new Error("left")) };
    },
    async endFirst(caller: string) {
      running.find((work) => work.caller === caller)?.end();
      await flushEventLoop();
    },
  };
}

describe("a fair semaphore", () => {
  test("gives a caller that is alone its permits, and runs the rest in order", async () => {
    const { start, running, endFirst } = setup(4);
    for (let at = 0; at < 7; at += 1) start("a");
    expect(running.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    await endFirst("a");
    expect(running.map(({ number }) => number)).toEqual([2, 3, 4, 5]);
  });

  test("runs another caller's work at once, however long a queue is", async () => {
    const { start, countOf } = setup(4);
    for (let at = 0; at < 1_000; at += 1) start("a");
    start("b");
    start("c");
    expect([countOf("a"), countOf("b"), countOf("c")]).toEqual([4, 1, 1]);
  });

  test("prefers callers that hold less once all permits are taken", async () => {
    const { start, countOf, endFirst } = setup(2);
    for (const caller of ["a", "a", "a", "b", "c", "d"]) start(caller);
    expect(countOf("a") + countOf("b") + countOf("c") + countOf("d")).toBe(4);
    expect(countOf("d")).toBe(0);
    await endFirst("a");
    expect([countOf("a"), countOf("d")]).toEqual([1, 1]);
  });

  test("forgets a waiter that leaves", async () => {
    const { start, running, endFirst } = setup(1);
    start("a");
    const waiting = start("a");
    start("a");
    waiting.leave();
    await expect(waiting.result).rejects.toThrow("left");
    await endFirst("a");
    expect(running.map(({ number }) => number)).toEqual([3]);
  });

  test("runs work at once when nothing waits any more", async () => {
    const { start, running, endFirst } = setup(1);
    start("a");
    const leaving = start("a");
    start("a");
    leaving.leave();
    await endFirst("a");
    await endFirst("a");
    expect(running).toEqual([]);
    start("a");
    expect(running.map(({ number }) => number)).toEqual([4]);
  });

  test("leaves no listener at the signal of work that had to wait", async () => {
    const semaphore = createFairSemaphore(1);
    const { signal } = new AbortController();
    const work = async (): Promise<number> => getEventListeners(signal, "abort").length;
    const counts = await Promise.all([1, 2, 3].map(() => semaphore.acquire("a", signal, work)));
    expect(counts.at(-1)).toBe(0);
  });

  test("rejects a signal that has aborted, and frees the permit of work that fails", async () => {
    const semaphore = createFairSemaphore(1);
    const work = () => Promise.reject(new Error("failed"));
    await expect(semaphore.acquire("a", AbortSignal.abort(new Error("left")), work)).rejects.toThrow("left");
    for (let at = 0; at < 3; at += 1) {
      await expect(semaphore.acquire("a", new AbortController().signal, work)).rejects.toThrow("failed");
    }
  });

  test("never exceeds its permits and leaves nobody waiting in the end, in any order", async () => {
    const callers = ["a", "b", "c"];
    const event = fc.record({ type: fc.constantFrom("start", "end", "leave"), at: fc.nat(2), which: fc.nat(20) });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
        const { start, running, countOf } = setup(2);
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
