import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChangedTransfer, IndexChangeFeed } from "../../../../src/transfers/index/store/changes/index-changes.js";
import { createIndexChangeReader } from "../../../../src/transfers/watch/index-change-reader.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function createChange(number: number): ChangedTransfer {
  const text = String(number);
  return {
    sequence: number,
    nonce: 1,
    transferId: text,
    transactionHash: text,
    deliveryHash: undefined,
    account: text,
    recipient: text,
  };
}

/** A feed with changes 1 to `newest`, of which those up to `lost` are not kept any more. */
function setup(newest: number) {
  const state = { newest, lost: 0, isDown: false, onWrite: (): void => {} };
  const feed: IndexChangeFeed = {
    readSequence() {
      if (state.isDown) throw new Error("down");
      return state.newest;
    },
    async readChanges(after, limit) {
      const sequence = Math.min(after + limit, state.newest);
      const changed = Array.from({ length: sequence - after }, (_, index) => createChange(after + index + 1));
      return { sequence, changed, hasMore: sequence < state.newest, isComplete: after >= state.lost };
    },
    subscribe(onWrite) {
      state.onWrite = onWrite;
      return () => {};
    },
  };
  const seen: number[] = [];
  const onGap = vi.fn();
  const onChanges = (changed: readonly ChangedTransfer[]) => seen.push(...changed.map(({ transferId }) => +transferId));
  const reader = createIndexChangeReader({ getFeed: () => feed, onChanges, onGap });
  return { state, seen, onGap, reader };
}

test("tells every change since it began, once, and at once when this process wrote them", async () => {
  const { state, seen, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual([]);
  state.newest = 1_300;
  state.onWrite();
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual(Array.from({ length: 1_290 }, (_, index) => index + 11));
  reader.close();
});

test("tells changes of other processes within a second", async () => {
  const { state, seen, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  state.newest = 12;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(seen).toEqual([11, 12]);
  reader.close();
});

test("tells of a gap, and of an index that was built again", async () => {
  const { state, onGap, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  Object.assign(state, { newest: 100, lost: 50 });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(onGap).toHaveBeenCalledTimes(1);
  state.newest = 3;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(onGap).toHaveBeenCalledTimes(2);
  reader.close();
});

test("goes on where it stopped after a time without the index", async () => {
  const { state, seen, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  Object.assign(state, { newest: 11, isDown: true });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(seen).toEqual([]);
  state.isDown = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(seen).toEqual([11]);
  reader.close();
});
