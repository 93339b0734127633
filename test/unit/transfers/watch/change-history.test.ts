import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Scheduler } from "../../../../src/resilience/scheduler.js";
import type { ChangedTransfer, IndexChangeFeed } from "../../../../src/transfers/index/change-feed.js";
import { ChangeHistory, MAX_HISTORY } from "../../../../src/transfers/watch/change-history.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});

function createChange(sequence: number): ChangedTransfer {
  const text = String(sequence);
  const ids = { transferId: text, transactionHash: text, deliveryHash: undefined };
  return { sequence, nonce: 1, ...ids, account: text, recipient: text };
}

/** A history of a feed with changes 1 to `newest`, of which those up to `lost` are not kept any more. */
function setup(newest: number, pollMs = 1_000) {
  const state = { newest, lost: 0, isDown: false, reads: 0, onWrite: (): void => {} };
  const subscribers = new Set<() => void>();
  const feed: IndexChangeFeed = {
    pollMs,
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
  const onCaughtUp = vi.fn();
  const history = new ChangeHistory(feed, new Scheduler());
  history.addListener({ onChange: ({ transferId }) => seen.push(Number(transferId)), onGap, onCaughtUp });
  history.start();
  onTestFinished(() => history.close());
  return { state, seen, onGap, onCaughtUp, subscribers, history };
}

/** Passes time, and lets what was begun end. */
async function advance(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(0);
}

const numbersFrom = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

test("asks for changes of other processes as often as the index says, and reads none while there are none", async () => {
  const { state, seen, onGap } = setup(0, 100);
  await advance(1_000);
  expect([seen, state.reads]).toEqual([[], 0]);
  state.newest = 1;
  await advance(99);
  expect(seen).toEqual([]);
  await advance(1);
  expect(seen).toEqual([1]);
  expect(onGap).not.toHaveBeenCalled();
});

test("tells what precedes the beginning as far as it is kept, then every change once, at once when written here", async () => {
  const first = 5_000;
  const { state, seen } = setup(first + MAX_HISTORY);
  await advance(0);
  expect(seen).toEqual(numbersFrom(first + 1, first + MAX_HISTORY));
  seen.length = 0;
  state.newest += 1_300;
  state.onWrite();
  state.onWrite();
  await advance(0);
  expect(seen).toEqual(numbersFrom(first + MAX_HISTORY + 1, first + MAX_HISTORY + 1_300));
});

test("tells of a gap and of an index that was built again: earlier positions are invalid", async () => {
  const { state, onGap, history } = setup(10);
  await advance(0);
  const { generation } = history;
  Object.assign(state, { newest: 100, lost: 50 });
  await advance(1_000);
  expect(onGap).toHaveBeenCalledTimes(1);
  state.newest = 3;
  await advance(1_000);
  expect(onGap).toHaveBeenCalledTimes(2);
  expect(history.generation).toBe(generation + 2);
});

test("goes on where it stopped after a time without the index", async () => {
  const { state, seen } = setup(0);
  await advance(0);
  Object.assign(state, { newest: 1, isDown: true });
  await advance(5_000);
  expect(seen).toEqual([]);
  state.isDown = false;
  await advance(1_000);
  expect(seen).toEqual([1]);
});

test("neither polls nor listens after its end", async () => {
  const { subscribers, history } = setup(0);
  await advance(0);
  expect(subscribers.size).toBe(1);
  history.close();
  expect(subscribers.size).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});

test("tells the accounts that have news, of all at first and after a gap", async () => {
  const { state, onCaughtUp } = setup(10);
  await advance(2_000);
  state.newest = 12;
  await advance(1_000);
  Object.assign(state, { newest: 20, lost: 15 });
  await advance(1_000);
  expect(onCaughtUp.mock.calls).toEqual([[undefined], [new Set(["11", "12"])], [undefined]]);
});

test("reads again what was written while it read", async () => {
  const { state, seen, onCaughtUp } = setup(0);
  await advance(0);
  onCaughtUp.mockImplementationOnce(() => {
    state.newest = 2;
    state.onWrite();
  });
  state.newest = 1;
  state.onWrite();
  await advance(0);
  expect(seen).toEqual([1, 2]);
});
