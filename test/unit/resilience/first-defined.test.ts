import { describe, expect, test } from "vitest";
import { raceFirstDefined } from "../../../src/resilience/first-defined.js";
import { createDeferred, flushEventLoop, unavailableError } from "../../support/stubs/transfer-fixtures.js";

/** Several who are asked, each of whom answers when told to. */
function ask(count: number, outer = new AbortController().signal) {
  const each = Array.from({ length: count }, () => ({ ...createDeferred<string | undefined>(), signal: outer }));
  const asked = [...each.keys()];
  const found = raceFirstDefined(
    asked,
    (index, signal) => {
      const one = each[index];
      if (one === undefined) throw new Error("nobody else is asked");
      one.signal = signal;
      return one.promise;
    },
    outer,
  );
  const [a, b, c] = each;
  if (a === undefined || b === undefined || c === undefined) throw new Error("ask three");
  return { found, a, b, c };
}

describe("the first that finds something", () => {
  test("is taken, the others are broken off, and what they say then is of no account", async () => {
    const { found, a, b, c } = ask(3);
    a.resolve(undefined);
    await flushEventLoop();
    expect(c.signal.aborted).toBe(false);
    b.resolve("here");
    expect(await found).toBe("here");
    expect([a, b, c].map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
    c.reject(new Error("broken off"));
    await flushEventLoop();
  });

  test("is taken after others have failed", async () => {
    const { found, a, b, c } = ask(3);
    a.reject(unavailableError("a"));
    b.reject(unavailableError("b"));
    await flushEventLoop();
    expect(c.signal.aborted).toBe(false);
    c.resolve("here");
    expect(await found).toBe("here");
  });

  test("is none only when all have answered", async () => {
    const { found, a, b, c } = ask(3);
    let isOver = false;
    const over = found.then(() => {
      isOver = true;
    });
    a.resolve(undefined);
    b.resolve(undefined);
    await flushEventLoop();
    expect(isOver).toBe(false);
    c.resolve(undefined);
    expect(await found).toBeUndefined();
    await over;
    expect(await raceFirstDefined([], async () => "never asked", new AbortController().signal)).toBeUndefined();
  });

  test("is not known when one has failed: the first failure is told, after all have answered", async () => {
    const { found, a, b, c } = ask(3);
    let isOver = false;
    found.catch(() => {
      isOver = true;
    });
    c.reject(unavailableError("c"));
    b.reject(unavailableError("b"));
    await flushEventLoop();
    expect(isOver).toBe(false);
    a.resolve(undefined);
    await expect(found).rejects.toThrow("c is down");
    expect(a.signal.aborted).toBe(true);
  });

  test("is not looked for any more when the signal fires", async () => {
    const outer = new AbortController();
    const { found, a, b, c } = ask(3, outer.signal);
    expect(a.signal.aborted).toBe(false);
    outer.abort();
    for (const one of [a, b, c]) {
      expect(one.signal.aborted).toBe(true);
      one.reject(unavailableError("all"));
    }
    await expect(found).rejects.toThrow("all is down");
  });

  test("may be found without a wait, and a fault in asking is an error", async () => {
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
