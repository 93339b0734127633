import { describe, expect, test } from "vitest";
import { createRepeatFilter } from "../../../src/transfers/repeat-filter.js";

const keys = Array.from({ length: 100 }, (_, index) => `0x${index.toString(16).padStart(64, "0")}`);

describe("a repeat filter", () => {
  test("recognizes each key from its second time on", () => {
    const filter = createRepeatFilter(65_536);
    for (const isRepeated of [false, true, true]) {
      expect(keys.map((key) => filter.record(key))).toEqual(keys.map(() => isRepeated));
    }
  });

  test("forgets a key that another one displaces from its slot", () => {
    const filter = createRepeatFilter(1);
    expect(["a", "a", "b", "a"].map((key) => filter.record(key))).toEqual([false, true, false, false]);
  });

  test("uses all of its slots", () => {
    const filter = createRepeatFilter(64);
    for (const key of keys) filter.record(key);
    // The last key of each slot that is not empty: 100 keys at random fill 51 slots on average.
    expect(keys.toReversed().filter((key) => filter.record(key)).length).toBeGreaterThan(40);
  });

  test("does not take a key whose hash is that of an empty slot for a repeated one", () => {
    // FNV-1a of this text is 0.
    const filter = createRepeatFilter(64);
    expect([filter.record("+!=yG"), filter.record("+!=yG")]).toEqual([false, true]);
  });
});
