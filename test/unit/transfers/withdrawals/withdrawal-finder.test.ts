import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import { merkleRoot } from "../../../../src/hop/merkle-tree.js";
import type { TransferTree } from "../../../../src/transfers/index/transfer-tree.js";
import { findRefusal } from "../../../../src/transfers/withdrawals/refusal.js";
import { createLookupContext, createStatus, type StatusOverrides } from "../../../support/stubs/transfer-fixtures.js";
import { createWithdrawalFinder, destinationBridge, type Sent, SettlementWorld } from "./settlement-world.js";

/** @param onBatch called before each batch of calls of a chain */
function createFinder(world: SettlementWorld, indexed?: TransferTree, onBatch?: (slug: string) => void) {
  const { finder, failed, state } = createWithdrawalFinder({ findIndexedTree: async () => indexed });
  function getClient(slug: string): ChainClient {
    const client = world.getClient(slug);
    const sendBatch: ChainClient["sendBatch"] = (...batch) => {
      onBatch?.(slug);
      return client.sendBatch(...batch);
    };
    return { ...client, sendBatch };
  }
  const context = createLookupContext({ chains: { hasCustomEndpoint: () => false, getClient } });
  const find = (sent: Sent, more: StatusOverrides = {}, chains = context.chains) => {
    const status = createStatus({ sent: world.toTransfer(sent), delivery: undefined, isFinal: false, ...more });
    return finder.find(status, { ...context, chains, isPrivate: chains !== context.chains });
  };
  return { finder, context, find, failed, state };
}

/** A transfer whose root has arrived. */
function createArrived() {
  const world = new SettlementWorld();
  const sent = world.send(1_000);
  world.arrive(world.commit(1_001));
  return { world, sent };
}

test("what the explorer alone knows is not answered", async () => {
  const { finder, context } = createFinder(new SettlementWorld());
  await expect(finder.find(createStatus({ source: "explorer" }), context)).rejects.toMatchObject({
    message: "optimism did not return the transfer, which the explorer knows",
  });
});

test("what was received, or comes from ethereum, needs no read", async () => {
  const world = new SettlementWorld();
  const { finder, context } = createFinder(world);
  expect(await finder.find(createStatus(), context)).toEqual({ state: "RECEIVED" });
  const fromL1 = createStatus({ sent: { kind: "l1" }, delivery: undefined });
  expect(await finder.find(fromL1, context)).toEqual({ state: "AUTOMATIC" });
  expect(world.requests).toBe(0);
});

describe("a transfer that waits for a commit", () => {
  test.each([
    ["after the delay", 1_700_000_000n, 1_700_014_400],
    ["now where nobody ever has", 0n, 1_700_010_000],
  ])("may be committed by anybody %s", async (_, lastCommitTime, availableAt) => {
    const world = new SettlementWorld();
    world.lastCommitTime = lastCommitTime;
    world.send(1_000);
    const { find } = createFinder(world);
    expect(await find(world.send(1_001))).toEqual({ state: "WAITING_FOR_COMMIT", availableAt });
  });

  test("is not told a time that is none", async () => {
    const world = new SettlementWorld();
    world.lastCommitTime = 2n ** 256n - 1n;
    await expect(createFinder(world).find(world.send(1_000))).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
  });
});

describe("a committed transfer", () => {
  test.each([1, 2, 3, 5])("is proven among %i", async (leaves) => {
    const world = new SettlementWorld();
    for (let index = 0; index < leaves; index += 1) world.send(1_000 + (index >> 2), index % 4);
    world.arrive(world.commit(2_000));
    const { find, failed } = createFinder(world);
    for (const index of [0, leaves >> 1, leaves - 1]) {
      const withdrawal = await find(world.sends[index] as Sent);
      const proof = { bridge: destinationBridge, treeIndex: index, totalLeaves: leaves };
      expect(withdrawal).toMatchObject({ state: "WITHDRAWABLE", proof });
    }
    expect(failed).toEqual([]);
  });

  test("waits for its root with a complete proof", async () => {
    const world = new SettlementWorld();
    const sent = world.send(1_000);
    const { rootHash, total } = world.commit(1_001);
    const { find } = createFinder(world);
    expect(await find(sent)).toMatchObject({ state: "WAITING_FOR_ROOT", proof: { rootHash, totalAmount: total } });
  });

  test("is in the root of its own list: commits of the same block, and a full send's own commit", async () => {
    const world = new SettlementWorld();
    const first = world.send(1_000, 0);
    world.arrive(world.commit(1_000, 2));
    // The send to a full list commits that before its own log.
    const [second, third] = [world.send(1_000, 3), world.send(1_001, 0)];
    world.arrive(world.commit(1_001, 1));
    const fourth = world.send(1_001, 2);
    world.arrive(world.commit(1_001, 3));
    const { find } = createFinder(world);
    const proofs = await Promise.all([first, second, third, fourth].map((sent) => find(sent)));
    const places = [
      { treeIndex: 0, totalLeaves: 1 },
      { treeIndex: 0, totalLeaves: 2 },
      { treeIndex: 1, totalLeaves: 2 },
      { treeIndex: 0, totalLeaves: 1 },
    ];
    expect(proofs).toMatchObject(places.map((proof) => ({ state: "WITHDRAWABLE", proof })));
  });

  test("that was spent meanwhile is received", async () => {
    const { world, sent } = createArrived();
    world.spent.add(sent.id);
    expect(await createFinder(world).find(sent)).toEqual({ state: "RECEIVED" });
  });

  const rescueRoots = ({ roots }: SettlementWorld): void => {
    for (const root of roots.values()) root.withdrawn += 1n;
  };
  const rejectEth = (world: SettlementWorld): void => {
    world.refusal = "L1_ETH_BRG: ETH transfer failed";
  };
  test.each([
    ["a root that was rescued", "BRG: Withdrawal exceeds TransferRoot total", rescueRoots],
    ["a recipient that rejects ETH", "L1_ETH_BRG: ETH transfer failed", rejectEth],
  ])("is blocked by %s, in the words of the contract", async (_, words, block) => {
    const { world, sent } = createArrived();
    block(world);
    const { find, failed } = createFinder(world);
    const warning = `the bridge on arbitrum refuses the withdrawal: ${words}`;
    expect(await find(sent)).toMatchObject({ state: "BLOCKED", proof: { treeIndex: 0 }, warning });
    expect(failed).toEqual([]);
  });

  test("waits again when a reorg removes its commit", async () => {
    const world = new SettlementWorld();
    world.source.head = 1_010;
    const sent = world.send(1_000);
    world.commit(1_001);
    const { find, state } = createFinder(world);
    expect(await find(sent)).toMatchObject({ state: "WAITING_FOR_ROOT" });
    world.source.events.pop();
    world.pending = [sent.id];
    // Kept for one block of the destination.
    expect(await find(sent)).toMatchObject({ state: "WAITING_FOR_ROOT" });
    state.now += 1_001;
    expect(await find(sent)).toMatchObject({ state: "WAITING_FOR_COMMIT" });
  });
});

describe("a lie is never proven", () => {
  type Events = SettlementWorld["source"]["events"];
  const replaceData = (events: Events, position: number, word: number, value: bigint): void => {
    const { event, ...place } = events[position] as Events[number];
    const start = 2 + word * 64;
    const data = event.data.slice(0, start) + value.toString(16).padStart(64, "0") + event.data.slice(start + 64);
    events[position] = { ...place, event: { ...event, data } };
  };
  const swapLeaves = (_: SettlementWorld, events: Events): void => {
    const [one, other] = [events[0], events[1]] as [Events[number], Events[number]];
    events[0] = { ...one, event: other.event };
    events[1] = { ...other, event: one.event };
  };
  const forgeRoot = (_: SettlementWorld, events: Events): void => {
    const { event, ...place } = events[5] as Events[number];
    const topics = [event.topics[0] ?? "", event.topics[1] ?? "", `0x${"66".repeat(32)}`];
    events[5] = { ...place, event: { ...event, topics } };
  };
  const inventCommit = (world: SettlementWorld): void => {
    world.pending = world.sends.map(({ id }) => id);
  };
  const commitAnotherList = (_: SettlementWorld, events: Events): void => {
    const other = new SettlementWorld();
    other.send(1, 0, 50n);
    other.commit(1_100, 9);
    events[5] = other.source.events[1] as Events[number];
  };
  // Events 0 to 4 are sends, event 5 is their commit; the transfer is the third.
  test.each<[string, string, (world: SettlementWorld, events: Events) => void]>([
    ["a leaf left out", "leaves", (_, events) => events.splice(1, 1)],
    ["the first leaf left out", "leaves", (_, events) => events.splice(0, 1)],
    ["the last leaf left out", "root", (_, events) => events.splice(4, 1)],
    ["leaves in another order", "leaves", swapLeaves],
    ["the amount of another leaf", "transfer_id", (_, events) => replaceData(events, 0, 0, 100n)],
    ["a forged root", "root", forgeRoot],
    ["a forged total", "total", (_, events) => replaceData(events, 5, 0, 16n)],
    ["another nonce", "transfer_id", (_, events) => replaceData(events, 2, 1, 7n)],
    ["a commit left out", "pending", (_, events) => events.splice(5, 1)],
    ["a commit invented", "pending", inventCommit],
    ["the commit of another list", "root", commitAnotherList],
  ])("%s", async (_, check, lie) => {
    const world = new SettlementWorld();
    for (let index = 0; index < 5; index += 1) world.send(1_000 + index);
    world.commit(1_100, 9);
    lie(world, world.source.events);
    const { find, failed } = createFinder(world);
    const sent = world.sends[2] as Sent;
    await expect(find(sent)).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: expect.stringContaining(`check ${check}`),
    });
    expect(failed).toEqual([check]);
  });

  test("a destination that contradicts itself about the root", async () => {
    const { world, sent } = createArrived();
    world.refusal = "BRG: Transfer root not found";
    await expect(createFinder(world).find(sent)).rejects.toMatchObject({
      message: expect.stringContaining("check withdraw"),
    });
  });
});

describe("what did not fit once is read anew", () => {
  test.each<[string, number, string]>([
    ["its commit", 1, "check pending"],
    ["the transfer itself", 0, "incomplete logs"],
  ])("logs without %s", async (_, position, message) => {
    const { world, sent } = createArrived();
    const left = world.source.events.splice(position, 1);
    const { find } = createFinder(world);
    await expect(find(sent)).rejects.toMatchObject({ message: expect.stringContaining(message) });
    world.source.events.splice(position, 0, ...left);
    expect(await find(sent)).toMatchObject({ state: "WITHDRAWABLE" });
  });

  test("a withdrawal between the two reads of the destination", async () => {
    const { world, sent } = createArrived();
    world.refusal = "BRG: The transfer has already been withdrawn";
    const { find, failed } = createFinder(world, undefined, (slug) => {
      if (slug === "arbitrum") queueMicrotask(() => world.spent.add(sent.id));
    });
    expect(await find(sent)).toEqual({ state: "RECEIVED" });
    expect(failed).toEqual([]);
  });
});

test.each([
  ["execution reverted: ABC", undefined, "ABC"],
  ["VM execution error.", `Reverted 0x08c379a0${"20".padStart(64, "0")}${"3".padStart(64, "0")}414243`, "ABC"],
  ["execution reverted", "0x4E487B71", "no reason (0x4e487b71)"],
  ["execution reverted: call your admin", "0x118cdaa7", "no reason (0x118cdaa7)"],
  ["VM execution error.", "OutOfGas", undefined],
  ["out of gas", "0x", undefined],
])("%s, %s is the refusal of a contract only if that ran to its end", (message, data, words) => {
  const find = (): unknown => findRefusal({ revert: new RevertError(message, -32015, data) }, "gnosis");
  if (words === undefined) expect(find).toThrow("gnosis did not run the call to its end");
  else expect(find()).toBe(words);
});

test("a search that spends its budget is continued by the next lookup", async () => {
  const world = new SettlementWorld();
  world.source.head = 1_000_000;
  world.source.maxLogBlocks = 1_000;
  world.send(1_000);
  const sent = world.send(999_000);
  world.arrive(world.commit(999_001));
  const { find } = createFinder(world);
  const message = expect.stringContaining("the search of optimism takes many requests");
  await expect(find(sent)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message });
  await expect(find(sent)).rejects.toMatchObject({ message });
  expect(await find(sent)).toMatchObject({ proof: { treeIndex: 1, totalLeaves: 2 } });
  // The searches of the commit, and pages in flight when the budget was spent, are made again.
  expect(world.source.searchedRanges.length).toBeLessThan(1_050);
});

test("callers share one read, and a caller's own endpoints are asked anew", async () => {
  const { world, sent } = createArrived();
  const { context, find } = createFinder(world);
  await Promise.all([find(sent), find(sent), find(sent)]);
  // The head, the commit, the leaves, and one batch to each bridge.
  expect(world.requests).toBe(5);
  const chains = { ...context.chains, hasCustomEndpoint: (slug: string) => slug === "optimism" };
  await find(sent, {}, chains);
  expect(world.requests).toBe(10);
});

test("a later observation of the transfer is not answered with what was read after the one before", async () => {
  const world = new SettlementWorld();
  const sent = world.send(1_000);
  const { find } = createFinder(world);
  const findAt = (observedAtMs: number) => find(sent, { observedAtMs });
  expect(await findAt(1)).toMatchObject({ state: "WAITING_FOR_COMMIT" });
  world.arrive(world.commit(1_001));
  expect(await findAt(1)).toMatchObject({ state: "WAITING_FOR_COMMIT" });
  expect(await findAt(2)).toMatchObject({ state: "WITHDRAWABLE" });
});

describe("with an index", () => {
  /** Returns what an index says that has read everything. */
  function indexOf(world: SettlementWorld, sent: Sent, leaves: readonly Sent[]): TransferTree {
    const { event, block, index = 0 } = world.source.events.at(-1) as SettlementWorld["source"]["events"][number];
    const { transactionHash, topics, data } = event;
    const [rootHash, totalAmount] = [topics[2] ?? "", BigInt(data.slice(0, 66))];
    return {
      leaves: leaves.map(({ id, event: { amount } }) => ({ transferId: id, amount })),
      ...{ treeIndex: sent.index, transferNonce: sent.nonce },
      commit: { rootHash, totalAmount, transactionHash, blockNumber: block, logIndex: index, committedAt: 1 },
    };
  }
  function commitThree() {
    const world = new SettlementWorld();
    const leaves = [world.send(1_000), world.send(1_001), world.send(1_002)] as const;
    world.arrive(world.commit(1_003));
    return { world, leaves, sent: leaves[1], tree: indexOf(world, leaves[1], leaves) };
  }
  const proven = { state: "WITHDRAWABLE", proof: { treeIndex: 1, totalLeaves: 3 } };

  test("a proof needs no search: the commit and what both bridges say are read", async () => {
    const { world, sent, tree } = commitThree();
    expect(await createFinder(world, tree).find(sent)).toMatchObject(proven);
    expect([world.source.searchedRanges, world.requests]).toEqual([[], 3]);
  });

  test("a transfer that it knows to wait is asked of the bridge alone", async () => {
    const world = new SettlementWorld();
    const sent = world.send(1_000);
    const tree = { leaves: [], treeIndex: 0, transferNonce: sent.nonce, commit: undefined };
    expect(await createFinder(world, tree).find(sent)).toMatchObject({ state: "WAITING_FOR_COMMIT" });
    expect(world.source.searchedRanges).toEqual([]);
  });

  const withCommit = (tree: TransferTree, more: Partial<TransferTree["commit"]>): TransferTree => ({
    ...tree,
    commit: tree.commit && { ...tree.commit, ...more },
  });
  const replaceRoot = (tree: TransferTree): TransferTree => {
    const leaves = [...tree.leaves].reverse();
    const rootHash = merkleRoot(leaves.map(({ transferId }) => transferId));
    return { ...withCommit(tree, { rootHash }), leaves };
  };
  test.each<[string, string[], (tree: TransferTree) => TransferTree]>([
    ["is behind the commit", [], (tree) => ({ ...tree, commit: undefined })],
    ["lacks a leaf", ["index"], (tree) => ({ ...tree, leaves: tree.leaves.slice(0, 2) })],
    ["has another nonce", ["index"], (tree) => ({ ...tree, transferNonce: `0x${"77".repeat(32)}` })],
    ["has another total", ["index"], (tree) => withCommit(tree, { totalAmount: 1n })],
    ["has a commit that the chain does not have", [], replaceRoot],
  ])("that %s, the chains are searched, and %j is reported", async (_, reported, change) => {
    const { world, sent, tree } = commitThree();
    const { find, failed } = createFinder(world, change(tree));
    expect(await find(sent)).toMatchObject(proven);
    expect(world.source.searchedRanges.length).toBeGreaterThan(0);
    expect(failed).toEqual(reported);
  });
});
