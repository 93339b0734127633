import { describe, expect, test } from "vitest";
import {
  areNear,
  countCloseHeads,
  isImpossibleHead,
  selectAgreedHead,
} from "../../../../src/chain/quorum/head-agreement.js";

const head = (number: number, timestamp = 1_000_000 + 12 * number) => ({ number, timestamp });
const H = head(1_000);

describe("the agreed head", () => {
  test.each([
    ["is the highest that two of three have", [head(1_001), H, head(999)], 2, H],
    ["is the one of all three", [head(1_001), H, head(999)], 3, head(999)],
    ["is not that of an endpoint that is too high", [head(9_000), H, H], 2, H],
    ["is not that of one too high with a plausible time", [head(9_000, H.timestamp + 1), H, H], 2, H],
    ["is not that of an endpoint that is too low", [head(10), H, head(1_001)], 2, H],
    ["has the time of the majority", [head(1_000, 5), H, H], 2, H],
    ["has the time that is nearer to that of an endpoint behind", [head(1_000, 3_600), H, head(999)], 2, H],
    ["needs enough endpoints", [H], 2, undefined],
    ["needs endpoints near each other: one invents or one has stopped", [H, head(10)], 2, undefined],
    ["is not that of two whose times differ", [H, head(1_000, 5)], 2, undefined],
  ])("%s", (_, heads, needed, expected) => {
    for (const order of [heads, heads.toReversed()]) expect(selectAgreedHead(order, needed)).toEqual(expected);
  });

  test("a neighbour is near however long its block took, and a fast chain may be seconds apart", () => {
    expect(areNear(head(1_000, 0), head(1_001, 90_000))).toBe(true);
    expect(areNear(head(1_000, 100), head(1_040, 110))).toBe(true);
    expect(areNear(head(1_000, 100), head(1_040, 101))).toBe(false);
    expect(areNear(head(1_000, 100), head(1_005, 140))).toBe(false);
  });

  test("is not taken from two of which one is more than two seconds behind while a third can be asked", () => {
    expect(countCloseHeads([head(1_000, 100), head(1_008, 102)])).toBe(2);
    expect(countCloseHeads([head(1_000, 100), head(1_001, 103)])).toBe(1);
    expect(countCloseHeads([head(1_000, 100), head(1_001, 112), head(1_001, 112)])).toBe(2);
  });

  test("is contradicted by what is ahead of it, not by what is behind", () => {
    expect(isImpossibleHead(head(9_000), H)).toBe(true);
    expect(isImpossibleHead(head(1_000, H.timestamp + 3_600), H)).toBe(true);
    expect(isImpossibleHead(head(900, H.timestamp + 3_600), H)).toBe(true);
    expect(isImpossibleHead(head(10), H)).toBe(false);
    expect(isImpossibleHead(head(1_001), H)).toBe(false);
  });
});
