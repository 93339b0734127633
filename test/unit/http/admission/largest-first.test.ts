import { expect, test } from "vitest";
import { takeLargestFirst } from "../../../../src/http/admission/largest-first.js";

test("yields the largest item of the caller that holds most at each step", () => {
  const holdings = [
    { caller: "a", item: "a1", bytes: 10 },
    { caller: "b", item: "b1", bytes: 40 },
    { caller: "a", item: "a2", bytes: 50 },
    { caller: "c", item: "c1", bytes: 45 },
    { caller: "a", item: "a3", bytes: 30 },
  ];
  // Totals: a 90, b 40, c 45; then a 40, c 45; then a 40 before b 40, then b, then a 10.
  expect([...takeLargestFirst(holdings)].map(({ item }) => item)).toEqual(["a2", "c1", "a3", "b1", "a1"]);
});
