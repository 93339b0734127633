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
function setup(newest: number, lookBack?: number) {
  const state = { newest, lost: 0, isDown: false, isOpen: true, reads: 0, onWrite: (): void => {} };
  const subscribers = new Set<() => void>();
  const feed: IndexChangeFeed = {
    readSequence() {
      if (state.isDown) throw new Error("down");
      return state.newest;
    },
    async readChanges(after, limit) {
      state.reads += 1;
      const sequence = Math.min(after + limit, state.newest);
      const changed = Array.from({ length: sequence - after }, (_, index) => createChange(after + index + 1));
      return { sequence, changed, hasMore: sequence < state.newest, isComplete: after >= state.lost };
    },
    subscribe(onWrite) {
      state.onWrite = onWrite;
      subscribers.add(onWrite);
      return () => subscribers.delete(onWrite);
    },
  };
  const seen: number[] = [];
  const onGap = vi.fn();
  const onChanges = (changed: readonly ChangedTransfer[]) => seen.push(...changed.map(({ transferId }) => +transferId));
  const onCaughtUp = vi.fn();
  const feeds = { current: feed };
  const reader = createIndexChangeReader({
    getFeed: () => (state.isOpen ? feeds.current : undefined),
    onChanges,
    onGap,
    onCaughtUp,
    ...(lookBack === undefined ? {} : { lookBack }),
  });
  return { state, seen, onGap, onCaughtUp, feed, feeds, subscribers, reader };
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

test("waits for the index to be open, and leaves one that is replaced", async () => {
  const { state, seen, onGap, feed, feeds, subscribers, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  expect(subscribers.size).toBe(1);
  state.isOpen = false;
  state.newest = 12;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(seen).toEqual([]);
  state.isOpen = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(seen).toEqual([11, 12]);
  const [before] = subscribers;
  const subscribe = vi.spyOn(feed, "subscribe");
  feeds.current = { ...feed };
  await vi.advanceTimersByTimeAsync(5_000);
  expect(subscribers.size).toBe(1);
  expect(subscribers.has(before ?? (() => {}))).toBe(false);
  expect(subscribe).toHaveBeenCalledTimes(1);
  expect([seen, onGap.mock.calls]).toEqual([[11, 12], []]);
  reader.close();
  expect(subscribers.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

test("reads no changes while there are none, and tells each time how far it has come", async () => {
  const { state, onCaughtUp, onGap, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(onCaughtUp.mock.calls).toEqual([[10], [10], [10]]);
  expect(state.reads).toBe(0);
  state.newest = 510;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(state.reads).toBe(1);
  state.newest = 1_011;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(state.reads).toBe(3);
  expect(onCaughtUp.mock.calls.slice(3)).toEqual([[510], [1_011]]);
  expect(onGap).not.toHaveBeenCalled();
  reader.close();
});

test.each([
  [4, [7, 8, 9, 10]],
  [100, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
])("begins %i changes before the newest", async (lookBack, numbers) => {
  const { seen, reader } = setup(10, lookBack);
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual(numbers);
  reader.close();
});

test("can be closed before the index was ever open", () => {
  createIndexChangeReader({ getFeed: () => undefined, onChanges: () => {}, onGap: () => {} }).close();
  expect(vi.getTimerCount()).toBe(0);
});

test("tells changes once that are announced twice", async () => {
  const { state, seen, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  state.newest = 11;
  state.onWrite();
  state.onWrite();
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual([11]);
  reader.close();
});

test("reads again what was written while it read", async () => {
  const { state, seen, onCaughtUp, reader } = setup(10);
  await vi.advanceTimersByTimeAsync(0);
  onCaughtUp.mockImplementationOnce(() => {
    state.newest = 12;
    state.onWrite();
  });
  state.newest = 11;
  state.onWrite();
  await vi.advanceTimersByTimeAsync(0);
  expect(seen).toEqual([11, 12]);
  expect(onCaughtUp.mock.calls).toEqual([[10], [11], [12]]);
  reader.close();
});
