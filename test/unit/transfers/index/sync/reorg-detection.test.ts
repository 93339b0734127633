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
  ["the last block replaced", block(10, "other"), block(12), "reorg"],
  ["the last block replaced at the head", block(10, "other"), block(10, "other"), "reorg"],
  ["a head below the index", block(10), block(9), "wait"],
  ["a head below the index on another fork", block(10, "other"), block(9), "wait"],
  ["an endpoint without the block", undefined, block(12), "wait"],
  ["an endpoint without a head", block(10), undefined, "wait"],
  ["a response about another block", block(11), block(12), "wait"],
])("classifies a poll with %s", (_, currentLast, latest, result) => {
  expect(classifyPoll([block(10), block(8)], [currentLast, block(8)], latest)).toBe(result);
});

test.each<[string, BlockHeader | undefined, PollResult]>([
  ["another block", block(8, "other"), "reorg"],
  ["a missing block", undefined, "wait"],
])("classifies a poll with %s below the last one", (_, currentPrevious, result) => {
  expect(classifyPoll([block(10), block(8)], [block(10), currentPrevious], block(12))).toBe(result);
});

test("the common ancestor is the newest remaining block below all removed ones", () => {
  const indexed = [block(12), block(10), block(7)];
  expect(findCommonAncestor(indexed, [block(12, "other"), block(10), block(7)])).toEqual(block(10));
  expect(findCommonAncestor(indexed, [undefined, block(10, "other"), block(7)])).toEqual(block(7));
  expect(findCommonAncestor(indexed, [block(12), block(10, "other"), block(7)])).toEqual(block(7));
  expect(findCommonAncestor(indexed, indexed)).toEqual(block(12));
  expect(findCommonAncestor(indexed, [undefined, undefined, block(7, "other")])).toBeUndefined();
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
    "with logs of two blocks",
    [block(10)],
    [
      [11, "hash 11"],
      [11, "other"],
    ],
    false,
  ],
  ["with two headers of one number", [block(10), block(10, "other")], [], false],
])("checks the consistency of a batch %s", (_, headers, logs, expected) => {
  const toLog = ([blockNumber, blockHash]: [number, string]) => ({ blockNumber, blockHash }) as Log;
  expect(isConsistentChain(headers, logs.map(toLog))).toBe(expected);
});

test.each([
  ["the finalized block", 10_000, 9_000, 2_000, 9_000],
  ["an older block than a very young finalized one", 10_000, 9_999, 2_000, 9_940],
  ["the block an hour ago without the tag", 10_000, undefined, 2_000, 8_200],
  ["a margin in the chain's own block time", 10_000, 9_999, 250, 9_520],
  ["no block before the first", 100, undefined, 2_000, 0],
])("the settled block is %s", (_, latest, finalized, blockMs, settled) => {
  expect(computeSettledBlock(block(latest), finalized, blockMs)).toBe(settled);
});

test("polls once per block, but not more often than every 2 s", () => {
  expect([250, 2_000, 12_000].map((blockTimeMs) => getPollIntervalMs({ blockTimeMs }))).toEqual([2_000, 2_000, 12_000]);
});

describe("the page size", () => {
  const range = { from: 1_000, to: 5_000_000 };
  const oldest = { newestFirst: false };
  const getBlocks = (pageSize: ReturnType<typeof createAdaptivePageSize>): number => {
    const { from, to } = pageSize.selectPage(range, oldest);
    return to - from + 1;
  };

  test("selects the beginning or the end of a range, within the range", () => {
    const pageSize = createAdaptivePageSize();
    expect(pageSize.selectPage(range, oldest)).toEqual({ from: 1_000, to: 1_499 });
    expect(pageSize.selectPage(range, { newestFirst: true })).toEqual({ from: 4_999_501, to: 5_000_000 });
    for (const newestFirst of [false, true]) {
      expect(pageSize.selectPage({ from: 7, to: 9 }, { newestFirst })).toEqual({ from: 7, to: 9 });
    }
  });

  test("grows up to a million blocks where logs are few, and shrinks where they are many", () => {
    const pageSize = createAdaptivePageSize();
    const sizes = Array.from({ length: 14 }, () => {
      pageSize.recordLogCount(pageSize.selectPage(range, oldest), 0);
      return getBlocks(pageSize);
    });
    expect(sizes.slice(0, 3)).toEqual([1_000, 2_000, 4_000]);
    expect(sizes.at(-1)).toBe(1_000_000);
    pageSize.recordLogCount(pageSize.selectPage(range, oldest), 500);
    expect(getBlocks(pageSize)).toBe(1_000_000);
    pageSize.recordLogCount(pageSize.selectPage(range, oldest), 5_000);
    expect(getBlocks(pageSize)).toBe(200_000);
    // A page cut off by the end of the range is ignored.
    pageSize.recordLogCount({ from: 1, to: 3 }, 0);
    expect(getBlocks(pageSize)).toBe(200_000);
    // After an extremely full page the next one has the target size.
    pageSize.recordLogCount({ from: 1, to: 200_000 }, 2_000_000);
    expect(getBlocks(pageSize)).toBe(100);
  });

  test("respects the endpoints' limit, and tries more after a hundred pages", () => {
    const pageSize = createAdaptivePageSize();
    pageSize.setMaxBlocks(300);
    for (let step = 0; step < 99; step++) pageSize.recordLogCount(pageSize.selectPage(range, oldest), 0);
    expect(getBlocks(pageSize)).toBe(300);
    for (let step = 0; step < 2; step++) pageSize.recordLogCount(pageSize.selectPage(range, oldest), 0);
    expect(getBlocks(pageSize)).toBeGreaterThan(300);
  });
});
