import { describe, expect, test } from "vitest";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import {
  computeRefreshDelayMs,
  computeStaleWaitMs,
  createChainStateEntry,
  findFreshState,
  findStaleState,
  isEvictable,
  isRecentlyRequested,
  storeIfNewer,
} from "../../../../src/quotes/state/chain-state-entry.js";
import { createReadSet, type ReadSet } from "../../../../src/quotes/state/read-set.js";

const READ_SET = createReadSet({ includesGasPrice: true }) as ReadSet;
const POLICY = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };
const NOW = 1_000_000;

const createState = (blockNumber: bigint, readAt: number) => ({ block: { number: blockNumber }, readAt }) as ChainState;

function createEntry(state?: ChainState) {
  const entry = createChainStateEntry("key", READ_SET, POLICY);
  entry.state = state;
  return entry;
}

describe("cached state", () => {
  test.each([
    [0, true, true],
    [4_000, true, true],
    [4_001, false, true],
    [30_000, false, true],
    [30_001, false, false],
  ])("of an age of %i ms is fresh: %s, usable while the chain fails: %s", (ageMs, isFresh, isUsable) => {
    const entry = createEntry(createState(1n, NOW - ageMs));
    expect(findFreshState(entry, NOW) !== undefined).toBe(isFresh);
    expect(findStaleState(entry, NOW) !== undefined).toBe(isUsable);
  });

  test("is not replaced by an older block while it is fresh", () => {
    const entry = createEntry(createState(10n, NOW - 4_000));
    storeIfNewer(entry, createState(9n, NOW), NOW);
    expect(entry.state?.block.number).toBe(10n);
    storeIfNewer(entry, createState(9n, NOW), NOW + 1);
    expect(entry.state?.block.number).toBe(9n);
    storeIfNewer(entry, createState(9n, NOW + 1), NOW + 1);
    expect(entry.state?.readAt).toBe(NOW + 1);
  });
});

describe("an entry", () => {
  test("is active for 15 s after a request, and evictable when its state cannot be served any more", () => {
    const entry = createEntry();
    expect(isRecentlyRequested(entry, NOW)).toBe(false);
    entry.requestedAt = NOW;
    expect([isRecentlyRequested(entry, NOW + 15_000), isRecentlyRequested(entry, NOW + 15_001)]).toEqual([true, false]);
    expect([isEvictable(entry, NOW + 45_000), isEvictable(entry, NOW + 45_001)]).toEqual([false, true]);
  });

  test("is due for a refresh after half its interval since the last read or failure", () => {
    expect(computeRefreshDelayMs(createEntry(), NOW)).toBe(0);
    const entry = createEntry(createState(1n, NOW - 999));
    expect(computeRefreshDelayMs(entry, NOW)).toBe(1_001);
    expect(computeRefreshDelayMs(entry, NOW + 1)).toBe(0);
    entry.failedAt = NOW;
    expect(computeRefreshDelayMs(entry, NOW + 1)).toBe(1_999);
  });
});

describe("the wait for a read while older state is usable", () => {
  test.each([
    ["1 s for a new read", NOW - 5_000, NOW, 1_000],
    ["what is left of 1 s for a read in progress", NOW - 5_000, NOW - 700, 300],
    ["at most until the state is too old", NOW - 29_900, NOW, 100],
  ])("is %s", (_, readAt, readStartedAt, expected) => {
    const state = createState(1n, readAt);
    expect(computeStaleWaitMs(createEntry(state), state, readStartedAt, NOW)).toBe(expected);
  });

  test("is 0 after a failed read", () => {
    const state = createState(1n, NOW - 5_000);
    const entry = createEntry(state);
    entry.failedAt = NOW - 1;
    expect(computeStaleWaitMs(entry, state, NOW, NOW)).toBe(0);
  });
});
