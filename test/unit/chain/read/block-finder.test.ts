import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { getHeadTracker } from "../../../../src/chain/heads/head-tracker.js";
import { BlockFinder, searchBlockByTime } from "../../../../src/chain/read/block-finder.js";
import { createClientStub, createHeader } from "../support/log-chain-stub.js";
import { never } from "../support/rpc-node-stub.js";

const blockMs = 2_000;
const start = 1_600_000_000;

/** A chain with a block every two seconds, and its clock. */
function setup(blocks = 50_000_000) {
  const state = { head: blocks, shift: 0, reads: [] as (number | "latest")[], has: (_: number) => true };
  const client = createClientStub({
    async send(_, [block]) {
      const number = block === "latest" ? state.head : Number(block);
      state.reads.push(block === "latest" ? "latest" : number);
      return state.has(number) ? createHeader(number, start + state.shift + number * 2) : null;
    },
  });
  const clock = { ms: 0 };
  const times = new BlockFinder(() => clock.ms);
  const blockAt = (seconds: number, of: ChainClient = client) => times.findBlockAt(of, start + seconds, blockMs, never);
  const readsOf = async (work: () => Promise<unknown>) => {
    state.reads.length = 0;
    await work();
    return state.reads.length;
  };
  return { client, state, clock, times, blockAt, readsOf };
}

describe("findBlockAt", () => {
  test.each([60_000_000, 99_000_000, 99_999_000, 500_000])("returns a block shortly before %i", async (seconds) => {
    const { blockAt, readsOf } = setup();
    const block = await blockAt(seconds);
    expect(block).toBeLessThanOrEqual(seconds / 2);
    expect(block).toBeGreaterThanOrEqual(seconds / 2 - 1_000);
    expect(await readsOf(() => blockAt(seconds))).toBeLessThanOrEqual(1);
  });

  test("needs two reads at first, one with a cached head, none near a cached block", async () => {
    const { blockAt, readsOf, clock } = setup();
    expect(await readsOf(() => blockAt(60_000_000))).toBe(2);
    // A cached head that is older than one block is used as well.
    clock.ms += 59_999;
    expect(await readsOf(() => blockAt(50_000_000))).toBe(1);
    expect(await readsOf(() => blockAt(60_000_050))).toBe(0);
  });

  test("uses what a client with the same cache key has read", async () => {
    const { blockAt, readsOf, client } = setup();
    await blockAt(60_000_000);
    const decorated = { ...client, heads: getHeadTracker(client) };
    expect(await readsOf(() => blockAt(60_000_050, decorated))).toBe(0);
    expect(await readsOf(() => blockAt(60_000_050, { ...client }))).toBe(2);
  });

  test("uses a wrong head for one minute at most", async () => {
    const { blockAt, client, state, clock, readsOf } = setup();
    state.has = (number) => number <= state.head;
    const { send } = client;
    client.send = async (method, params, signal) =>
      params[0] === "latest" ? createHeader(10 ** 12, 2 ** 32) : send(method, params, signal);
    const cannotBe = { reason: "UPSTREAM_UNAVAILABLE" };
    await expect(blockAt(60_000_000)).rejects.toMatchObject(cannotBe);
    client.send = send;
    clock.ms += 59_999;
    await expect(blockAt(60_000_000)).rejects.toMatchObject(cannotBe);
    clock.ms += 1;
    expect(await readsOf(() => blockAt(60_000_000))).toBe(2);
  });

  test.each([-1, -1_000_000, 0, 1])("returns 0 before the first blocks: %i", async (seconds) => {
    expect(await setup(900).blockAt(seconds)).toBe(0);
    expect(await setup().blockAt(seconds)).toBe(0);
  });

  test("returns the head for a later time, and reads it again after one block time", async () => {
    const { blockAt, readsOf, clock, state } = setup(1_000);
    expect(await blockAt(2_000)).toBe(1_000);
    expect(await readsOf(() => blockAt(9_000))).toBe(0);
    clock.ms += blockMs;
    state.head = 1_001;
    expect(await blockAt(9_000)).toBe(1_001);
  });

  test("caches no blocks that a reorg can remove", async () => {
    const { blockAt, readsOf } = setup();
    const recent = 100_000_000 - 3_000;
    await blockAt(recent);
    expect(await readsOf(() => blockAt(recent))).toBe(1);
  });

  test("uses a wrong timestamp for one hour at most", async () => {
    const { blockAt, state, clock } = setup();
    state.shift = 30_000_000;
    const wrong = await blockAt(60_000_000);
    state.shift = 0;
    clock.ms += 60 * 60_000 - 1;
    expect(await blockAt(60_000_000)).toBe(wrong);
    clock.ms += 1;
    expect(await blockAt(60_000_000)).toBeGreaterThan(29_000_000);
  });

  test("caches a limited number of blocks", async () => {
    const { blockAt, readsOf } = setup();
    for (let each = 1; each <= 200; each++) await blockAt(each * 400_000);
    expect(await readsOf(() => blockAt(200 * 400_000))).toBe(0);
    expect(await readsOf(() => blockAt(400_000))).toBeGreaterThan(0);
  });

  test("fails where the chain lacks the blocks", async () => {
    const { blockAt, state } = setup();
    state.has = (number) => number === state.head;
    await expect(blockAt(60_000_000)).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "optimism returned an invalid result",
    });
  });
});

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

  const steady = [{ blocks: 100_000_000, secondsPerBlock: 2, gapSeconds: 0 }];
  const changed = [13, 12].map((secondsPerBlock) => ({ blocks: 20_000_000, secondsPerBlock, gapSeconds: 0 }));
  test.each<[string, Section[], number, number]>([
    ["the right block time", steady, 2, 1],
    ["half the block time", steady, 1, 3],
    ["twice the block time", steady, 4, 3],
    ["a block time that has changed", changed, 12, 4],
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
