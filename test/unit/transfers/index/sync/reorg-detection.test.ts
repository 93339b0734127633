import { describe, expect, test } from "vitest";
import type { BlockHeader, Log } from "../../../../../src/chain/read/chain-reads.js";
import { createAdaptivePageSize } from "../../../../../src/transfers/index/sync/adaptive-page-size.js";
import {
  classifyPoll,
  computeSettledBlock,
  findCommonAncestor,
  getPollIntervalMs,
  isConsistentChain,
  type PollResult,
} from "../../../../../src/transfers/index/sync/reorg-detection.js";

const block = (number: number, hash = `hash ${number}`): BlockHeader => ({ number, hash, timestamp: number });

test.each<[string, BlockHeader | undefined, BlockHeader | undefined, PollResult]>([
  ["nothing new", block(10), block(10), "advance"],
  ["new blocks", block(10), block(12), "advance"],
  ["another block in its place", block(10, "other"), block(12), "reorg"],
  ["another block in its place, at the head", block(10, "other"), block(10, "other"), "reorg"],
  ["a head that is behind", block(10), block(9), "wait"],
  ["a head that is behind, on another chain", block(10, "other"), block(9), "wait"],
  ["an endpoint that does not have it", undefined, block(12), "wait"],
  ["an endpoint without a head", block(10), undefined, "wait"],
  ["an answer about another block", block(11), block(12), "wait"],
])("%s", (_, lastNow, latest, verdict) => {
  expect(classifyPoll([block(10), block(8)], [lastNow, block(8)], latest)).toBe(verdict);
});

test.each<[string, BlockHeader | undefined, PollResult]>([
  ["another block in its place", block(8, "other"), "reorg"],
  ["an endpoint that does not have it", undefined, "wait"],
])("below the last block: %s", (_, previousNow, verdict) => {
  expect(classifyPoll([block(10), block(8)], [block(10), previousNow], block(12))).toBe(verdict);
});

test("a fork is at the newest block that is still there, and below all that are not", () => {
  const heads = [block(12), block(10), block(7)];
  expect(findCommonAncestor(heads, [block(12, "other"), block(10), block(7)])).toEqual(block(10));
  expect(findCommonAncestor(heads, [undefined, block(10, "other"), block(7)])).toEqual(block(7));
  expect(findCommonAncestor(heads, [block(12), block(10, "other"), block(7)])).toEqual(block(7));
  expect(findCommonAncestor(heads, heads)).toEqual(block(12));
  expect(findCommonAncestor(heads, [undefined, undefined, block(7, "other")])).toBeUndefined();
});

test.each<[string, BlockHeader[], [number, string][], boolean]>([
  [
    "of one chain",
    [block(10), block(12)],
    [
      [10, "hash 10"],
      [11, "hash 11"],
    ],
    true,
  ],
  ["with logs of another block", [block(10), block(12)], [[12, "other"]], false],
  [
    "with logs of two",
    [block(10)],
    [
      [11, "hash 11"],
      [11, "other"],
    ],
    false,
  ],
  ["with two heads", [block(10), block(10, "other")], [], false],
])("answers %s", (_, headers, logs, expected) => {
  const of = ([blockNumber, blockHash]: [number, string]) => ({ blockNumber, blockHash }) as Log;
  expect(isConsistentChain(headers, logs.map(of))).toBe(expected);
});

test.each([
  ["what is final", 10_000, 9_000, 2_000, 9_000],
  ["not what is final and young", 10_000, 9_999, 2_000, 9_940],
  ["an hour without the tag", 10_000, undefined, 2_000, 8_200],
  ["by the chain's own blocks", 10_000, 9_999, 250, 9_520],
  ["nothing before the first block", 100, undefined, 2_000, 0],
])("settled: %s", (_, latest, finalized, blockMs, settled) => {
  expect(computeSettledBlock(block(latest), finalized, blockMs)).toBe(settled);
});

test("a chain is looked at every block, not more often than every 2 s", () => {
  expect([250, 2_000, 12_000].map((blockTimeMs) => getPollIntervalMs({ blockTimeMs }))).toEqual([2_000, 2_000, 12_000]);
});

describe("the width of a page", () => {
  const range = { from: 1_000, to: 5_000_000 };
  const oldest = { newestFirst: false };
  const widthOf = (width: ReturnType<typeof createAdaptivePageSize>): number => {
    const { from, to } = width.selectPage(range, oldest);
    return to - from + 1;
  };

  test("is of the beginning or the end, and within the range", () => {
    const width = createAdaptivePageSize();
    expect(width.selectPage(range, oldest)).toEqual({ from: 1_000, to: 1_499 });
    expect(width.selectPage(range, { newestFirst: true })).toEqual({ from: 4_999_501, to: 5_000_000 });
    for (const newestFirst of [false, true]) {
      expect(width.selectPage({ from: 7, to: 9 }, { newestFirst })).toEqual({ from: 7, to: 9 });
    }
  });

  test("grows where little happens, up to a million, and shrinks where much does", () => {
    const width = createAdaptivePageSize();
    const widths = Array.from({ length: 14 }, () => {
      width.recordLogCount(width.selectPage(range, oldest), 0);
      return widthOf(width);
    });
    expect(widths.slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
    expect(widths.at(-1)).toBe(1_000_000);
    width.recordLogCount(width.selectPage(range, oldest), 500);
    expect(widthOf(width)).toBe(1_000_000);
    width.recordLogCount(width.selectPage(range, oldest), 5_000);
    expect(widthOf(width)).toBe(200_000);
    // The last part of a range says nothing.
    width.recordLogCount({ from: 1, to: 3 }, 0);
    expect(widthOf(width)).toBe(200_000);
    // However much there was, the next step is a usual one.
    width.recordLogCount({ from: 1, to: 200_000 }, 2_000_000);
    expect(widthOf(width)).toBe(100);
  });

  test("keeps to what endpoints take, and tries more now and then", () => {
    const width = createAdaptivePageSize();
    width.setMaxBlocks(300);
    for (let step = 0; step < 99; step++) width.recordLogCount(width.selectPage(range, oldest), 0);
    expect(widthOf(width)).toBe(300);
    for (let step = 0; step < 2; step++) width.recordLogCount(width.selectPage(range, oldest), 0);
    expect(widthOf(width)).toBeGreaterThan(300);
  });
});
