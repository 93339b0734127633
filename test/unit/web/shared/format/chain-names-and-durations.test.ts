import { expect, test } from "vitest";
import { formatChainName } from "../../../../../web/shared/format/chain-names.js";
import { formatDuration } from "../../../../../web/shared/format/time.js";

test.each([
  ["ethereum", "Ethereum"],
  ["nova", "Arbitrum Nova"],
  ["polygonzk", "Polygon zkEVM"],
  ["constructor", "Constructor"],
  ["", ""],
])("formatChainName formats %j as %j", (slug, name) => {
  expect(formatChainName(slug)).toBe(name);
});

test.each([
  [-3, "0 s"],
  [0.9, "0 s"],
  [99, "99 s"],
  [100, "1 min"],
  [5_999, "99 min"],
  [6_000, "1 h"],
  [172_799, "47 h"],
  [172_800, "2 d"],
])("formatDuration formats %d seconds as %s", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});
