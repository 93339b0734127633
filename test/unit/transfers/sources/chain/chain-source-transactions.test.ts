import { afterEach, describe, expect, test, vi } from "vitest";
import type { LookupContext } from "../../../../../src/transfers/sources/transfer-source.js";
import { BudgetExhaustedError } from "../../../../../src/transfers/spend/lookup-budget.js";
import type { SentTransfer } from "../../../../../src/transfers/status.js";
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
  const ethereum = createTransferChainStub("ethereum", { maxLogBlocks });
  const optimism = createTransferChainStub("optimism", { maxLogBlocks });
  const base = createTransferChainStub("base", { maxLogBlocks });
  const arbitrum = createTransferChainStub(to, { maxLogBlocks });
  const source = createTestChainSource(() => 12_345);
  const chains = createChainAccess([ethereum, optimism, base, arbitrum]);
  return {
    ethereum,
    optimism,
    base,
    arbitrum,
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

afterEach(() => {
  vi.useRealTimers();
});

describe("a lookup by the delivering transaction", () => {
  const burned = cctpTransferSentEvent(77n, { from: "base", to });
  const minted = messageReceivedEvent(77n, { from: "base", to });
  const foreign = messageReceivedEvent(99n, { from: "base", to }, repeatedByteAddress("55"));

  test("finds a CCTP transfer and ignores foreign messages beside it", async () => {
    const { base, arbitrum, find } = setup();
    addTransaction(base, 10, burned);
    const transaction = addTransaction(arbitrum, 100, foreign, minted);
    expect(await find(transaction)).toMatchObject({ sent: { id: "77" }, otherTransferIds: [], state: "BONDED" });
  });

  test("finds the CCTP transfer of the chain that the message names, not another with its nonce", async () => {
    const { base, optimism, arbitrum, find } = setup();
    addTransaction(optimism, 9, cctpTransferSentEvent(77n, { from: "optimism", to }));
    addTransaction(base, 10, burned);
    const transaction = addTransaction(arbitrum, 100, minted);
    expect(await find(transaction)).toMatchObject({ sent: { id: "77", source: { slug: "base" } } });
  });

  test("finds nothing for a foreign message, without searching any chain", async () => {
    const { base, arbitrum, find } = setup({ maxLogBlocks: 2_000 });
    expect(await find(addTransaction(arbitrum, 100, foreign))).toBeUndefined();
    expect(base.searchedRanges).toEqual([]);
  });

  test("distinguishes several transfers from L1 by their sending transactions", async () => {
    const { ethereum, arbitrum, find } = setup();
    const first = addTransaction(ethereum, 40_000, transferSentToL2Event("a", "one", { to }));
    const second = addTransaction(ethereum, 40_001, transferSentToL2Event("b", "two", { to }));
    const both = addTransaction(
      arbitrum,
      41_000,
      transferFromL1CompletedEvent("a", "both", { to }),
      transferFromL1CompletedEvent("b", "both", { to }),
    );
    expect(await find(both)).toMatchObject({ sent: { id: first }, otherTransferIds: [second] });
    expect(await find(both, second)).toMatchObject({ sent: { id: second }, otherTransferIds: [first] });
    expect(await find(both, hashFromName("three"))).toBeUndefined();
  });

  test("omits a sibling that was never sent", async () => {
    const { optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = addTransaction(
      arbitrum,
      500,
      transferFromL1CompletedEvent("b", "both", { to }),
      withdrawalBondedEvent("a", { to }),
    );
    for (const id of [undefined, hashFromName("a")]) {
      expect(await find(both, id)).toMatchObject({ sent: { id: hashFromName("a") }, otherTransferIds: [] });
    }
  });

  test("finds the requested transfer while the send of another cannot be searched", async () => {
    const { optimism, base, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = addTransaction(arbitrum, 500, withdrawalBondedEvent("b", { to }), withdrawalBondedEvent("a", { to }));
    base.beforeResponse = (method) => {
      if (method === "eth_getLogs") throw unavailableError("base");
    };
    expect(await find(both, hashFromName("a"))).toMatchObject({
      sent: { id: hashFromName("a") },
      otherTransferIds: [hashFromName("b")],
    });
    await expect(find(both)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message: "base is down" });
  });

  test("omits a sibling whose send cannot be searched", async () => {
    const { ethereum, optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = addTransaction(
      arbitrum,
      500,
      transferFromL1CompletedEvent("b", "both", { to }),
      withdrawalBondedEvent("a", { to }),
    );
    ethereum.beforeResponse = (method) => {
      if (method === "eth_getLogs") throw unavailableError("ethereum");
    };
    expect(await find(both, hashFromName("a"))).toMatchObject({
      sent: { id: hashFromName("a") },
      otherTransferIds: [],
    });
  });

  test("follows at most sixteen events, and is never not found because of that", async () => {
    const { ethereum, optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const completions = Array.from({ length: 20 }, (_, at) => transferFromL1CompletedEvent(`x${at}`, "many", { to }));
    const many = addTransaction(arbitrum, 500, ...completions, withdrawalBondedEvent("a", { to }));
    const searches = () => ethereum.methods.filter((method) => method === "eth_getLogs").length;
    await expect(find(many)).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the transaction on arbitrum has too many events to follow",
    });
    expect(searches()).toBe(16);
    expect(await find(many, hashFromName("a"))).toMatchObject({
      sent: { id: hashFromName("a") },
      otherTransferIds: [],
    });
    expect(searches()).toBe(16 + 15);
  });

  test("finds nothing where sixteen events have no send", async () => {
    const { arbitrum, find } = setup();
    const completions = Array.from({ length: 16 }, (_, at) => transferFromL1CompletedEvent(`x${at}`, "many", { to }));
    expect(await find(addTransaction(arbitrum, 500, ...completions))).toBeUndefined();
  });

  test("follows no event with another ID than the requested one", async () => {
    const { arbitrum, find } = setup();
    const bonds = Array.from({ length: 20 }, (_, at) => withdrawalBondedEvent(`x${at}`, { to, transaction: "many" }));
    expect(await find(addTransaction(arbitrum, 500, ...bonds), hashFromName("x19"))).toBeUndefined();
  });

  test("lists a sibling over CCTP by its nonce, whether its send is found or not", async () => {
    const { optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = addTransaction(arbitrum, 500, withdrawalBondedEvent("a", { to }), minted);
    expect(await find(both, hashFromName("a"))).toMatchObject({ otherTransferIds: ["77"] });
  });

  test("reads nothing more of the delivery, which it has found", async () => {
    const { optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const bond = addTransaction(arbitrum, 500, withdrawalBondedEvent("a", { to }));
    expect(await find(bond)).toMatchObject({ delivery: { transactionHash: bond } });
    expect(arbitrum.methods.filter((method) => ["eth_getLogs", "eth_call"].includes(method))).toEqual([]);
  });

  test.each([
    ["an L2", transferSentEvent("a", { from: "base", to }), withdrawalBondedEvent("a", { to })],
    ["CCTP", burned, minted],
  ])("searches the send over %s from the time of the delivery backwards", async (_, sent, delivery) => {
    const { base, arbitrum, find } = setup({ maxLogBlocks: 2_000 });
    addTransaction(base, 30_000, sent);
    const transaction = addTransaction(arbitrum, 31_000, delivery);
    expect(await find(transaction)).toMatchObject({ sent: { blockNumber: 30_000 } });
    // The newest page comes first, then what is older than the delivery.
    expect(base.searchedRanges.filter(({ from, to }) => from > 40_000 && to < 98_000)).toEqual([]);
  });

  describe("with a sibling from L1", () => {
    function setupBoth() {
      const chains = setup();
      const { ethereum, optimism, arbitrum } = chains;
      for (const chain of [ethereum, optimism, arbitrum]) chain.finalized = chain.head;
      addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
      const both = addTransaction(
        arbitrum,
        500,
        transferFromL1CompletedEvent("b", "both", { to }),
        withdrawalBondedEvent("a", { to }),
      );
      return { ...chains, findBoth: () => chains.find(both, hashFromName("a")) };
    }

    test("is final when that was found, and not while its chain does not tell", async () => {
      const { ethereum, findBoth } = setupBoth();
      const sibling = addTransaction(ethereum, 90, transferSentToL2Event("b", "one", { to }));
      ethereum.beforeResponse = (method) => {
        if (method === "eth_getLogs") throw unavailableError("ethereum");
      };
      expect(await findBoth()).toMatchObject({ otherTransferIds: [], isFinal: false });
      ethereum.beforeResponse = () => {};
      expect(await findBoth()).toMatchObject({ otherTransferIds: [sibling], isFinal: true });
    });

    test("fails when the search of that fails for another reason than its chain", async () => {
      const { ethereum, findBoth } = setupBoth();
      ethereum.beforeResponse = (method) => {
        if (method === "eth_getLogs") throw new BudgetExhaustedError("caller", "RATE_LIMITED", "spent");
      };
      await expect(findBoth()).rejects.toMatchObject({ reason: "RATE_LIMITED" });
    });
  });

  test("lists no sibling for two sends of one transaction on L1, which share an ID", async () => {
    const { ethereum, arbitrum, find } = setup();
    const first = addTransaction(
      ethereum,
      40_000,
      transferSentToL2Event("a", "one", { to }),
      transferSentToL2Event("b", "one", { to }),
    );
    const both = addTransaction(
      arbitrum,
      41_000,
      transferFromL1CompletedEvent("a", "both", { to }),
      transferFromL1CompletedEvent("b", "both", { to }),
    );
    expect(await find(both)).toMatchObject({ sent: { id: first }, otherTransferIds: [] });
  });

  test.each<[string, ChainEvent]>([
    ["went to another chain", transferSentEvent("a", { from: "optimism", to: "base" })],
    ["has another token", transferSentEvent("a", { from: "optimism", to, token: "DAI" })],
  ])("finds nothing when the send with its ID %s", async (_, sent) => {
    const { optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, sent);
    const bond = addTransaction(arbitrum, 500, withdrawalBondedEvent("a", { to }));
    expect(await find(bond)).toBeUndefined();
    expect(await find(bond, hashFromName("a"))).toBeUndefined();
    optimism.events = [];
    addTransaction(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    expect(await find(bond)).toMatchObject({ sent: { id: hashFromName("a") } });
  });

  test("finds the first transfer that was sent by Hop", async () => {
    const { optimism, arbitrum, find } = setup();
    addTransaction(optimism, 100, transferSentEvent("b", { from: "optimism", to }));
    const both = addTransaction(arbitrum, 500, withdrawalBondedEvent("a", { to }), withdrawalBondedEvent("b", { to }));
    expect(await find(both)).toMatchObject({ sent: { id: hashFromName("b") } });
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
  expect(await resolveStatus(status.sent)).toMatchObject({
    state: "BONDED",
    sent: status.sent,
    delivery: { transactionHash: bond },
  });
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
    const transaction = addTransaction(
      ethereum,
      40_000,
      cctpTransferSentEvent(77n, { from: "ethereum", to }),
      transferSentToL2Event("a", "both", { to }),
    );
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

  test("searches only the blocks in which the index has not", async () => {
    const { optimism, findById } = setup({ maxLogBlocks: 2_000 });
    await findById(hashFromName("unknown"), { lastSearchedBlock: () => 90_000 });
    expect(Math.min(...optimism.searchedRanges.map(({ from }) => from))).toBe(90_001);
  });

  test("finds nothing for a nonce that no chain has", async () => {
    const { base, findById } = setup();
    addTransaction(base, 10, cctpTransferSentEvent(77n, { from: "base", to }));
    expect(await findById("78")).toBeUndefined();
    expect(await findById("77")).toMatchObject({ sent: { source: { slug: "base" } } });
  });
});

test.each(["eth_getBlockByHash", "eth_getTransactionReceipt"])(
  "fails when a chain has the log of a transfer but returns null for %s",
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
  const failOn = (method: string) => (called: string) => {
    if (called === method) throw unavailableError(to);
  };
  test("is not final while its bonder is unknown", async () => {
    const { optimism, arbitrum, findSent } = setupDelivered();
    [optimism.finalized, arbitrum.finalized] = [100, 500];
    arbitrum.beforeResponse = failOn("eth_getTransactionByHash");
    expect(await findSent()).toMatchObject({ isFinal: false, delivery: { bonder: undefined, blockNumber: 500 } });
  });

  test.each([
    ["the bonder", "eth_getTransactionByHash", 10_000, 50, 1_000],
    ["the finality", "eth_getBlockByNumber", 10_000, 50, 1_000],
    ["the finality", "eth_getBlockByNumber", 600, 50, 300],
    // Where everything takes long, the details do too.
    ["the bonder", "eth_getTransactionByHash", 6_000, 2_500, 2_500],
    ["the finality", "eth_getBlockByNumber", 6_000, 4_000, 3_000],
  ])(
    "is returned without %s of the destination when %s hangs: deadline %i ms, %i ms so far, timeout %i ms",
    async (_, method, remainingMs, elapsedMs, timeoutMs) => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const { optimism, arbitrum, findSent } = setupDelivered();
      [optimism.finalized, arbitrum.finalized] = [100, 500];
      arbitrum.beforeResponse = hangOn(method);
      let isSettled = false;
      const status = findSent({ remainingMs: () => remainingMs, elapsedMs: () => elapsedMs }).finally(() => {
        isSettled = true;
      });
      await vi.advanceTimersByTimeAsync(timeoutMs - 1);
      expect(isSettled).toBe(false);
      await vi.advanceTimersByTimeAsync(1);
      expect(isSettled).toBe(true);
      expect(await status).toMatchObject({ state: "BONDED", isFinal: false });
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test("is not final while the source does not tell whether the send is", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { optimism, arbitrum, findSent } = setupDelivered();
    [optimism.finalized, arbitrum.finalized] = [100, 500];
    optimism.beforeResponse = hangOn("eth_getBlockByNumber");
    const status = findSent();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await status).toMatchObject({ state: "BONDED", isFinal: false });
  });
});
