import { describe, expect, test } from "vitest";
import { createTokenBuckets } from "../../../../src/transfers/spend/token-buckets.js";

function setup() {
  const clock = { now: 0 };
  const buckets = createTokenBuckets({ capacity: 10, refillPerSecond: 2 }, () => clock.now);
  const takeAll = (key: string): number => {
    let taken = 0;
    while (buckets.tryTake(key)) taken += 1;
    return taken;
  };
  return { clock, buckets, takeAll };
}

describe("token buckets", () => {
  test("hold their capacity at first and refill at their rate, each on its own", () => {
    const { clock, takeAll } = setup();
    expect(takeAll("a")).toBe(10);
    expect(takeAll("b")).toBe(10);
    clock.now += 499;
    expect(takeAll("a")).toBe(0);
    clock.now += 1;
    expect(takeAll("a")).toBe(1);
    clock.now += 3_600_000;
    expect(takeAll("a")).toBe(10);
  });

  test("tell after how many whole seconds they hold so many tokens, at least one", () => {
    const { clock, buckets, takeAll } = setup();
    expect(buckets.secondsUntil("a", 10)).toBe(1);
    takeAll("a");
    expect([1, 2, 3, 10].map((tokens) => buckets.secondsUntil("a", tokens))).toEqual([1, 1, 2, 5]);
    clock.now += 1_500;
    expect(buckets.secondsUntil("a", 10)).toBe(4);
  });

  test("miss at least what is missing elsewhere, and no less than before", () => {
    const { buckets, takeAll } = setup();
    buckets.raiseMissing("a", 4);
    buckets.raiseMissing("a", 4);
    buckets.raiseMissing("a", 3);
    expect(takeAll("a")).toBe(6);
    for (let count = 0; count < 5; count++) buckets.tryTake("b");
    buckets.raiseMissing("b", 7);
    expect(takeAll("b")).toBe(3);
  });
});
