import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { searchBlockByTime } from "../../../../src/chain/read/block-finder.js";

const genesis = { number: 0, timestamp: Number.NEGATIVE_INFINITY };

/** Sections of a chain with different block times, and the gap before each. */
const sections = fc.array(
  fc.record({
    blocks: fc.integer({ min: 1, max: 50_000_000 }),
    secondsPerBlock: fc.constantFrom(0, 0.25, 1, 2, 5, 12, 15, 900),
    gapSeconds: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 30 * 24 * 3600 })),
  }),
  { minLength: 1, maxLength: 6 },
);

type Section = { readonly blocks: number; readonly secondsPerBlock: number; readonly gapSeconds: number };

function chainOf(sections: readonly Section[]) {
  let [first, time] = [0, 1_500_000_000];
  const parts = sections.map(({ blocks, secondsPerBlock, gapSeconds }) => {
    const part = { first, time: time + gapSeconds, secondsPerBlock };
    first += blocks;
    time = part.time + Math.floor(blocks * secondsPerBlock);
    return part;
  });
  const timeOf = (number: number): number => {
    const part = parts.findLast(({ first }) => first <= number);
    if (part === undefined) throw new Error(`no block ${number}`);
    return part.time + Math.floor((number - part.first) * part.secondsPerBlock);
  };
  return { head: first - 1, timeOf };
}

async function find(sections: readonly Section[], share: number, blockSeconds: number) {
  const { head, timeOf } = chainOf(sections);
  const [start, end] = [timeOf(0) - 3_600, timeOf(head)];
  const time = Math.floor(start + (end - start) * share);
  const reads: number[] = [];
  const high = { number: head, timestamp: end };
  const found = await searchBlockByTime([genesis, high], time, blockSeconds, async (number) => {
    reads.push(number);
    return { number, timestamp: timeOf(number) };
  });
  return { found, time, reads, head, timeOf };
}

describe("searchBlockByTime", () => {
  test("finds a block at or shortly before the time and reads no block twice", async () => {
    const cases = fc.tuple(
      sections,
      fc.double({ min: 0, max: 0.999999, noNaN: true }),
      fc.constantFrom(0.01, 0.25, 2, 12),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ([sections, share, blockSeconds]) => {
        const { found, time, reads, head, timeOf } = await find(sections, share, blockSeconds);
        fc.pre(time < timeOf(head));
        expect(found.number === 0 || timeOf(found.number) <= time).toBe(true);
        const after = Math.min(found.number + 1_000, head);
        expect(time - found.timestamp <= 300 || timeOf(after) > time).toBe(true);
        expect(new Set(reads).size).toBe(reads.length);
        expect(reads.every((number) => number > 0 && number < head)).toBe(true);
        // At most three reads for each halving.
        expect(reads.length).toBeLessThanOrEqual(3 * Math.ceil(Math.log2(head + 2)));
      }),
      { numRuns: 300 },
    );
  });

  test.each<[string, Section[], number, number]>([
    ["the right block time", [{ blocks: 100_000_000, secondsPerBlock: 2, gapSeconds: 0 }], 2, 1],
    ["half the block time", [{ blocks: 100_000_000, secondsPerBlock: 2, gapSeconds: 0 }], 1, 3],
    ["twice the block time", [{ blocks: 100_000_000, secondsPerBlock: 2, gapSeconds: 0 }], 4, 3],
    [
      "a block time that has changed",
      [
        { blocks: 20_000_000, secondsPerBlock: 13, gapSeconds: 0 },
        { blocks: 20_000_000, secondsPerBlock: 12, gapSeconds: 0 },
      ],
      12,
      4,
    ],
  ])("needs few reads: %s", async (_, sections, blockSeconds, maxReads) => {
    for (const share of [0.1, 0.3, 0.5, 0.7, 0.9, 0.99]) {
      const { reads } = await find(sections, share, blockSeconds);
      expect(reads.length).toBeLessThanOrEqual(maxReads);
    }
  });

  test("ends for arbitrary timestamps", async () => {
    await fc.assert(
      fc.asyncProperty(fc.infiniteStream(fc.nat(2_000)), async (times) => {
        const high = { number: 1_000_000_000, timestamp: 1_000 };
        const read = async (number: number) => ({ number, timestamp: times.next().value });
        const found = await searchBlockByTime([genesis, high], 900, 2, read);
        expect(found.number === 0 || found.timestamp <= 900).toBe(true);
      }),
    );
  });
});
