import { describe, expect, test } from "vitest";
import type { Chain } from "../../../../src/hop/networks.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import {
  asStalledEntry,
  computeRefreshDelayMs,
  computeRefreshPolicy,
  computeStaleWaitMs,
  createChainStateEntry,
  createJointChainStateEntry,
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

  test("is the strictest of all for what they read jointly, which is known by policy and read set", () => {
    const first = createChainStateEntry("first", READ_SET, { refreshMs: 1_000, maxAgeMs: 9_000, maxStaleMs: 30_000 });
    const second = createChainStateEntry("second", READ_SET, { refreshMs: 3_000, maxAgeMs: 4_000, maxStaleMs: 20_000 });
    const state = createState(1n, NOW);
    const joint = createJointChainStateEntry([first, second], state);
    expect(joint).toMatchObject({
      refreshPolicy: { refreshMs: 1_000, maxAgeMs: 4_000, maxStaleMs: 20_000 },
      parts: [READ_SET, READ_SET],
      state,
    });
    const createKey = (...members: Parameters<typeof createJointChainStateEntry>[0]) =>
      createJointChainStateEntry(members, undefined).key;
    expect(createKey(second, first)).toBe(joint.key);
    expect(createKey(first, first)).not.toBe(joint.key);
    const more = createReadSet({ uintCall: { to: "0x1", data: "0x2" } }) as ReadSet;
    const third = createChainStateEntry("third", more, second.refreshPolicy);
    expect(createKey(first, third)).not.toBe(joint.key);
  });

  test.each([
    [12_000, 24_000, 1_500, 3_000],
    [1_000, 2_000, 1_000, 2_000],
  ])("is at most 1.5 s and 3 s while the chain is stalled: %i and %i ms", (refreshMs, maxAgeMs, ...expected) => {
    const policy = { refreshMs, maxAgeMs, maxStaleMs: 30_000 };
    const entry = createChainStateEntry("key", READ_SET, policy);
    entry.state = createState(1n, NOW);
    const [stalledRefreshMs, stalledMaxAgeMs] = expected;
    const refreshPolicy = { refreshMs: stalledRefreshMs, maxAgeMs: stalledMaxAgeMs, maxStaleMs: 30_000 };
    expect(asStalledEntry(entry)).toEqual({ ...entry, refreshPolicy });
    expect(entry.refreshPolicy).toBe(policy);
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

  test("is 0 after a failed read, until a later read succeeds", () => {
    const state = createState(1n, NOW - 5_000);
    const entry = createEntry(state);
    entry.failedAt = state.readAt;
    expect(computeStaleWaitMs(entry, state, NOW, NOW)).toBe(1_000);
    entry.failedAt = NOW - 1;
    expect(computeStaleWaitMs(entry, state, NOW, NOW)).toBe(0);
  });
});
