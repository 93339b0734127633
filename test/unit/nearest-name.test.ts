import { describe, expect, test } from "vitest";
import { findNearestName, suggestName } from "../../src/nearest-name.js";

const NAMES = ["fromChain", "toChain", "amount", "HOP"];

describe("findNearestName", () => {
  // Which mistakes are recognised, test/unit/config/misspelt-variables.test.ts shows.
  test("finds a short name in another case", () => {
    expect(findNearestName("hop", NAMES)).toBe("HOP");
  });

  test.each([
    ["two edits", "fromChxyn"],
    ["two swaps", "otCahin"],
    ["letters swapped that are not neighbours", "toChnia"],
    ["one letter less than a short name", "HO"],
    ["nothing", ""],
  ])("finds no name for %s", (_, text) => {
    expect(findNearestName(text, NAMES)).toBeUndefined();
  });

  test("prefers none of two that are as near", () => {
    expect(findNearestName("USDX", ["USDC", "USDT"])).toBeUndefined();
  });
});

test("suggestName completes a message", () => {
  expect(suggestName("amunt", NAMES)).toBe(": did you mean amount?");
  expect(suggestName("x", NAMES)).toBe("");
});
