import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BlockRange } from "../../../../src/chain/chain-client.js";
import { searchLogs } from "../../../../src/chain/read/log-search.js";
import { blockNumbersOf, createLogChainStub, logFilter } from "../support/log-chain-stub.js";
import { never, until } from "../support/rpc-node-stub.js";

/** Creates a chain whose endpoint searches 1,000 blocks at a time. */
function setup(blocks: readonly number[] = []) {
  const { client, state } = createLogChainStub(blocks, { maxLogBlocks: 1_000 });
  return {
    state,
    search: (range: BlockRange, more: Partial<Parameters<typeof searchLogs>[1]> = {}, signal = never) =>
      searchLogs(client, { filter: logFilter, range, newestFirst: false, ...more }, signal),
  };
}

describe("searchLogs", () => {
  test("finds everything once, in order, for any and for shrinking block ranges", async () => {
    const cases = fc.record({
      blocks: fc.uniqueArray(fc.nat(3_000), { maxLength: 30 }),
      from: fc.nat(3_000),
      size: fc.nat(3_000),
      maxLogBlocks: fc.integer({ min: 7, max: 4_000 }),
      later: fc.integer({ min: 7, max: 4_000 }),
      newestFirst: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ blocks, from, size, maxLogBlocks, later, newestFirst }) => {
        const { client, state } = createLogChainStub(blocks, { maxLogBlocks });
        state.hold = async () => {
          if (state.pages.length > 1) state.maxLogBlocks = later;
        };
        const range = { from, to: from + size };
        const found = await searchLogs(client, { filter: logFilter, range, newestFirst }, never);
        const wanted = blocks.filter((block) => block >= from && block <= range.to).sort((a, b) => a - b);
        expect(blockNumbersOf(found)).toEqual(newestFirst ? wanted.reverse() : wanted);
        expect(state.maxConcurrent).toBeLessThanOrEqual(8);
        expect(state.pages.every((page) => page.from >= from && page.to <= range.to)).toBe(true);
      }),
    );
  });

  test("reads eight pages concurrently once the first has determined their width", async () => {
    const { search, state } = setup();
    state.hold = () => sleep(5);
    await search({ from: 0, to: 19_999 });
    expect([state.maxConcurrent, state.pages.length]).toEqual([8, 20]);
  });

  test.each([
    [false, 1_500, [1_500]],
    [true, 98_000, [99_000, 98_000]],
  ])("stops as soon as it is complete and cancels the rest, newest first: %j", async (newestFirst, wanted, blocks) => {
    const { search, state } = setup([1_500, 3_500, 98_000, 99_000]);
    // Searches after the third page never complete.
    state.hold = () => (state.pages.length > 3 ? new Promise(() => {}) : Promise.resolve());
    const isComplete = (logs: readonly { readonly blockNumber: number }[]) =>
      logs.some(({ blockNumber }) => blockNumber === wanted);
    expect(blockNumbersOf(await search({ from: 0, to: 100_000 }, { newestFirst, isComplete }))).toEqual(blocks);
    expect(state.pages.length).toBeLessThan(12);
    await until(() => expect(state.concurrent).toBe(0));
    expect(state.abortedSearches).toBeGreaterThanOrEqual(state.pages.length - 3);
  });

  test("rejects when its signal aborts and leaves nothing pending", async () => {
    const { search, state } = setup([1]);
    state.hold = ({ from }) => (from === 0 ? Promise.resolve() : new Promise(() => {}));
    const leaving = new AbortController();
    const found = search({ from: 0, to: 50_000 }, {}, leaving.signal);
    await until(() => expect(state.concurrent).toBe(8));
    leaving.abort();
    await expect(found).rejects.toThrow("left");
    await until(() => expect(state.concurrent).toBe(0));
    expect(state.pages).toHaveLength(9);
  });

  test("fails when a page cannot be read", async () => {
    const { search, state } = setup([1]);
    state.hold = ({ from }) => (from === 30_000 ? Promise.reject(new Error("down")) : Promise.resolve());
    await expect(search({ from: 0, to: 50_000 })).rejects.toThrow("down");
  });

  test("sends nothing for an empty range", async () => {
    const { search, state } = setup([1]);
    expect(await search({ from: 5, to: 4 })).toEqual([]);
    expect(state.pages).toEqual([]);
  });
});
