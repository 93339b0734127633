import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createFairQuota } from "../../../src/resilience/fair-quota.js";

/** Takes places for a caller until there is none, and says how many that were. */
function fill(places: ReturnType<typeof createFairQuota>, caller: string, most = Number.POSITIVE_INFINITY): number {
  let count = 0;
  while (count < most && places.tryAcquire(caller) !== undefined) count += 1;
  return count;
}

describe("places that callers share", () => {
  test("are half a single caller's, and those who come later find some", () => {
    const places = createFairQuota(() => 100);
    expect(["a", "b", "c"].map((caller) => fill(places, caller))).toEqual([50, 25, 13]);
    expect(fill(places, "a")).toBe(0);
  });

  test("are a third each of two who come together", () => {
    const places = createFairQuota(() => 99);
    const counts = { a: 0, b: 0 };
    for (let turn = 0; turn < 99; turn += 1) for (const who of ["a", "b"] as const) counts[who] += fill(places, who, 1);
    expect(counts).toEqual({ a: 33, b: 33 });
  });

  test("come free again", () => {
    const places = createFairQuota(() => 4);
    const [first, second] = [places.tryAcquire("a"), places.tryAcquire("a")];
    expect(places.tryAcquire("a")).toBeUndefined();
    first?.();
    expect(fill(places, "a")).toBe(1);
    second?.();
    expect(fill(places, "a")).toBe(1);
  });

  test("become more and fewer; nobody loses one", () => {
    let capacity = 4;
    const places = createFairQuota(() => capacity);
    expect(fill(places, "a")).toBe(2);
    capacity = 12;
    expect(fill(places, "a")).toBe(4);
    capacity = 2;
    expect(fill(places, "b")).toBe(0);
  });

  test("are never more than there are, and a newcomer finds one while any is free", () => {
    const step = fc.record({ caller: fc.constantFrom("a", "b", "c", "d"), takes: fc.boolean(), which: fc.nat(20) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 60 }), (capacity, steps) => {
        const places = createFairQuota(() => capacity);
        const held: { caller: string; leave: () => void }[] = [];
        for (const { caller, takes, which } of steps) {
          if (takes) {
            const mine = held.filter((place) => place.caller === caller).length;
            const leave = places.tryAcquire(caller);
            expect(leave !== undefined).toBe(mine < capacity - held.length);
            if (leave !== undefined) held.push({ caller, leave });
          } else if (held.length > 0) held.splice(which % held.length, 1)[0]?.leave();
          expect(held.length).toBeLessThanOrEqual(capacity);
        }
      }),
    );
  });
});
