import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ContractRegistry } from "../../../../src/hop/contract-registry.js";
import type { TransferStatus } from "../../../../src/transfers/status.js";
import {
  createAppearanceQuestion,
  createDeliveryQuestion,
  type Question,
} from "../../../../src/transfers/watch/chain-questions.js";
import { MAX_UNKNOWN } from "../../../../src/transfers/watch/followers.js";
import {
  createSentTransfer,
  createStatus,
  defaultDelivery,
  getChain,
} from "../../../support/stubs/transfer-fixtures.js";
import { type CallerStub, createWatchWorld, hashOf, mainnet, type WatchWorld } from "./watch-world.js";

const contracts = new ContractRegistry(mainnet);
let world: WatchWorld;
beforeEach(() => {
  world = createWatchWorld();
});
afterEach(() => world.close());

interface Setup {
  readonly number?: number;
  readonly isDelivered?: boolean;
  readonly isFinal?: boolean;
}

/** Creates a transfer that was sent now, from optimism to arbitrum, and that the chains know. */
function createTransfer({ number = 1, isDelivered = false, isFinal = false }: Setup = {}): TransferStatus {
  const id = hashOf(number);
  const transactionHash = hashOf(10_000 + number);
  const sent = createSentTransfer();
  const status = createStatus({
    sent: { id, transactionHash, timestamp: 1_700_000_000, event: { ...sent.event, transferId: id } },
    delivery: isDelivered ? { ...defaultDelivery, transactionHash: hashOf(20_000 + number) } : undefined,
    isFinal,
  });
  world.getFacts("optimism").receipts.set(status.sent.transactionHash, hashOf(1_000));
  if (isDelivered) world.getFacts("arbitrum").receipts.set(hashOf(20_000 + number), hashOf(2_000));
  world.put(status);
  return status;
}

/** Returns the log that answers a question. */
function toLog(question: Question | undefined) {
  if (question?.kind !== "log") throw new Error("no log");
  return { address: String(question.address[0]), topics: question.topics.map(String) };
}

/** Delivers a pending transfer on the chains, and returns what lookups find from now on. */
function deliver(status: TransferStatus): TransferStatus {
  const question = createDeliveryQuestion(status.sent, contracts);
  if (question?.kind !== "flag") throw new Error("no flag");
  world.getFacts("arbitrum").flags.add(question.call.data);
  return createTransfer({ number: Number(status.sent.id), isDelivered: true });
}

/** Opens a watch of a transfer, and lets it get the present state. */
async function open({ sent }: TransferStatus, options?: Parameters<WatchWorld["open"]>[1]): Promise<CallerStub> {
  const caller = world.open([sent.id], options);
  await world.advance(2_000);
  return caller;
}

describe("a watch of a pending transfer", () => {
  test("gets the state at once, and the delivery one poll of the destination later", async () => {
    const status = createTransfer();
    const caller = world.open([status.sent.id]);
    await world.advance(0);
    expect(caller.states).toEqual(["PENDING"]);

    deliver(status);
    await world.advance(2_000);
    expect(caller.states).toEqual(["PENDING", "BONDED"]);
  });

  test("gets a change that the index tells of while it is found", async () => {
    world = createWatchWorld();
    const { sent } = createTransfer();
    const release = world.holdLookups();
    const caller = world.open([sent.id]);
    await world.advance(0);
    createTransfer({ isDelivered: true });
    world.announce(sent.id);
    release();
    await world.advance(0);
    expect(caller.states).toEqual(["PENDING", "BONDED"]);
  });

  test("gets a change that the index tells of while an earlier one is read", async () => {
    world = createWatchWorld();
    const { sent } = createTransfer();
    const caller = world.open([sent.id]);
    await world.advance(0);
    const release = world.holdLookups();
    world.announce(sent.id);
    await world.advance(0);
    createTransfer({ isDelivered: true });
    world.announce(sent.id);
    release();
    await world.advance(0);
    expect(caller.states).toEqual(["PENDING", "BONDED"]);
  });

  test("costs one batch per chain and poll, however many watch it, and no lookup", async () => {
    const transfers = Array.from({ length: 100 }, (_, index) => createTransfer({ number: 100 + index }));
    const measure = async (watches: number): Promise<number> => {
      const callers = Array.from({ length: watches }, (_, index) => world.open([hashOf(100 + (index % 100))]));
      await world.advance(0);
      const before = world.countRequests();
      await world.advance(60_000);
      for (const { watch } of callers) watch?.onEnd();
      return world.countRequests() - before;
    };
    const ofHundred = await measure(100);
    const lookups = world.countLookups();
    expect(ofHundred).toBeGreaterThan(10);
    // Optimism and Arbitrum, every two seconds.
    expect(ofHundred).toBeLessThanOrEqual(62);
    expect(await measure(10_000)).toBe(ofHundred);
    expect(world.countLookups()).toBe(lookups + transfers.length);
  });

  test("is polled more and more slowly after ten minutes", async () => {
    const { sent } = createTransfer();
    world.open([sent.id]);
    const countPolls = async (): Promise<number> => {
      const before = world.getFacts("arbitrum").batches;
      await world.advance(60_000);
      return world.getFacts("arbitrum").batches - before;
    };
    const first = await countPolls();
    await world.advance(30 * 60_000);
    const later = await countPolls();
    expect(first).toBeGreaterThanOrEqual(29);
    expect(later).toBeLessThanOrEqual(3);
    expect(later).toBeGreaterThanOrEqual(1);
  });

  test("finds a completion from ethereum by its log", async () => {
    const sent = createSentTransfer({ kind: "l1", source: getChain("ethereum"), timestamp: 1_700_000_000 });
    const l1Sent = { ...sent, id: sent.transactionHash, event: { ...sent.event, relayer: `0x${"ab".repeat(20)}` } };
    const pending = createStatus({ sent: l1Sent, delivery: undefined, isFinal: false });
    world.getFacts("ethereum").receipts.set(sent.transactionHash, hashOf(1_000));
    world.put(pending);
    const caller = world.open([l1Sent.id]);
    await world.advance(4_000);
    expect(caller.states).toEqual(["PENDING"]);

    world.getFacts("arbitrum").logs = [toLog(createDeliveryQuestion(l1Sent, contracts))];
    world.put(createStatus({ sent: l1Sent, isFinal: false }));
    await world.advance(2_000);
    expect(caller.states).toEqual(["PENDING", "BONDED"]);
  });
});

describe("a delivered transfer", () => {
  test("is final when both blocks are, after one more lookup; then the watch is complete", async () => {
    const status = createTransfer({ isDelivered: true });
    const caller = world.open([status.sent.id]);
    await world.advance(20_000);
    expect(caller.ending).toBe("open");

    world.finalChains.add("optimism");
    await world.advance(20_000);
    expect(caller.ending).toBe("open");

    createTransfer({ isDelivered: true, isFinal: true });
    world.finalChains.add("arbitrum");
    await world.advance(5_000);
    expect(caller.ending).toBe("complete");
    expect(caller.states).toEqual(["BONDED"]);
  });

  test("ends the watch at once when it was final before, and its token ends the next one without a lookup", async () => {
    const status = createTransfer({ isDelivered: true, isFinal: true });
    const first = world.open([status.sent.id]);
    await world.advance(0);
    expect([first.states, first.ending]).toEqual([["BONDED"], "complete"]);

    const lookups = world.countLookups();
    const second = world.open([status.sent.id], { resumeToken: first.token });
    expect([second.events, second.ending]).toEqual([[], "complete"]);
    expect(world.countLookups()).toBe(lookups);
  });

  test("goes back when a reorg removes its delivery, after two polls that miss it", async () => {
    const status = createTransfer({ isDelivered: true });
    const caller = await open(status);
    world.getFacts("arbitrum").receipts.delete(String(status.delivery?.transactionHash));
    world.put(createTransfer());
    await world.advance(2_000);
    expect(caller.states).toEqual(["BONDED"]);
    await world.advance(2_000);
    expect(caller.states).toEqual(["BONDED", "PENDING"]);
  });

  test("does not go back because an endpoint that lags has neither block nor transaction", async () => {
    const status = createTransfer({ isDelivered: true });
    const caller = await open(status);
    const arbitrum = world.getFacts("arbitrum");
    arbitrum.receipts.clear();
    arbitrum.head = 1_999;
    world.put(createTransfer());
    await world.advance(60_000);
    expect(caller.states).toEqual(["BONDED"]);
  });

  test("is unknown again when a reorg removes its sending transaction", async () => {
    const status = createTransfer();
    const caller = await open(status);
    world.getFacts("optimism").receipts.clear();
    world.forget(status);
    await world.advance(4_000);
    expect(caller.states).toEqual(["PENDING", false]);
    createTransfer();
    // The ID is looked for in the logs of its source.
    const question = createAppearanceQuestion({ kind: "id", value: status.sent.id }, getChain("optimism"), contracts);
    world.getFacts("optimism").logs = [toLog(question)];
    await world.advance(2_000);
    expect(caller.states).toEqual(["PENDING", false, "PENDING"]);
  });
});

describe("an unknown transfer", () => {
  test("is watched by its hash until a chain has it", async () => {
    const hash = hashOf(10_001);
    const caller = world.open([], { hashes: [hash] });
    await world.advance(10_000);
    expect(caller.states).toEqual([false]);
    const lookups = world.countLookups();
    expect(lookups).toBe(1);

    createTransfer();
    await world.advance(2_000);
    expect(caller.states).toEqual([false, "PENDING"]);
  });

  test("is given up after ten minutes, which go on where an earlier watch stopped", async () => {
    const first = world.open([], { hashes: [hashOf(1)] });
    await world.advance(5 * 60_000);
    first.watch?.onDrain();
    expect([first.states, first.ending]).toEqual([[false], "interrupted"]);

    const second = world.open([], { hashes: [hashOf(1)], resumeToken: first.token });
    await world.advance(4 * 60_000);
    expect(second.states).toEqual([]);
    await world.advance(70_000);
    expect([second.states, second.ending]).toEqual([[true], "complete"]);
    expect(world.followers.counts()).toEqual({ followed: 0, unknown: 0 });
  });

  test("is refused with OVERLOADED when too many are watched, and one caller gets half of the places", async () => {
    const open = (from: number, count: number, caller: string) =>
      Array.from({ length: count }, (_, index) => world.open([], { hashes: [hashOf(from + index)], caller }));
    const mine = open(0, MAX_UNKNOWN, "me");
    await world.advance(0);
    expect(world.followers.counts().unknown).toBe(MAX_UNKNOWN / 2);
    const refused = mine.filter(({ ending }) => ending !== "open");
    expect(refused).toHaveLength(MAX_UNKNOWN / 2);
    expect(refused[0]?.ending).toMatchObject({ reason: "OVERLOADED" });

    const [other] = open(50_000, 1, "you");
    await world.advance(0);
    expect(other?.states).toEqual([false]);
    for (const each of [...mine, other]) each?.watch?.onEnd();
    expect(world.followers.counts()).toEqual({ followed: 0, unknown: 0 });
  });

  test("takes the place of any who watches it, also of those who came later", async () => {
    const mine = Array.from({ length: MAX_UNKNOWN / 2 }, (_, index) => world.open([], { hashes: [hashOf(index)] }));
    await world.advance(0);
    const shared = world.open([], { hashes: [hashOf(90_000)] });
    const other = world.open([], { hashes: [hashOf(90_000)], caller: "you" });
    await world.advance(0);
    expect([mine.at(-1)?.states, shared.states, other.states]).toEqual([[false], [false], [false]]);
  });

  test("is looked for on the chain of the hint in every poll, on the others less often", async () => {
    world.open([], { hashes: [hashOf(1)], likelySource: "optimism" });
    await world.advance(60_000);
    expect(world.getFacts("optimism").batches).toBeGreaterThanOrEqual(29);
    expect(world.getFacts("polygon").batches).toBeLessThanOrEqual(7);
    expect(world.getFacts("polygon").batches).toBeGreaterThanOrEqual(5);
  });
});

describe("while the chains do not answer", () => {
  test("a new watch gets bookmarks, and the state within five seconds once they do", async () => {
    const status = createTransfer();
    world.setDown(true);
    const caller = world.open([status.sent.id]);
    await world.advance(60_000);
    expect(new Set(caller.events.map(({ kind }) => kind))).toEqual(new Set(["bookmark"]));
    world.setDown(false);
    await world.advance(5_000);
    expect(caller.states).toEqual(["PENDING"]);
  });

  test("a watch keeps its state, and gets the new one within five seconds once they do", async () => {
    const status = createTransfer();
    const caller = await open(status);
    world.setDown(true);
    deliver(status);
    await world.advance(300_000);
    expect(caller.states).toEqual(["PENDING"]);
    world.setDown(false);
    await world.advance(5_000);
    expect(caller.states).toEqual(["PENDING", "BONDED"]);
  });

  test("each is asked for one block every three seconds", async () => {
    const status = createTransfer();
    world.open([status.sent.id]);
    await world.advance(2_000);
    world.setDown(true);
    const before = { ...world.getFacts("arbitrum") };
    await world.advance(60_000);
    const { batches, calls } = world.getFacts("arbitrum");
    expect(batches - before.batches).toBeLessThanOrEqual(21);
    expect(calls - before.calls).toBeLessThanOrEqual(23);
  });
});

test("a transaction stands for all its transfers, each with its own state", async () => {
  const [first, second] = [createTransfer({ number: 1 }), createTransfer({ number: 2 })];
  const hash = first.sent.transactionHash;
  const together = [first, second].map((status) => ({ ...status, sent: { ...status.sent, transactionHash: hash } }));
  for (const status of together) world.put(status);
  const caller = world.open([], { hashes: [hash] });
  await world.advance(2_000);
  expect(caller.events.map(({ id }) => id)).toEqual([hashOf(1), hashOf(2)]);
  const delivered = deliver(second);
  world.put({ ...delivered, sent: { ...delivered.sent, transactionHash: hash } });
  await world.advance(2_000);
  expect(caller.events.slice(2)).toMatchObject([{ kind: "transfer", id: hashOf(2), state: "BONDED" }]);
});
