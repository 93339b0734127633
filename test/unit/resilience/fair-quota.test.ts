import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FairQuota } from "../../../src/resilience/fair-quota.js";

/** Acquires slots for a caller until none is left, and returns their number. */
function fill(quota: FairQuota, caller: string, limit = Number.POSITIVE_INFINITY): number {
  let count = 0;
  while (count < limit && quota.tryAcquire(caller) !== undefined) count += 1;
  return count;
}

describe("fair quota", () => {
  test("gives one caller at most half of the slots and leaves some for later callers", () => {
    const quota = new FairQuota(() => 100);
    expect(["a", "b", "c"].map((caller) => fill(quota, caller))).toEqual([50, 25, 13]);
    expect(fill(quota, "a")).toBe(0);
  });

  test("gives two concurrent callers a third each", () => {
    const quota = new FairQuota(() => 99);
    const counts = { a: 0, b: 0 };
    for (let round = 0; round < 99; round += 1)
      for (const who of ["a", "b"] as const) counts[who] += fill(quota, who, 1);
    expect(counts).toEqual({ a: 33, b: 33 });
  });

  test.each([1, 2, 7, 50, 51, 100])("grants %i slots at once exactly if it would one after the other", (amount) => {
    const [atOnce, oneByOne] = [new FairQuota(() => 100), new FairQuota(() => 100)];
    for (let round = 0; round < 5; round += 1) {
      const release = atOnce.tryAcquire("a", amount);
      const isGranted = fill(oneByOne, "a", amount) === amount;
      expect(release !== undefined).toBe(isGranted);
      if (!isGranted) break;
      expect(atOnce.heldCount()).toBe(oneByOne.heldCount());
    }
  });

  test("releases at once what was taken at once", () => {
    const quota = new FairQuota(() => 100);
    quota.tryAcquire("a", 30)?.();
    expect(quota.heldCount()).toBe(0);
    expect(fill(quota, "a")).toBe(50);
  });

  test("follows a changing capacity without revoking slots", () => {
    let capacity = 4;
    const quota = new FairQuota(() => capacity);
    expect(fill(quota, "a")).toBe(2);
    capacity = 12;
    expect(fill(quota, "a")).toBe(4);
    capacity = 2;
    expect(fill(quota, "b")).toBe(0);
  });

  test("never exceeds the capacity and admits a new caller while any slot is free", () => {
    const step = fc.record({ caller: fc.constantFrom("a", "b", "c", "d"), takes: fc.boolean(), which: fc.nat(20) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 60 }), (capacity, steps) => {
        const quota = new FairQuota(() => capacity);
        const held: { caller: string; release: () => void }[] = [];
        for (const { caller, takes, which } of steps) {
          if (takes) {
            const heldByCaller = held.filter((slot) => slot.caller === caller).length;
            const release = quota.tryAcquire(caller);
            expect(release !== undefined).toBe(heldByCaller < capacity - held.length);
            if (release !== undefined) held.push({ caller, release });
          } else if (held.length > 0) held.splice(which % held.length, 1)[0]?.release();
          expect(held.length).toBeLessThanOrEqual(capacity);
        }
      }),
    );
  });
});
