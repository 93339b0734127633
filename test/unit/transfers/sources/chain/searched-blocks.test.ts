import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  mergeRange,
  SearchedBlocks,
  subtractRanges,
} from "../../../../../src/transfers/sources/chain/searched-blocks.js";

const range = fc.tuple(fc.nat(60), fc.nat(15)).map(([from, width]) => ({ from, to: from + width }));
const blocksOf = (ranges: readonly { from: number; to: number }[]): Set<number> =>
  new Set(ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, at) => from + at)));

describe("block ranges", () => {
  test("are merged and subtracted as sets of blocks are, newest first and with blocks between them", () => {
    fc.assert(
      fc.property(fc.array(range, { maxLength: 8 }), range, (added, wanted) => {
        const merged = added.reduce<ReturnType<typeof mergeRange>>(mergeRange, []);
        expect(blocksOf(merged)).toEqual(blocksOf(added));
        const rest = subtractRanges(wanted, merged);
        const expected = [...blocksOf([wanted])].filter((block) => !blocksOf(added).has(block));
        expect(blocksOf(rest)).toEqual(new Set(expected));
        for (const ranges of [merged, rest]) {
          for (const [at, { from, to }] of ranges.entries()) {
            expect(to).toBeGreaterThanOrEqual(from);
            expect(ranges[at - 1]?.from ?? Number.POSITIVE_INFINITY).toBeGreaterThan(to + 1);
          }
        }
      }),
    );
  });
});

describe("searched blocks", () => {
  const all = { from: 0, to: 100 };
  function setup() {
    const clock = { now: 1_000 };
    return { clock, blocks: new SearchedBlocks(() => clock.now) };
  }

  test("are kept by search for an hour after the first", () => {
    const { blocks, clock } = setup();
    blocks.record("a", { from: 90, to: 100 });
    clock.now += 60 * 60_000 - 1;
    blocks.record("a", { from: 50, to: 89 });
    expect(blocks.listUnsearched("a", all)).toEqual([{ from: 0, to: 49 }]);
    expect(blocks.listUnsearched("b", all)).toEqual([all]);
    clock.now += 2;
    expect(blocks.listUnsearched("a", all)).toEqual([all]);
  });

  test("are bounded: the narrowest of five ranges, and the oldest of ten thousand searches, are dropped", () => {
    const { blocks } = setup();
    for (const from of [0, 20, 40, 60, 80]) blocks.record("a", { from, to: from + (from === 40 ? 1 : 9) });
    expect(blocks.listUnsearched("a", { from: 0, to: 89 })).toEqual([
      { from: 70, to: 79 },
      { from: 30, to: 59 },
      { from: 10, to: 19 },
    ]);
    for (let search = 0; search < 10_000; search += 1) blocks.record(`search ${search}`, all);
    expect(blocks.listUnsearched("a", all)).toEqual([all]);
    expect(blocks.listUnsearched("search 0", all)).toEqual([]);
  });
});
