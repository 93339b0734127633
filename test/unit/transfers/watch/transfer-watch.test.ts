import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import { MAX_CATCH_UP_SECONDS } from "../../../../src/transfers/watch/transfer-watch.js";
import { MAX_WATCHED_TARGETS } from "../../../../src/transfers/watch/transfer-watcher.js";
import { createStatus } from "../../../support/stubs/transfer-fixtures.js";
import { CallerStub, createWatchWorld, hashOf, type WatchWorld } from "./watch-world.js";

let world: WatchWorld;
beforeEach(() => {
  world = createWatchWorld();
});
afterEach(() => world.close());

function createPending(number: number): TransferStatus {
  const sent = { id: hashOf(number), transactionHash: hashOf(10_000 + number), timestamp: 1_700_000_000 };
  const status = createStatus({ sent, delivery: undefined, isFinal: false });
  world.getFacts("optimism").receipts.set(sent.transactionHash, hashOf(1_000));
  world.put(status);
  return status;
}

function createDelivered(number: number, isFinal = false): TransferStatus {
  const { sent } = createPending(number);
  const status = createStatus({ sent, isFinal });
  world.getFacts("arbitrum").receipts.set(String(status.delivery?.transactionHash), hashOf(2_000));
  world.put(status);
  return status;
}

/** Makes followers look again, as when the index has news. */
async function announce(...numbers: number[]): Promise<void> {
  for (const transferId of numbers.map(hashOf)) world.announce(transferId);
  await world.advance(0);
}

/** Opens a watch, and lets it get the present states. */
async function open(...args: Parameters<WatchWorld["open"]>): Promise<CallerStub> {
  const caller = world.open(...args);
  await world.advance(0);
  return caller;
}

/** Returns the token of a watch that has ended after the present states. */
async function readToken(...args: Parameters<WatchWorld["open"]>): Promise<string> {
  const caller = await open(...args);
  caller.watch?.onEnd();
  return caller.token;
}

describe("bookmarks", () => {
  test("come after fifteen seconds of silence at the latest, and after each other", async () => {
    createPending(1);
    const caller = world.open([hashOf(1)]);
    const silences: number[] = [];
    let last = Date.now();
    for (let step = 0; step < 600; step++) {
      const count = caller.events.length;
      await world.advance(100);
      if (caller.events.length === count) continue;
      silences.push(Date.now() - last);
      last = Date.now();
    }
    expect(silences.length).toBeGreaterThanOrEqual(4);
    expect(Math.max(...silences)).toBeLessThanOrEqual(15_000);
    expect(Math.min(...silences.slice(1))).toBeGreaterThanOrEqual(12_000);
  });

  test("repeat a token, but not until it is so old that it says nothing", async () => {
    createPending(1);
    const { events } = world.open([hashOf(1)]);
    await world.advance(5 * 60_000);
    expect(new Set(events.slice(1).map(({ token }) => token)).size).toBe(1);
    await world.advance(15 * 60_000);
    expect(new Set(events.slice(1).map(({ token }) => token)).size).toBeGreaterThan(1);
  });

  test("do not fill the buffer of a caller who does not read", async () => {
    createPending(1);
    const caller = await open([hashOf(1)]);
    caller.isReading = false;
    await world.advance(120_000);
    expect(caller.events).toHaveLength(1);
    caller.isReading = true;
    await world.advance(1_500);
    expect(caller.events).toHaveLength(2);
  });
});

describe("a caller who does not read", () => {
  test("gets the newest states when it reads again, and not those between", async () => {
    for (const number of [1, 2, 3]) createPending(number);
    const caller = await open([1, 2, 3].map(hashOf));
    caller.isReading = false;
    for (const number of [1, 2]) createDelivered(number);
    await announce(1, 2);
    world.forget(createPending(1));
    createPending(1);
    createDelivered(1, true);
    await announce(1);
    expect(caller.events).toHaveLength(3);
    caller.read();
    expect(caller.events.slice(3).map(({ id, state }) => [id, state])).toEqual([
      [hashOf(1), "BONDED"],
      [hashOf(2), "BONDED"],
    ]);
  });

  test("gets the last state before the watch completes", async () => {
    createPending(1);
    const caller = await open([hashOf(1)]);
    caller.isReading = false;
    createDelivered(1, true);
    await announce(1);
    expect(caller.ending).toBe("open");
    caller.read();
    expect([caller.states, caller.ending]).toEqual([["PENDING", "BONDED"], "complete"]);
  });
});

describe("a resumed watch", () => {
  test("sends only what has changed since", async () => {
    for (const number of [1, 2]) createPending(number);
    const first = await open([1, 2].map(hashOf));
    first.watch?.onDrain();
    expect(first.events.map(({ kind }) => kind)).toEqual(["transfer", "transfer", "bookmark"]);

    createDelivered(2);
    const second = await open([2, 1].map(hashOf), { resumeToken: first.token });
    expect(second.events).toMatchObject([{ kind: "transfer", id: hashOf(2), state: "BONDED" }]);
  });

  test("says at once that it is back where nothing has changed", async () => {
    createPending(1);
    const first = world.open([hashOf(1)]);
    await world.advance(0);
    const second = world.open([1].map(hashOf), { resumeToken: first.token });
    await world.advance(0);
    expect(second.events.map(({ kind }) => kind)).toEqual(["bookmark"]);
  });

  test("goes on after the very message whose token it has", async () => {
    for (const number of [1, 2, 3]) createPending(number);
    const first = await open([1, 2, 3].map(hashOf));
    const second = await open([1, 2, 3].map(hashOf), { resumeToken: first.events[1]?.token ?? "" });
    expect(second.events.map(({ id }) => id)).toEqual([hashOf(3)]);
  });

  test("keeps what it knows while the chains do not answer", async () => {
    createPending(1);
    const first = await open([hashOf(1)]);
    world.setDown(true);
    const second = world.open([hashOf(1)], { resumeToken: first.token });
    await world.advance(16_000);
    second.watch?.onDrain();
    world.setDown(false);
    const third = world.open([hashOf(1)], { resumeToken: second.token });
    await world.advance(1_000);
    expect(second.states).toEqual([]);
    expect(third.states).toEqual([]);
  });

  test("sends all states again when its token is older than a day", async () => {
    createPending(1);
    const resumeToken = await readToken([hashOf(1)]);
    await world.advance(25 * 3_600_000);
    const second = await open([hashOf(1)], { resumeToken });
    expect(second.states).toEqual(["PENDING"]);
  });

  test("with details tells within ten seconds that the root has arrived, and that this was undone", async () => {
    createPending(1);
    const [full, basic] = [world.open([hashOf(1)], { isFull: true }), world.open([hashOf(1)])];
    await world.advance(0);
    for (const [substate, count] of [
      ["WITHDRAWABLE", 2],
      ["WITHDRAWABLE", 2],
      ["WAITING_FOR_SETTLEMENT", 3],
    ] as const) {
      world.details.substate = substate;
      await world.advance(11_000);
      expect(full.states).toEqual(Array(count).fill("PENDING"));
    }
    expect(basic.states).toEqual(["PENDING"]);
  });

  test("does not tell older details than another replica has told, and newer ones at once", async () => {
    const older = createDelivered(1);
    const newer = { ...older, isFinal: true };
    // A watch of final transfers alone would be complete.
    createPending(2);
    const resume = (resumeToken: string) => world.open([1, 2].map(hashOf), { resumeToken, isFull: true });
    const resumeToken = await readToken([1, 2].map(hashOf), { isFull: true });
    world.put(newer);
    await announce(1);
    const second = resume(resumeToken);
    await world.advance(0);
    expect(second.states).toEqual(["BONDED"]);
    second.watch?.onEnd();
    world.put(older);
    await announce(1);
    const third = resume(second.token);
    await world.advance(5_000);
    world.put(newer);
    await announce(1);
    await world.advance(60_000);
    expect(third.states).toEqual([]);
  });

  describe.each([
    ["PENDING", () => void createPending(1)],
    [false, (status: TransferStatus) => world.forget(status)],
  ])("of a transfer that has gone back to %s since another replica told of its delivery", (state, goBack) => {
    test("tells so after half a minute", async () => {
      const status = createDelivered(1);
      const resumeToken = await readToken([hashOf(1)]);
      goBack(status);
      const second = world.open([hashOf(1)], { resumeToken });
      await world.advance(MAX_CATCH_UP_SECONDS * 1_000 - 1_000);
      expect(second.states).toEqual([]);
      await world.advance(2_000);
      expect(second.states).toEqual([state]);
    });

    test("tells nothing if this replica has the delivery by then", async () => {
      const status = createDelivered(1);
      const resumeToken = await readToken([hashOf(1)]);
      goBack(status);
      const second = world.open([hashOf(1)], { resumeToken });
      await world.advance(16_000);
      const bookmark = second.token;
      world.put(status);
      await announce(1);
      const third = world.open([hashOf(1)], { resumeToken: bookmark });
      await world.advance(60_000);
      expect([...second.states, ...third.states]).toEqual([]);
    });
  });

  test("refuses the token of another query, and leaves nothing behind", async () => {
    createPending(1);
    const resumeToken = await readToken([hashOf(1)]);
    expect(() => world.open([hashOf(2)], { resumeToken })).toThrow(/resumeToken/);
    expect(() => world.open([hashOf(1)], { resumeToken, isFull: true })).toThrow(/resumeToken/);
    expect(world.watcher.counts()).toEqual({ watches: 0, followed: 0, unknown: 0, accounts: 0 });
  });
});

describe("a watch ends", () => {
  test("with a bookmark when it has lived long enough", async () => {
    world.close();
    world = createWatchWorld({ maxLifetimeMs: 60_000 });
    createPending(1);
    const caller = world.open([hashOf(1)]);
    await world.advance(59_000);
    expect(caller.ending).toBe("open");
    await world.advance(1_500);
    expect(caller.ending).toBe("interrupted");
    expect(caller.events.at(-1)?.kind).toBe("bookmark");
    expect(world.watcher.counts()).toEqual({ watches: 0, followed: 0, unknown: 0, accounts: 0 });
  });

  test("with a bookmark when the server stops, which tells only what was sent", async () => {
    for (const number of [1, 2]) createPending(number);
    const stub = new CallerStub();
    stub.isReading = false;
    const caller = await open([1, 2].map(hashOf), { stub });
    caller.watch?.onDrain();
    expect(caller.events.map(({ kind }) => kind)).toEqual(["bookmark"]);
    const next = await open([1, 2].map(hashOf), { resumeToken: caller.token });
    expect(next.states).toEqual(["PENDING", "PENDING"]);
  });

  test("and what it followed is followed no more, with the last of its watches", async () => {
    createPending(1);
    const [first, second] = [await open([hashOf(1)]), await open([hashOf(1)])];
    first.watch?.onEnd();
    expect(world.watcher.counts()).toMatchObject({ watches: 1, followed: 1 });
    second.watch?.onEnd();
    second.watch?.onEnd();
    expect(world.watcher.counts()).toMatchObject({ watches: 0, followed: 0 });
    const requests = world.countRequests();
    await world.advance(60_000);
    expect(world.countRequests()).toBe(requests);
  });
});

test("one caller can hold half of the watched transfers, and others find places", () => {
  const ids = Array.from({ length: 100 }, (_, index) => hashOf(index));
  const open = (caller: string) => world.open(ids, { caller });
  for (let count = 0; count < MAX_WATCHED_TARGETS / 200; count++) open("me");
  expect(() => open("me")).toThrow(expect.objectContaining({ reason: "RATE_LIMITED" }));
  expect(open("you").ending).toBe("open");
});

test("one caller can open so many watches, and all together so many", () => {
  world.close();
  world = createWatchWorld({ maxWatches: 3, maxWatchesPerCaller: 2 });
  const [first] = [world.open([hashOf(1)]), world.open([hashOf(1)])];
  expect(() => world.open([hashOf(1)])).toThrow(expect.objectContaining({ reason: "RATE_LIMITED" }));
  world.open([hashOf(1)], { caller: "you" });
  expect(() => world.open([hashOf(1)], { caller: "they" })).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
  first?.watch?.onEnd();
  expect(world.open([hashOf(1)], { caller: "they" }).ending).toBe("open");
});

test("equal targets of one watch are sent once", async () => {
  createPending(1);
  const caller = await open([hashOf(1), hashOf(1)]);
  expect(caller.states).toEqual(["PENDING"]);
});
