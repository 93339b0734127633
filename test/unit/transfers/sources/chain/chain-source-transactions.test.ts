import { afterEach, describe, expect, test, vi } from "vitest";
import { createBlockTimes } from "../../../../../src/chain/read/block-finder.js";
import { createFinality } from "../../../../../src/chain/read/finality-tracker.js";
import { createChainSource } from "../../../../../src/transfers/sources/chain/chain-source.js";
import { createLogTrails } from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import { ask, type LookUpContext } from "../../../../../src/transfers/sources/transfer-source.js";
import {
  accessTo,
  address,
  contextOf,
  type FakeChain,
  type FakeEvent,
  fakeChain,
  pending,
  unavailable,
} from "../../../../support/stubs/transfer-fixtures.js";
import {
  cctpSent,
  completed,
  hashOf,
  messageReceived,
  sentToL2,
  transferSent,
  withdrawalBonded,
} from "../../index/support/hop-events.js";

const to = "arbitrum";

function setup({ most = Number.POSITIVE_INFINITY } = {}) {
  const ethereum = fakeChain("ethereum", { most });
  const optimism = fakeChain("optimism", { most });
  const base = fakeChain("base", { most });
  const arbitrum = fakeChain(to, { most });
  const source = createChainSource({
    blockTimes: createBlockTimes({ now: () => 0 }),
    trails: createLogTrails(new AbortController().signal),
    finality: createFinality({ now: () => 0, wallNow: () => 0 }),
    now: () => 12_345,
  });
  const chains = accessTo([ethereum, optimism, base, arbitrum]);
  return {
    ethereum,
    optimism,
    base,
    arbitrum,
    find: async (transactionHash: string, transferId?: string, more: Partial<LookUpContext> = {}) =>
      ask(source, { transactionHash, transferId }, contextOf({ chains, ...more })),
  };
}

/** Puts events of one transaction in a block. */
function put(chain: FakeChain, block: number, ...events: readonly FakeEvent[]): string {
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
  const burnt = cctpSent(77n, { from: "base", to });
  const minted = messageReceived(77n, { from: "base", to });
  const foreign = messageReceived(99n, { from: "base", to }, address("55"));

  test("a CCTP transfer, without the messages of others beside it", async () => {
    const { base, arbitrum, find } = setup();
    put(base, 10, burnt);
    const transaction = put(arbitrum, 100, foreign, minted);
    expect(await find(transaction)).toMatchObject({ sent: { id: "77" }, otherTransferIds: [], state: "BONDED" });
  });

  test("nothing where it is the message of others, and no chain is searched for it", async () => {
    const { base, arbitrum, find } = setup({ most: 2_000 });
    expect(await find(put(arbitrum, 100, foreign))).toBeUndefined();
    expect(base.searched).toEqual([]);
  });

  test("one of several from L1, which are told apart by the transactions that sent them", async () => {
    const { ethereum, arbitrum, find } = setup();
    const one = put(ethereum, 40_000, sentToL2("a", "one", { to }));
    const two = put(ethereum, 40_001, sentToL2("b", "two", { to }));
    const both = put(arbitrum, 41_000, completed("a", "both", { to }), completed("b", "both", { to }));
    expect(await find(both)).toMatchObject({ sent: { id: one }, otherTransferIds: [two] });
    expect(await find(both, two)).toMatchObject({ sent: { id: two }, otherTransferIds: [one] });
    expect(await find(both, hashOf("three"))).toBeUndefined();
  });

  test("one of several, of which nobody sent another", async () => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSent("a", { from: "optimism", to }));
    const both = put(arbitrum, 500, completed("b", "both", { to }), withdrawalBonded("a", { to }));
    for (const id of [undefined, hashOf("a")]) {
      expect(await find(both, id)).toMatchObject({ sent: { id: hashOf("a") }, otherTransferIds: [] });
    }
  });

  test("the one that is meant, whatever keeps another from being traced back", async () => {
    const { optimism, base, arbitrum, find } = setup();
    put(optimism, 100, transferSent("a", { from: "optimism", to }));
    const both = put(arbitrum, 500, withdrawalBonded("b", { to }), withdrawalBonded("a", { to }));
    base.before = (method) => {
      if (method === "eth_getLogs") throw unavailable("base");
    };
    expect(await find(both, hashOf("a"))).toMatchObject({ sent: { id: hashOf("a") }, otherTransferIds: [hashOf("b")] });
    await expect(find(both)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", message: "base is down" });
  });

  test("one of several, of which another cannot be traced back now", async () => {
    const { ethereum, optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSent("a", { from: "optimism", to }));
    const both = put(arbitrum, 500, completed("b", "both", { to }), withdrawalBonded("a", { to }));
    ethereum.before = (method) => {
      if (method === "eth_getLogs") throw unavailable("ethereum");
    };
    expect(await find(both, hashOf("a"))).toMatchObject({ sent: { id: hashOf("a") }, otherTransferIds: [] });
  });

  test("two sends of one transaction on L1, whose id is not also the other's", async () => {
    const { ethereum, arbitrum, find } = setup();
    const one = put(ethereum, 40_000, sentToL2("a", "one", { to }), sentToL2("b", "one", { to }));
    const both = put(arbitrum, 41_000, completed("a", "both", { to }), completed("b", "both", { to }));
    expect(await find(both)).toMatchObject({ sent: { id: one }, otherTransferIds: [] });
  });

  test.each<[string, FakeEvent]>([
    ["went to another chain", transferSent("a", { from: "optimism", to: "base" })],
    ["is one of another token", transferSent("a", { from: "optimism", to, token: "DAI" })],
  ])("nothing where what has its id %s", async (_, sent) => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, sent);
    const bond = put(arbitrum, 500, withdrawalBonded("a", { to }));
    expect(await find(bond)).toBeUndefined();
    expect(await find(bond, hashOf("a"))).toBeUndefined();
    optimism.events = [];
    put(optimism, 100, transferSent("a", { from: "optimism", to }));
    expect(await find(bond)).toMatchObject({ sent: { id: hashOf("a") } });
  });

  test("the first that is one of Hop's", async () => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSent("b", { from: "optimism", to }));
    const both = put(arbitrum, 500, withdrawalBonded("a", { to }), withdrawalBonded("b", { to }));
    expect(await find(both)).toMatchObject({ sent: { id: hashOf("b") } });
  });
});

test("of two sends from L1 in one transaction the one's id is not also the other's", async () => {
  const { ethereum, find } = setup();
  const both = [sentToL2("a", "both", { to }), sentToL2("b", "both", { to })];
  expect(await find(put(ethereum, 40_000, ...both))).toMatchObject({
    sent: { id: both[0]?.transactionHash, logIndex: 0 },
    otherTransferIds: [],
  });
});

test.each(["eth_getBlockByHash", "eth_getTransactionReceipt"])(
  "a chain that has the log of a transfer, and nothing to say to %s, cannot tell",
  async (missing) => {
    const { optimism, arbitrum, find } = setup();
    put(optimism, 100, transferSent("a", { from: "optimism", to }));
    const bond = put(arbitrum, 500, withdrawalBonded("a", { to }));
    const { send } = optimism.client;
    optimism.client.send = async (method, params, signal) => (method === missing ? null : send(method, params, signal));
    const cannotTell = { reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("optimism") };
    await expect(find(bond)).rejects.toMatchObject(cannotTell);
  },
);

describe("an arrival", () => {
  const sent = transferSent("a", { from: "optimism", to });
  function arrived() {
    const all = setup();
    all.arbitrum.answer = () => 1n;
    put(all.arbitrum, 500, withdrawalBonded("a", { to }));
    const transaction = put(all.optimism, 100, sent);
    return { ...all, look: (more?: Partial<LookUpContext>) => all.find(transaction, undefined, more) };
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

  const hangs = (method: string) => (asked: string) => (asked === method ? pending<void>().promise : undefined);
  const fails = (method: string) => (asked: string) => {
    if (asked === method) throw unavailable(to);
  };
  test("is not final while it is not known who brought it", async () => {
    const { optimism, arbitrum, look } = arrived();
    [optimism.finalized, arbitrum.finalized] = [100, 500];
    arbitrum.before = fails("eth_getTransactionByHash");
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
    arbitrum.before = hangs(method);
    let isOver = false;
    const found = look({ leftMs: () => leftMs }).finally(() => {
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
