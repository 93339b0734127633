import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { searchLogs } from "../../../../src/chain/read/log-search.js";
import { blockNumbersOf, createLogChainStub, logFilter } from "../support/log-chain-stub.js";

const never = new AbortController().signal;
const forward = { newestFirst: false };
const backward = { newestFirst: true };

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
    const { client, state } = createLogChainStub([], { maxLogBlocks: 1_000 });
    state.hold = () => sleep(5);
    await searchLogs(client, { filter: logFilter, range: { from: 0, to: 19_999 }, ...forward }, never);
    expect([state.maxConcurrent, state.pages.length]).toEqual([8, 20]);
  });

  test.each([
    [forward, 1_500, [1_500]],
    [backward, 98_000, [99_000, 98_000]],
  ])("stops as soon as it is complete and cancels the rest: %j", async (order, wanted, blocks) => {
    const { client, state } = createLogChainStub([1_500, 3_500, 98_000, 99_000], { maxLogBlocks: 1_000 });
    let pages = 0;
    // Searches after the third page never complete.
    state.hold = () => {
      pages += 1;
      return pages > 3 ? new Promise(() => {}) : Promise.resolve();
    };
    const isComplete = (logs: readonly { readonly blockNumber: number }[]) =>
      logs.some(({ blockNumber }) => blockNumber === wanted);
    const found = await searchLogs(
      client,
      { filter: logFilter, range: { from: 0, to: 100_000 }, ...order, isComplete },
      never,
    );
    expect(blockNumbersOf(found)).toEqual(blocks);
    expect(pages).toBeLessThan(12);
    await vi.waitFor(() => expect(state.concurrent).toBe(0), { timeout: 60_000 });
    expect(state.abortedSearches).toBeGreaterThanOrEqual(pages - 3);
  });

  test("rejects when its signal aborts and leaves nothing pending", async () => {
    const { client, state } = createLogChainStub([1], { maxLogBlocks: 1_000 });
    state.hold = ({ from }) => (from === 0 ? Promise.resolve() : new Promise(() => {}));
    const leaving = new AbortController();
    const search = searchLogs(
      client,
      { filter: logFilter, range: { from: 0, to: 50_000 }, ...forward },
      leaving.signal,
    );
    await vi.waitFor(() => expect(state.concurrent).toBe(8), { timeout: 60_000 });
    leaving.abort();
    await expect(search).rejects.toThrow("left");
    await vi.waitFor(() => expect(state.concurrent).toBe(0), { timeout: 60_000 });
    expect(state.pages).toHaveLength(9);
  });

  test("fails when a page cannot be read", async () => {
    const { client, state } = createLogChainStub([1], { maxLogBlocks: 1_000 });
    state.hold = ({ from }) => (from === 30_000 ? Promise.reject(new Error("down")) : Promise.resolve());
    await expect(
      searchLogs(client, { filter: logFilter, range: { from: 0, to: 50_000 }, ...forward }, never),
    ).rejects.toThrow("down");
  });

  test("sends nothing for an empty range", async () => {
    const { client, state } = createLogChainStub([1]);
    expect(await searchLogs(client, { filter: logFilter, range: { from: 5, to: 4 }, ...forward }, never)).toEqual([]);
    expect(state.pages).toEqual([]);
  });
});
