import { describe, expect, test } from "vitest";
import type { BlockHeader } from "../../../../../src/chain/read/chain-reads.js";
import { AdaptivePageSize, computeSettledBlock } from "../../../../../src/transfers/index/sync/chain-index-reader.js";

const block = (number: number, hash = `hash ${number}`): BlockHeader => ({ number, hash, timestamp: number });

test.each([
  ["the finalized block", 10_000, 9_000, 2_000, 9_000],
  ["an older block than a very young finalized one", 10_000, 9_999, 2_000, 9_940],
  ["the block an hour ago without the tag", 10_000, undefined, 2_000, 8_200],
  ["a margin in the chain's own block time", 10_000, 9_999, 250, 9_520],
  ["no block before the first", 100, undefined, 2_000, 0],
])("the settled block is %s", (_, latest, finalized, blockMs, settled) => {
  expect(computeSettledBlock(block(latest), finalized, blockMs)).toBe(settled);
});

describe("the page size", () => {
  const range = { from: 1_000, to: 5_000_000 };
  const oldest = { newestFirst: false };
  const getBlocks = (pageSize: AdaptivePageSize): number => {
    const { from, to } = pageSize.selectPage(range, oldest);
    return to - from + 1;
  };

  test("selects the beginning or the end of a range, within the range", () => {
    const pageSize = new AdaptivePageSize();
    expect(pageSize.selectPage(range, oldest)).toEqual({ from: 1_000, to: 1_499 });
    expect(pageSize.selectPage(range, { newestFirst: true })).toEqual({ from: 4_999_501, to: 5_000_000 });
    for (const newestFirst of [false, true]) {
      expect(pageSize.selectPage({ from: 7, to: 9 }, { newestFirst })).toEqual({ from: 7, to: 9 });
    }
  });

  test("grows up to a million blocks where logs are few, and shrinks where they are many", () => {
    const pageSize = new AdaptivePageSize();
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
    const pageSize = new AdaptivePageSize();
    pageSize.setMaxBlocks(300);
    for (let step = 0; step < 99; step++) pageSize.recordLogCount(pageSize.selectPage(range, oldest), 0);
    expect(getBlocks(pageSize)).toBe(300);
    for (let step = 0; step < 2; step++) pageSize.recordLogCount(pageSize.selectPage(range, oldest), 0);
    expect(getBlocks(pageSize)).toBeGreaterThan(300);
  });
});
