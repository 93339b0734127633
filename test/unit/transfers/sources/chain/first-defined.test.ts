import { describe, expect, test } from "vitest";
import { raceFirstDefined } from "../../../../../src/transfers/sources/chain/first-defined.js";
import { createDeferred, flushEventLoop, unavailableError } from "../../../../support/stubs/transfer-fixtures.js";

/** Starts a race of sources that the test settles. */
function startRace(count: number, outer = new AbortController().signal) {
  const sources = Array.from({ length: count }, () => ({ ...createDeferred<string | undefined>(), signal: outer }));
  const indexes = [...sources.keys()];
  const result = raceFirstDefined(
    indexes,
    (index, signal) => {
      const source = sources[index];
      if (source === undefined) throw new Error("unexpected source");
      source.signal = signal;
      return source.promise;
    },
    outer,
  );
  const [a, b, c] = sources;
  if (a === undefined || b === undefined || c === undefined) throw new Error("three sources are needed");
  return { result, a, b, c };
}

describe("raceFirstDefined", () => {
  test("returns the first result, aborts the others and ignores what they return", async () => {
    const { result, a, b, c } = startRace(3);
    a.resolve(undefined);
    await flushEventLoop();
    expect(c.signal.aborted).toBe(false);
    b.resolve("here");
    expect(await result).toBe("here");
    expect([a, b, c].map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
    c.reject(new Error("aborted"));
    await flushEventLoop();
  });

  test("returns a result after others have failed", async () => {
    const { result, a, b, c } = startRace(3);
    a.reject(unavailableError("a"));
    b.reject(unavailableError("b"));
    await flushEventLoop();
    expect(c.signal.aborted).toBe(false);
    c.resolve("here");
    expect(await result).toBe("here");
  });

  test("returns undefined only when all have answered", async () => {
    const { result, a, b, c } = startRace(3);
    let isOver = false;
    const over = result.then(() => {
      isOver = true;
    });
    a.resolve(undefined);
    b.resolve(undefined);
    await flushEventLoop();
    expect(isOver).toBe(false);
    c.resolve(undefined);
    expect(await result).toBeUndefined();
    await over;
    expect(await raceFirstDefined([], async () => "never asked", new AbortController().signal)).toBeUndefined();
  });

  test("rejects with the first failure when all have answered and one failed", async () => {
    const { result, a, b, c } = startRace(3);
    let isOver = false;
    result.catch(() => {
      isOver = true;
    });
    c.reject(unavailableError("c"));
    b.reject(unavailableError("b"));
    await flushEventLoop();
    expect(isOver).toBe(false);
    a.resolve(undefined);
    await expect(result).rejects.toThrow("c is down");
    expect(a.signal.aborted).toBe(true);
  });

  test("aborts all lookups with the outer signal", async () => {
    const outer = new AbortController();
    const { result, a, b, c } = startRace(3, outer.signal);
    expect(a.signal.aborted).toBe(false);
    outer.abort();
    for (const one of [a, b, c]) {
      expect(one.signal.aborted).toBe(true);
      one.reject(unavailableError("all"));
    }
    await expect(result).rejects.toThrow("all is down");
  });

  test("returns an immediate result and propagates a synchronous error", async () => {
    const { signal } = new AbortController();
    expect(await raceFirstDefined([1, 2], async (n) => (n === 2 ? "two" : undefined), signal)).toBe("two");
    const faulty = raceFirstDefined(
      [1],
      () => {
        throw new Error("at once");
      },
      signal,
    );
    await expect(faulty).rejects.toThrow("at once");
  });
});
