import { expect, test } from "vitest";
import { createRecentDifferences, printCase } from "../../../../src/app/shadow-comparison/recent-differences.js";
import type { ComparisonCase } from "../../../../src/quotes/shadow-comparison/comparison-case.js";

const print = (id: number, padding = ""): string => JSON.stringify({ id: `${id}`, padding });
function list(differences: ReturnType<typeof createRecentDifferences>): readonly number[] {
  const { differences: listed } = JSON.parse(differences.readDocument().body) as { differences: { id: string }[] };
  return listed.map(({ id }) => Number(id));
}

test("keeps the last twenty, each once, the newest first", () => {
  const differences = createRecentDifferences();
  expect(list(differences)).toEqual([]);
  for (let id = 0; id < 25; id++) differences.add(print(id));
  differences.add(print(24));
  expect(list(differences)).toEqual(Array.from({ length: 20 }, (_, index) => 24 - index));
});

test("keeps two megabytes at most", () => {
  const differences = createRecentDifferences();
  for (let id = 0; id < 10; id++) differences.add(print(id, "x".repeat(500 * 1024)));
  expect(list(differences)).toEqual([9, 8, 7, 6]);
});

test.each(["", "null", "[]", '{"id":1}', print(1, "x".repeat(512 * 1024))])("refuses what is no case", (text) => {
  const differences = createRecentDifferences();
  expect(() => differences.add(text)).toThrow();
  expect(list(differences)).toEqual([]);
});

test("leaves out the recorded calls of a case that is too long", () => {
  const calls = [{ method: "eth_call", params: [], outcome: { result: "x".repeat(512 * 1024) } }];
  const found = { id: "a", chains: { polygon: { pin: {}, calls } } } as unknown as ComparisonCase;
  expect(JSON.parse(printCase(found))).toEqual({ id: "a", chains: {} });
  const short = { id: "a", chains: { polygon: { pin: {}, calls: [] } } } as unknown as ComparisonCase;
  expect(JSON.parse(printCase(short))).toEqual(short);
});
