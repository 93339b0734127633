import { copyFileSync } from "node:fs";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../../../src/errors.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import type { IndexChangeFeed } from "../../../../src/transfers/index/change-feed.js";
import { encodeCctpKey } from "../../../../src/transfers/index/correlation-key.js";
import { INITIAL_TRANSFER_COUNT } from "../../../../src/transfers/watch/watched-accounts.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { useTestIndexes } from "../../../support/index/open-index.js";
import { addressFromName } from "../index/support/hop-events.js";
import { ARBITRUM_CHAIN_ID, bytesFromName, createSendRow, OPTIMISM_CHAIN_ID } from "../index/support/index-rows.js";
import {
  createAccountWorld,
  describeEvents,
  RECIPIENT,
  SENDER,
  send,
  settle,
  type TestIndex,
  writeTestIndex,
} from "./account-world.js";
import { CallerStub } from "./watch-world.js";

const indexes = useTestIndexes();
let file: string;
let source: TestIndex;
let world: ReturnType<typeof createAccountWorld>;

beforeEach(async () => {
  vi.useFakeTimers({ now: 1_800_000_000_000, toFake: ["setTimeout", "clearTimeout", "Date"] });
  file = indexes.createPath();
  ({ source, world } = await openWorld(file));
});

/** Opens the index as a process does that serves watches. */
/** @param replaceFeed Default: the feed of the index */
async function openWorld(path: string, replaceFeed: (feed: IndexChangeFeed) => IndexChangeFeed = (feed) => feed) {
  const opened = await writeTestIndex(await indexes.open(path));
  const created = createAccountWorld(opened.index, replaceFeed(opened.index.changes));
  closeAfterTest(created.watcher);
  return { source: opened, world: created };
}

const NAMES = ["a", "b", "c", "d"];
const toTexts = (caller: CallerStub): string[] => describeEvents(caller, NAMES);

async function open(...args: Parameters<typeof world.open>): Promise<CallerStub> {
  const caller = world.open(...args);
  await settle();
  return caller;
}

describe("a watch of an account", () => {
  test("gets the present states, a bookmark, then new transfers and every change", async () => {
    await source.send(2, send("a"), send("b"));
    await source.deliver(2, "b");
    const caller = await open();
    expect(describeEvents(caller, NAMES, true).toSorted()).toEqual(["a PENDING", "b BONDED", "bookmark"]);
    expect(caller.events.at(-1)?.kind).toBe("bookmark");

    await source.send(2, send("c"));
    await source.deliver(2, "a");
    expect(toTexts(caller).slice(2)).toEqual(["c PENDING", "a BONDED"]);
    expect(caller.ending).toBe("open");
  });

  test("is of the recipient as of the sender, and of nobody else", async () => {
    const recipient = await open(RECIPIENT);
    const other = await open(addressFromName("other"));
    await source.send(2, send("a"));
    expect(toTexts(recipient)).toEqual(["a PENDING"]);
    expect(describeEvents(other, NAMES, true)).toEqual(["bookmark"]);
  });

  test("gets a change of another process within a second", async () => {
    const caller = await open();
    const { source: otherProcess } = await openWorld(file);
    await otherProcess.send(2, send("a"));
    expect(toTexts(caller)).toEqual([]);
    await world.advance(1_000);
    expect(toTexts(caller)).toEqual(["a PENDING"]);
  });

  test("gets the older state after a reorg, unknown when the transfer is gone, and its state when it is back", async () => {
    const caller = await open();
    await source.send(2, send("a"));
    await source.deliver(2, "a");
    await source.rollBack(ARBITRUM_CHAIN_ID, 1);
    await source.rollBack(OPTIMISM_CHAIN_ID, 1);
    await source.send(3, send("a"));
    const states = toTexts(caller);
    expect(states.slice(-4)).toEqual(["a BONDED", "a PENDING", "a unknown", "a PENDING"]);
  });

  test("gets nothing when only the finality of a block has changed, unless it has details", async () => {
    const row = send("a");
    await source.send(2, row);
    const [basic, full] = [await open(), await open(SENDER, { isFull: true })];
    await source.finalizeSource(2, row);
    expect(toTexts(basic)).toEqual(["a PENDING"]);
    expect(toTexts(full)).toEqual(["a PENDING", "a PENDING"]);
  });

  test("with details gets a transfer again when its root arrives, and when that is undone", async () => {
    await source.send(2, send("a"), send("b"));
    await source.deliver(2, "b");
    const [full, basic] = [await open(SENDER, { isFull: true }), await open(SENDER)];
    const { length } = toTexts(full);
    for (const [substate, count] of [
      ["WITHDRAWABLE", 1],
      ["WITHDRAWABLE", 1],
      ["WAITING_FOR_SETTLEMENT", 2],
    ] as const) {
      world.substate = substate;
      await world.advance(122_000);
      await world.advance(1_000);
      expect(toTexts(full).slice(length)).toEqual(Array(count).fill("a PENDING"));
    }
    expect(toTexts(basic)).toHaveLength(2);
    expect(describeEvents(full, NAMES, true).filter((text) => text === "b BONDED")).toHaveLength(1);
  });

  test("with details gets all that can be read again, and changes of the index between them", async () => {
    await source.send(2, send("a"), send("b"), send("c"));
    const caller = await open(SENDER, { isFull: true });
    const [first = "", second = "", third = ""] = toTexts(caller);
    world.unreadable.add(caller.events[0]?.id ?? "");
    world.substate = "WITHDRAWABLE";
    await world.advance(61_000);
    const release = world.hold();
    await world.advance(61_000);
    await source.send(3, send("d"));
    release();
    await settle();
    expect(toTexts(caller).slice(3)).toEqual(["d PENDING", second, third]);
    world.unreadable.clear();
    await world.advance(122_000);
    expect(toTexts(caller).slice(6)).toEqual([first]);
  });

  test("with details is read again only while a transfer waits, and after the index could not be read", async () => {
    await source.send(2, send("a"));
    const caller = await open(SENDER, { isFull: true });
    world.isDown = true;
    await world.advance(61_000);
    world.isDown = false;
    world.substate = "WITHDRAWABLE";
    await world.advance(122_000);
    expect(toTexts(caller)).toEqual(["a PENDING", "a PENDING"]);
    await source.deliver(2, "a");
    await world.advance(122_000);
    const { lists, finds } = world;
    await world.advance(600_000);
    expect([world.lists, world.finds]).toEqual([lists, finds]);
    expect(toTexts(caller)).toEqual(["a PENDING", "a PENDING", "a BONDED"]);
    await source.send(3, send("b"));
    world.substate = "WAITING_FOR_SETTLEMENT";
    await world.advance(122_000);
    expect(toTexts(caller).slice(3)).toEqual(["b PENDING", "b PENDING"]);
  });

  test.each([
    ["without details", "l2", bytesFromName("a"), false],
    ["of transfers that are not settled by roots", "cctp", encodeCctpKey(2, 77n) ?? Buffer.alloc(0), true],
  ] as const)("%s is not read again", async (_, kind, key, isFull) => {
    await source.send(2, createSendRow(key, "sends", { kind }));
    const caller = await open(SENDER, { isFull });
    if (isFull) await world.advance(61_000);
    const { lists, finds } = world;
    await world.advance(600_000);
    expect([world.lists, world.finds]).toEqual([lists, finds]);
    expect(caller.states).toHaveLength(1);
  });

  test("with details that is resumed gets what has changed on the chains alone", async () => {
    await source.send(2, send("a"));
    const first = await open(SENDER, { isFull: true });
    const resumed = await open(SENDER, { isFull: true, resumeToken: first.token });
    expect(toTexts(resumed)).toEqual([]);
    world.substate = "WITHDRAWABLE";
    await world.advance(122_000);
    expect(toTexts(resumed)).toContain("a PENDING");
  });

  test("begins with all that can change and the newest of the others", async () => {
    const count = INITIAL_TRANSFER_COUNT + 30;
    const rows = Array.from({ length: count }, (_, index) => ({
      ...createSendRow(bytesFromName(`t${index}`), `sends t${index}`),
      timestamp: 1_700_000_000 + index,
    }));
    await source.send(2, ...rows);
    await source.finalizeSource(2, ...rows);
    const delivered = rows.map((_, index) => `t${index}`).filter((_, index) => index !== 5);
    await source.deliver(2, ...delivered);
    await source.finalizeDestination(2, ...delivered);
    const caller = await open();
    expect(caller.states).toHaveLength(INITIAL_TRANSFER_COUNT + 1);
    expect(caller.states.filter((state) => state === "PENDING")).toHaveLength(1);
  });

  test("of transfers that share transaction and ID gets each", async () => {
    const l1 = (to: string) =>
      createSendRow(bytesFromName("l1"), "sends l1", {
        ...{ kind: "l1", chain_id: 1, account: Buffer.from(SENDER.slice(2), "hex") },
        recipient: Buffer.from(addressFromName(to).slice(2), "hex"),
      });
    await source.initialize([1]);
    await source.sendFrom(1, 2, l1("to"), l1("other"));
    const [sender, other] = [await open(), await open(addressFromName("other"))];
    expect(sender.states).toEqual(["PENDING", "PENDING"]);
    expect(other.states).toEqual(["PENDING"]);
  });

  test("ends after its life and at a drain, both after a bookmark", async () => {
    const first = await open();
    first.watch?.onDrain();
    expect([describeEvents(first, NAMES, true), first.ending]).toEqual([["bookmark", "bookmark"], "interrupted"]);
    const second = await open();
    await world.advance(3_600_000);
    expect([second.events.at(-1)?.kind, second.ending]).toEqual(["bookmark", "interrupted"]);
    expect(world.watcher.counts()).toMatchObject({ watches: 0, accounts: 0 });
  });

  test("needs an index of its network", () => {
    const open = () => world.open(SENDER, { network: getNetwork("goerli") });
    expect(open).toThrow(expect.objectContaining({ reason: "INDEX_REQUIRED" }));
    expect(world.watcher.counts().watches).toBe(0);
  });
});

describe("a resumed watch of an account", () => {
  test("gets what has changed since, in any process that has the index", async () => {
    await source.send(2, send("a"), send("b"));
    const first = await open();
    first.watch?.onEnd();
    await source.send(2, send("c"));
    await source.deliver(2, "a");
    const { world: other } = await openWorld(file);
    const second = other.open(SENDER, { resumeToken: first.token });
    await settle();
    expect(toTexts(second)).toEqual(["c PENDING", "a BONDED"]);
    const third = await open(SENDER, { resumeToken: second.token });
    expect(toTexts(third)).toEqual([]);
    expect(third.events.map(({ kind }) => kind)).toEqual(["bookmark"]);
  });

  test("goes on after the very message whose token it has", async () => {
    await source.send(2, send("a"));
    const first = await open();
    await source.send(2, send("b"), send("c"));
    const { token } = first.events.find(({ id }) => id === `0x${bytesFromName("b").toString("hex")}`) ?? { token: "" };
    expect(toTexts(await open(SENDER, { resumeToken: token }))).toEqual(["c PENDING"]);
  });

  test("that got only a part of the present states gets all of them", async () => {
    await source.send(2, send("a"), send("b"));
    const first = await open();
    expect(toTexts(await open(SENDER, { resumeToken: first.events[0]?.token ?? "" }))).toHaveLength(2);
  });

  test("gets all present states of an index that was restored and went on differently", async () => {
    await source.send(2, send("a"));
    for (const part of ["", "-wal"]) copyFileSync(`${file}${part}`, `${file}-copy${part}`);
    await source.send(2, send("b"));
    const first = await open();
    const { source: copy, world: copyWorld } = await openWorld(`${file}-copy`);
    await copy.send(2, send("c"));
    await copy.send(3, send("d"));
    const second = copyWorld.open(SENDER, { resumeToken: first.token });
    await settle();
    expect(toTexts(second).toSorted()).toEqual(["a PENDING", "c PENDING", "d PENDING"]);
  });

  test("gets all present states when the changes since are not kept", async () => {
    await source.send(2, send("a"));
    const first = await open();
    const { world: other } = await openWorld(file, (feed) => ({
      pollMs: 1_000,
      subscribe: (onWrite) => feed.subscribe(onWrite),
      readSequence: () => 300_000,
      readChanges: () => ({ sequence: 300_000, changed: [], hasMore: false, isComplete: false }),
    }));
    const second = other.open(SENDER, { resumeToken: first.token });
    await settle();
    expect(toTexts(second)).toEqual(["a PENDING"]);
  });

  describe("in a process whose standby lags behind", () => {
    /** Opens a process that sees the changes up to a sequence; resumes what another one has told of a change after that. */
    async function resumeBehind() {
      await source.send(2, send("a"));
      const seen = { until: await source.index.changes.readSequence() };
      const { world: other } = await openWorld(file, (feed) => ({
        pollMs: 1_000,
        readSequence: () => seen.until,
        async readChanges(after, limit) {
          const changes = await feed.readChanges(after, Math.min(limit, seen.until - after));
          return { ...changes, hasMore: changes.sequence < seen.until };
        },
        subscribe: () => () => {},
      }));
      await source.send(3, send("b"));
      const first = await open();
      const second = other.open(SENDER, { resumeToken: first.token });
      await settle();
      const pass = async (seconds: number): Promise<void> => {
        for (let second = 0; second < seconds; second++) {
          await other.advance(1_000);
        }
      };
      return { first, second, seen, pass };
    }

    test("waits until that has what the caller knows, and repeats nothing", async () => {
      const { first, second, seen, pass } = await resumeBehind();
      await pass(20);
      expect(toTexts(second)).toEqual([]);
      expect(second.token).toBe(first.token);
      await source.send(4, send("c"));
      seen.until = await source.index.changes.readSequence();
      await pass(2);
      expect(toTexts(second)).toEqual(["c PENDING"]);
    });

    test("gets all present states if that never has it", async () => {
      const { second, pass } = await resumeBehind();
      await pass(70);
      expect(toTexts(second).toSorted()).toEqual(["a PENDING", "b PENDING"]);
    });
  });

  test.each(["", "x", "AAAA"])("rejects a damaged token and that of another account: %j", async (suffix) => {
    const first = await open();
    const resumeToken = suffix === "" ? first.token : `${first.token.slice(0, -4)}${suffix}`;
    const account = suffix === "" ? RECIPIENT : SENDER;
    expect(() => world.open(account, { resumeToken })).toThrow(ServiceError);
    expect(world.watcher.counts().watches).toBe(1);
  });
});

describe("a caller who does not read", () => {
  test("gets the newest state of each transfer when it reads again", async () => {
    const caller = await open();
    caller.isReading = false;
    await source.send(2, send("a"), send("b"));
    await source.deliver(2, "a");
    expect(toTexts(caller)).toEqual([]);
    caller.read();
    await settle();
    expect(toTexts(caller)).toEqual(["b PENDING", "a BONDED"]);
  });

  test("gets the present states one by one", async () => {
    await source.send(2, send("a"), send("b"), send("c"));
    const caller = new CallerStub();
    caller.send = (...args) => {
      CallerStub.prototype.send.apply(caller, args);
      caller.isReading = false;
    };
    await open(SENDER, { stub: caller });
    for (let sent = 1; sent <= 3; sent++) {
      expect(caller.states).toHaveLength(sent);
      caller.read();
      await settle();
    }
    expect(caller.states).toHaveLength(3);
  });
});

test("a thousand watches of one account read the index as often as one", async () => {
  await source.send(2, send("a"), send("b"));
  const callers = Array.from({ length: 1_000 }, (_, index) => world.open(SENDER, { caller: `caller ${index}` }));
  await settle();
  expect([world.lists, world.finds, world.presented]).toEqual([1, 2, 2]);
  await source.deliver(2, "a");
  expect(callers.every((caller) => toTexts(caller).at(-1) === "a BONDED")).toBe(true);
  expect([world.lists, world.finds, world.presented]).toEqual([1, 3, 3]);
});

test("a read belongs to all who wait for it, and ends with the last of them", async () => {
  await source.send(2, send("a"));
  const release = world.hold();
  const [first, second] = [await open(SENDER, { caller: "first" }), await open(SENDER, { caller: "second" })];
  const listWaiting = () => world.reads.map((waiters) => [...waiters]);
  expect(listWaiting()).toEqual([["first", "second"]]);
  first.watch?.onEnd();
  await settle();
  expect([listWaiting(), world.reads[0]?.signal.aborted]).toEqual([[["second"]], false]);
  second.watch?.onEnd();
  await settle();
  expect([listWaiting(), world.reads[0]?.signal.aborted]).toEqual([[[]], true]);
  const third = await open(SENDER, { caller: "third" });
  release();
  await settle();
  expect([toTexts(first), toTexts(second), toTexts(third)]).toEqual([[], [], ["a PENDING"]]);
});

test("a transfer that changes while it is read is read again", async () => {
  const caller = await open();
  const release = world.hold();
  await source.send(2, send("a"));
  await source.deliver(2, "a");
  release();
  await settle();
  expect(toTexts(caller)).toEqual(["a PENDING", "a BONDED"]);
});

test("an index that cannot be read is asked again later, while bookmarks go on", async () => {
  await source.send(2, send("a"));
  world.isDown = true;
  const caller = await open();
  await world.advance(16_000);
  expect(describeEvents(caller, NAMES, true)).toEqual(["bookmark"]);
  expect(world.lists).toBeLessThan(8);
  world.isDown = false;
  for (let second = 0; second < 30; second++) await world.advance(1_000);
  expect(toTexts(caller)).toEqual(["a PENDING"]);
});
