import { describe, expect, test } from "vitest";
import { findNearestName, suggestName } from "../../src/nearest-name.js";

const NAMES = ["fromChain", "toChain", "amount", "HOP"];

describe("findNearestName", () => {
  test.each([
    ["another case", "fromchain", "fromChain"],
    ["underscores", "from_chain", "fromChain"],
    ["a letter too much", "fromChains", "fromChain"],
    ["a letter too few", "mount", "amount"],
    ["another letter", "fromChaim", "fromChain"],
    ["two letters swapped", "toCahin", "toChain"],
    ["a short name in another case", "hop", "HOP"],
  ])("finds a name with %s", (_, text, name) => {
    expect(findNearestName(text, NAMES)).toBe(name);
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
