import { afterEach, describe, expect, test, vi } from "vitest";
import { createBlockFinder } from "../../../../../src/chain/read/block-finder.js";
import { createFinalityTracker } from "../../../../../src/chain/read/finality-tracker.js";
import { createChainSource } from "../../../../../src/transfers/sources/chain/chain-source.js";
import { createResumableLogScanner } from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import { type LookupContext, querySource } from "../../../../../src/transfers/sources/transfer-source.js";
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
} from "../../index/support/hop-events.js";

const to = "arbitrum";

function setup({ most = Number.POSITIVE_INFINITY } = {}) {
  const ethereum = createTransferChainStub("ethereum", { most });
  const optimism = createTransferChainStub("optimism", { most });
  const base = createTransferChainStub("base", { most });
  const arbitrum = createTransferChainStub(to, { most });
  const source = createChainSource({
    blockTimes: createBlockFinder({ now: () => 0 }),
    logScanner: createResumableLogScanner(new AbortController().signal),
    finality: createFinalityTracker({ now: () => 0, wallNow: () => 0 }),
    now: () => 12_345,
  });
  const chains = createChainAccess([ethereum, optimism, base, arbitrum]);
  return {
    ethereum,
    optimism,
    base,
    arbitrum,
    find: async (transactionHash: string, transferId?: string, more: Partial<LookupContext> = {}) =>
      querySource(source, { transactionHash, transferId }, createLookupContext({ chains, ...more })),
  };
}

/** Puts events of one transaction in a block. */
function put(chain: TransferChainStub, block: number, ...events: readonly ChainEvent[]): string {
  const transactionHash = events[0]?.transactionHash ?? "";
  for (const [index, event] of events.entries()) {
    chain.events.push({ event: { ...event, transactionHash }, block, index });
  }
  return transactionHash;
}

afterEach(() => {
  vi.useRealTimers();
});

describe("by the transaction that delivered it", () => {
  const burnt = cctpTransferSentEvent(77n, { from: "base", to });
  const minted = messageReceivedEvent(77n, { from: "base", to });
  const foreign = messageReceivedEvent(99n, { from: "base", to }, repeatedByteAddress("55"));

  test("a CCTP transfer, without the messages of others beside it", async () => {
    const { base, arbitrum, find } = setup();
    put(base, 10, burnt);
    const transaction = put(arbitrum, 100, foreign, minted);
    expect(await find(transaction)).toMatchObject({ sent: { id: "77" }, otherTransferIds: [], state: "BONDED" });
  });

  test("nothing where it is the message of others, and no chain is searched for it", async () => {
    const { base, arbitrum, find } = setup({ most: 2_000 });
    expect(await find(put(arbitrum, 100, foreign))).toBeUndefined();
    expect(base.searchedRanges).toEqual([]);
  });

  test("one of several from L1, which are told apart by the transactions that sent them", async () => {
    const { ethereum, arbitrum, find } = setup();
    const one = put(ethereum, 40_000, transferSentToL2Event("a", "one", { to }));
    const two = put(ethereum, 40_001, transferSentToL2Event("b", "two", { to }));
    const both = put(
      arbitrum,
      41_000,
      transferFromL1CompletedEvent("a", "both", { to }),
      transferFromL1CompletedEvent("b", "both", { to }),
    );
    expect(await find(both)).toMatchObject({ sent: { id: one }, otherTransferIds: [two] });
    expect(await find(both, two)).toMatchObject({ sent: { id: two }, otherTransferIds: [one] });
    expect(await find(both, hashFromName("three"))).toBeUndefined();
  });

  test("one of several, of which nobody sent another", async () => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = put(
      arbitrum,
      500,
      transferFromL1CompletedEvent("b", "both", { to }),
      withdrawalBondedEvent("a", { to }),
    );
    for (const id of [undefined, hashFromName("a")]) {
      expect(await find(both, id)).toMatchObject({ sent: { id: hashFromName("a") }, otherTransferIds: [] });
    }
  });

  test("the one that is meant, whatever keeps another from being traced back", async () => {
    const { optimism, base, arbitrum, find } = setup();
    put(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = put(arbitrum, 500, withdrawalBondedEvent("b", { to }), withdrawalBondedEvent("a", { to }));
    base.beforeResponse = (method) => {
      if (method === "eth_getLogs") throw unavailableError("base");
    };
    expect(await find(both, hashFromName("a"))).toMatchObject({
      sent: { id: hashFromName("a") },
      otherTransferIds: [hashFromName("b")],
    });
    await expect(find(both)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message: "base is down" });
  });

  test("one of several, of which another cannot be traced back now", async () => {
    const { ethereum, optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const both = put(
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

  test("two sends of one transaction on L1, whose id is not also the other's", async () => {
    const { ethereum, arbitrum, find } = setup();
    const one = put(
      ethereum,
      40_000,
      transferSentToL2Event("a", "one", { to }),
      transferSentToL2Event("b", "one", { to }),
    );
    const both = put(
      arbitrum,
      41_000,
      transferFromL1CompletedEvent("a", "both", { to }),
      transferFromL1CompletedEvent("b", "both", { to }),
    );
    expect(await find(both)).toMatchObject({ sent: { id: one }, otherTransferIds: [] });
  });

  test.each<[string, ChainEvent]>([
    ["went to another chain", transferSentEvent("a", { from: "optimism", to: "base" })],
    ["is one of another token", transferSentEvent("a", { from: "optimism", to, token: "DAI" })],
  ])("nothing where what has its id %s", async (_, sent) => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, sent);
    const bond = put(arbitrum, 500, withdrawalBondedEvent("a", { to }));
    expect(await find(bond)).toBeUndefined();
    expect(await find(bond, hashFromName("a"))).toBeUndefined();
    optimism.events = [];
    put(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    expect(await find(bond)).toMatchObject({ sent: { id: hashFromName("a") } });
  });

  test("the first that is one of Hop's", async () => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSentEvent("b", { from: "optimism", to }));
    const both = put(arbitrum, 500, withdrawalBondedEvent("a", { to }), withdrawalBondedEvent("b", { to }));
    expect(await find(both)).toMatchObject({ sent: { id: hashFromName("b") } });
  });
});

test("of two sends from L1 in one transaction the one's id is not also the other's", async () => {
  const { ethereum, find } = setup();
  const both = [transferSentToL2Event("a", "both", { to }), transferSentToL2Event("b", "both", { to })];
  expect(await find(put(ethereum, 40_000, ...both))).toMatchObject({
    sent: { id: both[0]?.transactionHash, logIndex: 0 },
    otherTransferIds: [],
  });
});

test.each(["eth_getBlockByHash", "eth_getTransactionReceipt"])(
  "a chain that has the log of a transfer, and nothing to say to %s, cannot tell",
  async (missing) => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSentEvent("a", { from: "optimism", to }));
    const bond = put(arbitrum, 500, withdrawalBondedEvent("a", { to }));
    const { send } = optimism.client;
    optimism.client.send = async (method, params, signal) => (method === missing ? null : send(method, params, signal));
    const cannotTell = { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("optimism") };
    await expect(find(bond)).rejects.toMatchObject(cannotTell);
  },
);

describe("an arrival", () => {
  const sent = transferSentEvent("a", { from: "optimism", to });
  function arrived() {
    const all = setup();
    all.arbitrum.contractResult = () => 1n;
    put(all.arbitrum, 500, withdrawalBondedEvent("a", { to }));
    const transaction = put(all.optimism, 100, sent);
    return { ...all, look: (more?: Partial<LookupContext>) => all.find(transaction, undefined, more) };
  }

  test.each([
    [100, 500, true],
    [99, 500, false],
    [100, 499, false],
    [undefined, 500, false],
    [100, undefined, false],
  ])("with blocks that stay up to %s and %s: final is %s", async (source, destination, isFinal) => {
    const { optimism, arbitrum, look } = arrived();
    [optimism.finalized, arbitrum.finalized] = [source, destination];
    expect(await look()).toMatchObject({ state: "BONDED", isFinal });
  });

  const hangs = (method: string) => (asked: string) => (asked === method ? createDeferred<void>().promise : undefined);
  const fails = (method: string) => (asked: string) => {
    if (asked === method) throw unavailableError(to);
  };
  test("is not final while it is not known who brought it", async () => {
    const { optimism, arbitrum, look } = arrived();
    [optimism.finalized, arbitrum.finalized] = [100, 500];
    arbitrum.beforeResponse = fails("eth_getTransactionByHash");
    expect(await look()).toMatchObject({ isFinal: false, delivery: { bonder: undefined, blockNumber: 500 } });
  });

  test.each([
    ["who brought it", "eth_getTransactionByHash", 10_000, 1_000],
    ["what stays", "eth_getBlockByNumber", 10_000, 1_000],
    ["what stays", "eth_getBlockByNumber", 600, 300],
  ])("is told without %s, when %s hangs, of %i ms after %i", async (_, method, leftMs, patience) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { optimism, arbitrum, look } = arrived();
    [optimism.finalized, arbitrum.finalized] = [100, 500];
    arbitrum.beforeResponse = hangs(method);
    let isOver = false;
    const found = look({ remainingMs: () => leftMs }).finally(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(patience - 1);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver).toBe(true);
    expect(await found).toMatchObject({ state: "BONDED", isFinal: false });
    expect(vi.getTimerCount()).toBe(0);
  });
});
