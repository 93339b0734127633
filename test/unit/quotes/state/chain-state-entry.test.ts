import { describe, expect, test } from "vitest";
import type { Chain } from "../../../../src/hop/networks.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import {
  type ChainStateEntry,
  computeRefreshDelayMs,
  computeRefreshPolicy,
  findFreshState,
  findStaleState,
  storeIfNewer,
  toStalledPolicy,
} from "../../../../src/quotes/state/chain-state-entry.js";
import { EMPTY_READ_SET } from "../../../../src/quotes/state/read-set.js";

const POLICY = { refreshMs: 2_000, maxAgeMs: 4_000, maxStaleMs: 30_000 };
const NOW = 1_000_000;

const createState = (blockNumber: bigint, readAt: number) => ({ block: { number: blockNumber }, readAt }) as ChainState;

const createEntry = (state?: ChainState): ChainStateEntry => ({
  ...{ readSet: EMPTY_READ_SET, parts: [EMPTY_READ_SET], refreshPolicy: POLICY, state },
  ...{ failedAt: Number.NEGATIVE_INFINITY, requestedAt: Number.NEGATIVE_INFINITY },
});

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

  test("is not replaced by one that was read earlier, nor does an equal block wait", () => {
    const entry = createEntry(createState(10n, NOW));
    storeIfNewer(entry, createState(11n, NOW - 1), NOW);
    expect(entry.state?.block.number).toBe(10n);
    const [sameTime, sameBlock] = [createState(11n, NOW), createState(11n, NOW + 1)];
    storeIfNewer(entry, sameTime, NOW);
    expect(entry.state).toBe(sameTime);
    storeIfNewer(entry, sameBlock, NOW + 1);
    expect(entry.state).toBe(sameBlock);
  });
});

describe("the refresh policy of a route", () => {
  const createChain = (blockTimeMs: number) => ({ blockTimeMs }) as Chain;

  test.each([
    ["one block of the slower chain", 2_000, 12_000, undefined, 30_000, [12_000, 24_000, 30_000]],
    [
      "one block of the slower chain, if that is the source",
      12_000,
      2_000,
      undefined,
      30_000,
      [12_000, 24_000, 30_000],
    ],
    ["at least a second, and 4 s of age", 250, 1_000, undefined, 30_000, [1_000, 4_000, 30_000]],
    ["two times in a shorter configured age", 12_000, 2_000, 5_000, 30_000, [2_500, 5_000, 30_000]],
    ["at least a second for the shortest age", 12_000, 2_000, 1_000, 30_000, [1_000, 1_000, 30_000]],
    ["no more often for a long configured age", 2_000, 2_000, 60_000, 30_000, [2_000, 60_000, 60_000]],
  ])("is %s", (_, source, destination, maxAgeMs, maxStaleMs, expected) => {
    const policy = computeRefreshPolicy(createChain(source), createChain(destination), { maxAgeMs, maxStaleMs });
    expect([policy.refreshMs, policy.maxAgeMs, policy.maxStaleMs]).toEqual(expected);
  });

  test.each([
    [12_000, 24_000, 1_500, 3_000],
    [1_000, 2_000, 1_000, 2_000],
  ])("is at most 1.5 s and 3 s while the chain is stalled: %i and %i ms", (refreshMs, maxAgeMs, ...expected) => {
    const stalled = toStalledPolicy({ refreshMs, maxAgeMs, maxStaleMs: 30_000 });
    expect([stalled.refreshMs, stalled.maxAgeMs, stalled.maxStaleMs]).toEqual([...expected, 30_000]);
    const entry = createEntry(createState(1n, NOW - stalled.maxAgeMs - 1));
    expect(findFreshState(entry, NOW, stalled)).toBeUndefined();
  });
});

test("an entry is due for a refresh after half its interval since the last read or failure", () => {
  expect(computeRefreshDelayMs(createEntry(), POLICY, NOW)).toBe(0);
  const entry = createEntry(createState(1n, NOW - 999));
  expect(computeRefreshDelayMs(entry, POLICY, NOW)).toBe(1_001);
  expect(computeRefreshDelayMs(entry, POLICY, NOW + 1)).toBe(0);
  entry.failedAt = NOW;
  expect(computeRefreshDelayMs(entry, POLICY, NOW + 1)).toBe(1_999);
});
