import { describe, expect, test } from "vitest";
import type { BlockHeader } from "../../../../../src/chain/read/chain-reads.js";
import {
  applyCatchUp,
  applyPoll,
  getNextDelayMs,
  INITIAL_SYNC_STATE,
  isFinalizationDue,
  MAX_RETRY_DELAY_MS,
  recordExtension,
  recordFailure,
  recordFinalization,
  recordPage,
  recordSuccess,
  type SyncState,
} from "../../../../../src/transfers/index/sync/sync-state.js";

const block = (number: number, fork = ""): BlockHeader => ({
  number,
  hash: `${number}${fork}`,
  timestamp: number,
});
const caughtUp: SyncState = { ...INITIAL_SYNC_STATE, isCaughtUp: true, indexedLogKeys: new Set(["a"]) };
const indexed = [block(100), block(98)];
const current = [block(100), block(98)];

describe("after a poll", () => {
  test("extends up to the head when every indexed block is still there", () => {
    const transition = applyPoll(caughtUp, { indexed, current, head: block(101) }, 0);
    expect(transition).toEqual({
      state: caughtUp,
      action: { kind: "extend", head: block(101) },
      shouldReportChainBehind: false,
    });
  });

  test("extends also when the head has not moved, since logs may appear late", () => {
    expect(applyPoll(caughtUp, { indexed, current, head: block(100) }, 0).action.kind).toBe("extend");
  });

  test.each<[string, readonly (BlockHeader | undefined)[]]>([
    ["the last block was replaced", [block(100, "b"), block(98)]],
    ["a block below the last was replaced", [block(100), block(98, "b")]],
  ])("rolls back and leaves the caught-up mode when %s", (_, replaced) => {
    const { state, action } = applyPoll(caughtUp, { indexed, current: replaced, head: block(101) }, 0);
    expect(action).toEqual({ kind: "rollBack" });
    expect(state).toEqual({ ...caughtUp, isCaughtUp: false, indexedLogKeys: new Set() });
  });

  test.each<[string, readonly (BlockHeader | undefined)[], BlockHeader | undefined]>([
    ["the endpoint has no head", current, undefined],
    ["the head is behind the index", current, block(99)],
    ["the endpoint lacks an indexed block", [undefined, block(98)], block(101)],
  ])("waits in the caught-up mode when %s", (_, currentBlocks, head) => {
    const { state, action } = applyPoll(caughtUp, { indexed, current: currentBlocks, head }, 0);
    expect(action).toEqual({ kind: "wait" });
    expect(state).toMatchObject({ isCaughtUp: true, indexedLogKeys: new Set(["a"]) });
  });

  test("replaces the log keys when the events are indexed", () => {
    expect(recordExtension(caughtUp, ["b", "c"])).toEqual({ ...caughtUp, indexedLogKeys: new Set(["b", "c"]) });
  });
});

describe("while catching up", () => {
  const lastIndexed = block(100);
  const observation = { lastIndexed, current: block(100), latest: block(500), settled: 90 };

  test("fetches one page of blocks that are not final", () => {
    expect(applyCatchUp(INITIAL_SYNC_STATE, observation, 0)).toEqual({
      state: INITIAL_SYNC_STATE,
      action: { kind: "fetchPage", range: { from: 101, to: 500 } },
      shouldReportChainBehind: false,
    });
  });

  test("fetches final pages first when settled blocks are missing", () => {
    const { action } = applyCatchUp(INITIAL_SYNC_STATE, { ...observation, settled: 400 }, 0);
    expect(action).toEqual({ kind: "fetchFinalPages", to: 400 });
  });

  test("fetches no final pages when the last settled block is indexed", () => {
    const { action } = applyCatchUp(INITIAL_SYNC_STATE, { ...observation, settled: 100 }, 0);
    expect(action.kind).toBe("fetchPage");
  });

  test.each<[string, object]>([
    ["the head is indexed", { latest: block(100) }],
    ["the head is behind the index", { latest: block(99) }],
    ["the endpoint lacks the last indexed block", { current: undefined }],
  ])("is caught up when %s", (_, change) => {
    const { state, action } = applyCatchUp(INITIAL_SYNC_STATE, { ...observation, ...change }, 0);
    expect(action).toEqual({ kind: "wait" });
    expect(state.isCaughtUp).toBe(true);
  });

  test("rolls back when the last indexed block was replaced, even if settled blocks are missing", () => {
    const change = { current: block(100, "b"), settled: 400 };
    const { state, action } = applyCatchUp(INITIAL_SYNC_STATE, { ...observation, ...change }, 0);
    expect(action).toEqual({ kind: "rollBack" });
    expect(state.isCaughtUp).toBe(false);
  });

  test("is caught up with the page that ends at the latest block", () => {
    expect(recordPage(INITIAL_SYNC_STATE, block(499), 500).isCaughtUp).toBe(false);
    expect(recordPage(INITIAL_SYNC_STATE, block(500), 500).isCaughtUp).toBe(true);
  });
});

describe("a chain with fewer blocks than the index", () => {
  const observe = (state: SyncState, head: number | undefined, nowMs: number) =>
    applyPoll(state, { indexed, current, head: head === undefined ? undefined : block(head) }, nowMs);

  test("is reported once after a minute, and again only after it has recovered", () => {
    let state = caughtUp;
    const reportsAt = (head: number | undefined, nowMs: number): boolean => {
      const transition = observe(state, head, nowMs);
      state = transition.state;
      return transition.shouldReportChainBehind;
    };
    expect(reportsAt(99, 1_000)).toBe(false);
    expect(reportsAt(99, 60_999)).toBe(false);
    expect(reportsAt(99, 61_000)).toBe(true);
    expect(reportsAt(98, 500_000)).toBe(false);
    expect(reportsAt(100, 600_000)).toBe(false);
    expect(reportsAt(99, 600_001)).toBe(false);
    expect(reportsAt(99, 660_001)).toBe(true);
  });

  test("stays as it was while an endpoint has no head at all", () => {
    const { state } = observe(caughtUp, 99, 1_000);
    expect(observe(state, undefined, 61_000)).toMatchObject({ state, shouldReportChainBehind: false });
    expect(observe(state, 99, 61_000).shouldReportChainBehind).toBe(true);
  });

  test("is noticed while catching up as well", () => {
    const observation = { lastIndexed: block(100), current: undefined, latest: block(99), settled: 90 };
    const { state } = applyCatchUp(INITIAL_SYNC_STATE, observation, 0);
    expect(state.chainBehind).toEqual({ sinceMs: 0, isReported: false });
    expect(applyCatchUp(state, observation, 60_000).shouldReportChainBehind).toBe(true);
  });
});

describe("finalization", () => {
  test("is due once a minute, and only while the index is caught up", () => {
    expect(isFinalizationDue(INITIAL_SYNC_STATE, 0)).toBe(false);
    expect(isFinalizationDue(caughtUp, 0)).toBe(true);
    const finalized = recordFinalization(caughtUp, 5_000);
    expect(isFinalizationDue(finalized, 64_999)).toBe(false);
    expect(isFinalizationDue(finalized, 65_000)).toBe(true);
  });
});

describe("the delay before the next step", () => {
  test("is zero while pages remain, and the poll interval once the index is caught up", () => {
    expect(getNextDelayMs(INITIAL_SYNC_STATE, 2_000)).toBe(0);
    expect(getNextDelayMs(caughtUp, 2_000)).toBe(2_000);
  });

  test("doubles with every failure up to a minute, and starts again after a success", () => {
    let state = caughtUp;
    const delays = Array.from({ length: 8 }, () => {
      state = recordFailure(state);
      return getNextDelayMs(state, 2_000);
    });
    expect(delays).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, ...Array(3).fill(MAX_RETRY_DELAY_MS)]);
    expect(state.isCaughtUp).toBe(false);
    expect(getNextDelayMs(recordSuccess(state), 2_000)).toBe(0);
  });
});
