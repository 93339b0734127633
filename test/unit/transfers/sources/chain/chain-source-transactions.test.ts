import { describe, expect, test, vi } from "vitest";
import type { LookupContext } from "../../../../../src/transfers/sources/transfer-source.js";
import { BudgetExhaustedError } from "../../../../../src/transfers/spend/lookup-budget.js";
import type { SentTransfer } from "../../../../../src/transfers/status.js";
import { settleAfter } from "../../../../support/settle-after.js";
import {
  type ChainEvent,
  createChainAccess,
  createDeferred,
  createLookupContext,
  createTransferChainStub,
  repeatedByteAddress,
  type TransferChainStub,
  unavailableError,
} from "../../../../support/stubs/transfer-fixtures.js";
import {
  cctpTransferSentEvent,
  hashFromName,
  messageReceivedEvent,
  transferFromL1CompletedEvent,
  transferSentEvent,
  transferSentToL2Event,
  withdrawalBondedEvent,
  withdrewEvent,
} from "../../index/support/hop-events.js";
import { createTestChainSource } from "./search-fixtures.js";

const to = "arbitrum";

function setup({ maxLogBlocks = Number.POSITIVE_INFINITY } = {}) {
  const create = (slug: string) => createTransferChainStub(slug, { maxLogBlocks });
  const [ethereum, optimism, base, arbitrum] = [create("ethereum"), create("optimism"), create("base"), create(to)];
  const stubs = { ethereum, optimism, base, arbitrum };
  const source = createTestChainSource(() => 12_345);
  const chains = createChainAccess(Object.values(stubs));
  return {
    ...stubs,
    find: async (transactionHash: string, transferId?: string, more: Partial<LookupContext> = {}) =>
      source.resolve({ transactionHash, transferId }, createLookupContext({ chains, ...more })),
    resolveStatus: (sent: SentTransfer) => source.resolveStatus(sent, [], createLookupContext({ chains })),
    findById: async (transferId: string, more: Partial<LookupContext> = {}) =>
      source.resolve({ transactionHash: undefined, transferId }, createLookupContext({ chains, ...more })),
  };
}

/** Adds the events of one transaction to a block. */
function addTransaction(chain: TransferChainStub, block: number, ...events: readonly ChainEvent[]): string {
  const transactionHash = events[0]?.transactionHash ?? "";
  for (const [index, event] of events.entries()) {
    chain.events.push({ event: { ...event, transactionHash }, block, index });
  }
  return transactionHash;
}

const failOn = (method: string, error: Error) => (called: string) => {
  if (called === method) throw error;
};

describe("a lookup by the delivering transaction", () => {
  const [a, b] = [hashFromName("a"), hashFromName("b")];
  const sent = transferSentEvent("a", { from: "optimism", to });
  const bonded = withdrawalBondedEvent("a", { to });
  const bondedB = withdrawalBondedEvent("b", { to });
  const burned = cctpTransferSentEvent(77n, { from: "base", to });
  const minted = messageReceivedEvent(77n, { from: "base", to });
  const foreign = messageReceivedEvent(99n, { from: "base", to }, repeatedByteAddress("55"));
  const fromL1 = (name: string, transaction: string) => transferSentToL2Event(name, transaction, { to });
  const completed = (name: string) => transferFromL1CompletedEvent(name, "both", { to });
  const [first, second] = [fromL1("a", "one").transactionHash, fromL1("b", "two").transactionHash];

  /** Transactions that sent transfers, by their chains. */
  type Sends = Readonly<Partial<Record<"ethereum" | "optimism" | "base", readonly (readonly ChainEvent[])[]>>>;

  /** Adds sends, and one transaction that makes deliveries. */
  function deliver(sends: Sends, deliveries: readonly ChainEvent[], options?: Parameters<typeof setup>[0]) {
    const chains = setup(options);
    for (const [slug, transactions] of Object.entries(sends))
      for (const [index, events] of transactions.entries())
        addTransaction(chains[slug as keyof Sends], 100 + index, ...events);
    const transaction = addTransaction(chains.arbitrum, 500, ...deliveries);
    return { ...chains, transaction, find: (id?: string) => chains.find(transaction, id) };
  }

  const fromOptimism = { optimism: [[sent]] };
  const twoFromL1 = { ethereum: [[fromL1("a", "one")], [fromL1("b", "two")]] };
  const twoOfOne = { ethereum: [[fromL1("a", "one"), fromL1("b", "one")]] };
  const bothCompleted = [completed("a"), completed("b")];
  const burnedOnOptimism = cctpTransferSentEvent(77n, { from: "optimism", to });
  const second77 = { optimism: [[burnedOnOptimism]], base: [[burned]] };
  const secondAlone = { optimism: [[transferSentEvent("b", { from: "optimism", to })]] };
  const elsewhere = { optimism: [[transferSentEvent("a", { from: "optimism", to: "base" })]] };
  const otherToken = { optimism: [[transferSentEvent("a", { from: "optimism", to, token: "DAI" })]] };
  const sixteen = Array.from({ length: 16 }, (_, at) => completed(`x${at}`));
  const many = Array.from({ length: 20 }, (_, at) => withdrawalBondedEvent(`x${at}`, { to, transaction: "many" }));
  const found = (id: string, otherTransferIds: readonly string[] = []) => ({ sent: { id }, otherTransferIds });
  const of77 = { sent: { id: "77", source: { slug: "base" } } };
  const none = undefined;
  test.each<[string, Sends, readonly ChainEvent[], string | undefined, object | undefined]>([
    ["a CCTP transfer beside foreign messages", { base: [[burned]] }, [foreign, minted], none, found("77")],
    ["the CCTP transfer of the chain that the message names, not of another chain", second77, [minted], none, of77],
    ["the first of two transfers from L1", twoFromL1, bothCompleted, none, found(first, [second])],
    ["the other one by its sending transaction", twoFromL1, bothCompleted, second, found(second, [first])],
    ["none of them by another transaction", twoFromL1, bothCompleted, hashFromName("three"), none],
    ["no sibling for two sends of one transaction on L1 with one ID", twoOfOne, bothCompleted, none, found(first)],
    ["no sibling that was never sent", fromOptimism, [completed("b"), bonded], none, found(a)],
    ["no such sibling by ID either", fromOptimism, [completed("b"), bonded], a, found(a)],
    ["a sibling over CCTP by its nonce, though it was never sent", fromOptimism, [bonded, minted], a, found(a, ["77"])],
    ["the first transfer that was sent by Hop", secondAlone, [bonded, bondedB], none, { sent: { id: b } }],
    ["nothing when the send with its ID went to another chain", elsewhere, [bonded], none, none],
    ["nothing when the send with the requested ID went to another chain", elsewhere, [bonded], a, none],
    ["nothing when the send with its ID has another token", otherToken, [bonded], none, none],
    ["nothing when the send with the requested ID has another token", otherToken, [bonded], a, none],
    ["nothing where sixteen events have no send", {}, sixteen, none, none],
    ["nothing among many events with other IDs than the requested one", {}, many, hashFromName("x19"), none],
  ])("finds %s", async (_, sends, deliveries, id, expected) => {
    const status = await deliver(sends, deliveries).find(id);
    if (expected === undefined) expect(status).toBeUndefined();
    else expect(status).toMatchObject({ state: "BONDED", ...expected });
  });

  test("searches no chain for a foreign message", async () => {
    const { base, find } = deliver({}, [foreign], { maxLogBlocks: 2_000 });
    expect(await find()).toBeUndefined();
    expect(base.searchedRanges).toEqual([]);
  });

  test("finds the requested transfer while the send of another cannot be searched", async () => {
    const { base, find } = deliver(fromOptimism, [bondedB, bonded]);
    base.beforeResponse = failOn("eth_getLogs", unavailableError("base"));
    expect(await find(a)).toMatchObject(found(a, [b]));
    await expect(find()).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message: "base is down" });
  });

  test("follows at most sixteen events, and is never not found because of that", async () => {
    const completions = Array.from({ length: 20 }, (_, at) => completed(`x${at}`));
    const { ethereum, find } = deliver(fromOptimism, [...completions, bonded]);
    const searches = () => ethereum.methods.filter((method) => method === "eth_getLogs").length;
    await expect(find()).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the transaction on arbitrum has too many events to follow",
    });
    expect(searches()).toBe(16);
    expect(await find(a)).toMatchObject(found(a));
    expect(searches()).toBe(16 + 15);
  });

  test("reads nothing more of the delivery, which it has found", async () => {
    const { arbitrum, find, transaction } = deliver(fromOptimism, [bonded]);
    expect(await find()).toMatchObject({ delivery: { transactionHash: transaction } });
    expect(arbitrum.methods.filter((method) => ["eth_getLogs", "eth_call"].includes(method))).toEqual([]);
  });

  test.each([
    ["an L2", transferSentEvent("a", { from: "base", to }), bonded],
    ["CCTP", burned, minted],
  ])("searches the send over %s from the time of the delivery backwards", async (_, event, delivery) => {
    const { base, arbitrum, find } = setup({ maxLogBlocks: 2_000 });
    addTransaction(base, 30_000, event);
    const transaction = addTransaction(arbitrum, 31_000, delivery);
    expect(await find(transaction)).toMatchObject({ sent: { blockNumber: 30_000 } });
    // The newest page comes first, then what is older than the delivery.
    expect(base.searchedRanges.filter(({ from, to }) => from > 40_000 && to < 98_000)).toEqual([]);
  });

  describe("with a sibling from L1", () => {
    function setupBoth(sends: Sends) {
      const chains = deliver({ ...fromOptimism, ...sends }, [completed("b"), bonded]);
      for (const chain of [chains.ethereum, chains.optimism, chains.arbitrum]) chain.finalized = chain.head;
      return chains;
    }

    test("is final when that was found, and not while its chain does not tell", async () => {
      const { ethereum, find } = setupBoth({ ethereum: [[fromL1("b", "two")]] });
      ethereum.beforeResponse = failOn("eth_getLogs", unavailableError("ethereum"));
      expect(await find(a)).toMatchObject({ ...found(a), isFinal: false });
      ethereum.beforeResponse = () => {};
      expect(await find(a)).toMatchObject({ ...found(a, [second]), isFinal: true });
    });

    test("fails when the search of that fails for another reason than its chain", async () => {
      const { ethereum, find } = setupBoth({});
      ethereum.beforeResponse = failOn("eth_getLogs", new BudgetExhaustedError("caller", "RATE_LIMITED", "spent"));
      await expect(find(a)).rejects.toMatchObject({ reason: "RATE_LIMITED" });
    });
  });
});

test("the status of a send that is known needs no read of its chain", async () => {
  const { optimism, arbitrum, find, resolveStatus } = setup();
  const transaction = addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
  const status = await find(transaction);
  if (status === undefined) throw new Error("no status");
  const bond = addTransaction(arbitrum, 500, withdrawalBondedEvent("a", { to }));
  arbitrum.contractResult = () => 1n;
  optimism.methods.length = 0;
  const delivered = { state: "BONDED", sent: status.sent, delivery: { transactionHash: bond } };
  expect(await resolveStatus(status.sent)).toMatchObject(delivered);
  expect(optimism.methods).not.toContain("eth_getTransactionReceipt");
});

test("a lookup by the sending transaction reads its receipt once", async () => {
  const { optimism, find } = setup();
  await find(addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to })));
  expect(optimism.methods.filter((method) => method === "eth_getTransactionReceipt")).toHaveLength(1);
});

test("lists no sibling for two sends from L1 in one transaction, which share an ID", async () => {
  const { ethereum, find } = setup();
  const both = [transferSentToL2Event("a", "both", { to }), transferSentToL2Event("b", "both", { to })];
  expect(await find(addTransaction(ethereum, 40_000, ...both))).toMatchObject({
    sent: { id: both[0]?.transactionHash, logIndex: 0 },
    otherTransferIds: [],
  });
});

describe("a lookup by ID", () => {
  test("finds the transfer from L1 beside a CCTP transfer of the same transaction", async () => {
    const { ethereum, findById } = setup();
    const both = [cctpTransferSentEvent(77n, { from: "ethereum", to }), transferSentToL2Event("a", "both", { to })];
    const transaction = addTransaction(ethereum, 40_000, ...both);
    expect(await findById(transaction)).toMatchObject({ sent: { id: transaction, kind: "l1", logIndex: 1 } });
  });

  test.each([
    ["sent a CCTP transfer, whose ID is its nonce", cctpTransferSentEvent(77n, { from: "ethereum", to })],
    ["sent none", transferFromL1CompletedEvent("a", "foreign", { to })],
  ])("finds nothing for the hash of a transaction on L1 that %s", async (_, event) => {
    const { ethereum, findById } = setup();
    expect(await findById(addTransaction(ethereum, 40_000, event))).toBeUndefined();
  });

  test("finds nothing for the hash of a transaction on an L2", async () => {
    const { optimism, findById } = setup();
    const transaction = addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    expect(await findById(transaction)).toBeUndefined();
    expect(await findById(hashFromName("a"))).toMatchObject({ sent: { transactionHash: transaction } });
  });

  test("reads one receipt, and none of an L2, which has no transaction with such a hash; searches no L1", async () => {
    const { ethereum, optimism, findById } = setup();
    const transaction = addTransaction(ethereum, 40_000, transferSentToL2Event("a", "one", { to }));
    await findById(transaction);
    expect(ethereum.methods.filter((method) => method === "eth_getTransactionReceipt")).toHaveLength(1);
    ethereum.methods.length = 0;
    await findById(hashFromName("unknown"));
    expect(ethereum.methods).toEqual(["eth_getTransactionReceipt"]);
    expect(optimism.methods).not.toContain("eth_getTransactionReceipt");
  });

  test("finds nothing for a nonce that no chain has", async () => {
    const { base, findById } = setup();
    addTransaction(base, 10, cctpTransferSentEvent(77n, { from: "base", to }));
    expect(await findById("78")).toBeUndefined();
    expect(await findById("77")).toMatchObject({ sent: { source: { slug: "base" } } });
  });
});

test.each(["eth_getBlockByHash", "eth_getTransactionReceipt"])(
  "fails where %s has nothing about a log",
  async (missing) => {
    const { optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const bond = addTransaction(arbitrum, 500, withdrawalBondedEvent("a", { to }));
    const { send } = optimism.client;
    optimism.client.send = async (method, params, signal) => (method === missing ? null : send(method, params, signal));
    const unavailable = { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("optimism") };
    await expect(find(bond)).rejects.toMatchObject(unavailable);
  },
);

describe("a delivery", () => {
  const sent = transferSentEvent("a", { from: "optimism", to });
  function setupDelivered() {
    const chains = setup();
    chains.arbitrum.contractResult = () => 1n;
    [chains.optimism.finalized, chains.arbitrum.finalized] = [100, 500];
    addTransaction(chains.arbitrum, 500, withdrawalBondedEvent("a", { to }));
    const transaction = addTransaction(chains.optimism, 100, sent);
    return { ...chains, findSent: (more?: Partial<LookupContext>) => chains.find(transaction, undefined, more) };
  }

  test.each([
    [100, 500, true],
    [99, 500, false],
    [100, 499, false],
    [undefined, 500, false],
    [100, undefined, false],
  ])("with finalized blocks %s and %s has isFinal %s", async (source, destination, isFinal) => {
    const { optimism, arbitrum, findSent } = setupDelivered();
    [optimism.finalized, arbitrum.finalized] = [source, destination];
    expect(await findSent()).toMatchObject({ state: "BONDED", isFinal });
  });

  test("by a withdrawal has no bonder, whoever sent it, and is final without one", async () => {
    const { optimism, arbitrum, find } = setup();
    arbitrum.contractResult = () => 1n;
    [optimism.finalized, arbitrum.finalized] = [100, 500];
    const withdrawal = addTransaction(arbitrum, 500, withdrewEvent("a", { to }));
    const status = await find(addTransaction(optimism, 100, sent));
    expect(status).toMatchObject({ state: "BONDED", isFinal: true, delivery: { transactionHash: withdrawal } });
    expect(status?.delivery?.bonder).toBeUndefined();
  });

  test("whose transaction is not found, or that has not come, is not final", async () => {
    const { optimism, arbitrum, find } = setup();
    [optimism.finalized, arbitrum.finalized] = [optimism.head, arbitrum.head];
    const transaction = addTransaction(optimism, 100, sent);
    expect(await find(transaction)).toMatchObject({ state: "PENDING", isFinal: false });
    arbitrum.contractResult = () => 1n;
    expect(await find(transaction)).toMatchObject({ state: "BONDED", isFinal: false });
  });

  const hangOn = (method: string) => (called: string) =>
    called === method ? createDeferred<void>().promise : undefined;
  test("is not final while its bonder is unknown", async () => {
    const { arbitrum, findSent } = setupDelivered();
    arbitrum.beforeResponse = failOn("eth_getTransactionByHash", unavailableError(to));
    expect(await findSent()).toMatchObject({ isFinal: false, delivery: { bonder: undefined, blockNumber: 500 } });
  });

  test.each([
    ["the bonder", "eth_getTransactionByHash", 10_000, 50, 1_000],
    ["the finality", "eth_getBlockByNumber", 10_000, 50, 1_000],
    ["the finality", "eth_getBlockByNumber", 600, 50, 300],
    // Where everything takes long, the details do too.
    ["the bonder", "eth_getTransactionByHash", 6_000, 2_500, 2_500],
    ["the finality", "eth_getBlockByNumber", 6_000, 4_000, 3_000],
  ])("does not wait for %s: %s hangs, deadline %i ms, %i ms so far, timeout %i ms", async (_, method, ...times) => {
    const [remainingMs, elapsedMs, timeoutMs] = times;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { arbitrum, findSent } = setupDelivered();
    arbitrum.beforeResponse = hangOn(method);
    const status = findSent({ remainingMs: () => remainingMs, elapsedMs: () => elapsedMs });
    expect(await settleAfter(status, timeoutMs)).toMatchObject({ state: "BONDED", isFinal: false });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is not final while the source does not tell whether the send is", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { optimism, findSent } = setupDelivered();
    optimism.beforeResponse = hangOn("eth_getBlockByNumber");
    const status = findSent();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await status).toMatchObject({ state: "BONDED", isFinal: false });
  });
});
