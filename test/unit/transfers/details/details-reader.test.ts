import { L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk";
import { utils } from "ethers";
import { describe, expect, test, vi } from "vitest";
import { FinalityTracker } from "../../../../src/chain/heads/finality-tracker.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../src/hop/transfer-events.js";
import { createDetailsReader, deriveSubstate } from "../../../../src/transfers/details/details-reader.js";
import { getPayoutContracts } from "../../../../src/transfers/details/payout.js";
import type { SettlementProgress } from "../../../../src/transfers/details/settlement.js";
import type { Payout, TransferSubstate } from "../../../../src/transfers/details/transfer-details.js";
import { ResumableLogScanner } from "../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import type { LookupContext } from "../../../../src/transfers/sources/transfer-source.js";
import type { SentTransfer, TransferState } from "../../../../src/transfers/status.js";
import { settleAfter } from "../../../support/settle-after.js";
import {
  type ChainEvent,
  createChainAccess,
  createLookupContext,
  createStatus,
  createTransferChainStub,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
  type StatusOverrides,
  unavailableError,
} from "../../../support/stubs/transfer-fixtures.js";

const bridgeAbi = new utils.Interface(L2Bridge.abi as never);
const erc20 = new utils.Interface(["event Transfer(address indexed from, address indexed to, uint256 value)"]);
const rootHash = repeatedByteHash("9a");
const TOTAL = 9_000_000_000_000_000_000n;
const AMOUNT = 2_500_000_000_000_000_000n;
const source = getPayoutContracts(getNetwork("mainnet"), "ETH", getChain("optimism"));
const destination = getPayoutContracts(getNetwork("mainnet"), "ETH", getChain("arbitrum"));

/** A transfer of ETH from Optimism, sent in block 1,000, to Arbitrum, where block 2,000 delivers it. */
function setup() {
  const optimism = createTransferChainStub("optimism");
  const arbitrum = createTransferChainStub("arbitrum");
  const chains = createChainAccess([optimism, arbitrum]);
  const now = () => 0;
  const scanner = new ResumableLogScanner(new AbortController().signal, now);
  const readDetails = createDetailsReader(scanner, new FinalityTracker(now, now));
  const { topics, data } = bridgeAbi.encodeEventLog(bridgeAbi.getEvent("TransferSent"), [
    ...[repeatedByteHash("1a"), 42161, repeatedByteAddress("d2"), AMOUNT, repeatedByteHash("0e"), 0, 0, 0, 0],
  ]);
  const send = { address: source.bridge ?? "", topics, data, transactionHash: repeatedByteHash("2b") };
  const parts = {
    optimism,
    arbitrum,
    read: (status: StatusOverrides = {}, context: Partial<LookupContext> = {}) =>
      readDetails(createStatus(status), createLookupContext({ chains, ...context })),
    readPending: (more: StatusOverrides = {}, context: Partial<LookupContext> = {}) =>
      parts.read({ delivery: undefined, isFinal: false, ...more }, context),
    /** Adds the sending log of another transfer. */
    send(id: string, transactionHash: string, block: number, index: number) {
      const event = { ...send, topics: [topics[0] ?? "", id, ...topics.slice(2)], transactionHash };
      optimism.events.push({ event, block, index });
    },
    commit(block: number, index: number, chainId = 42161, address = source.bridge) {
      const log = bridgeAbi.encodeEventLog(bridgeAbi.getEvent("TransfersCommitted"), [chainId, rootHash, TOTAL, 1]);
      const event = { address: address ?? "", ...log, transactionHash: repeatedByteHash("5c") };
      optimism.events.push({ event, block, index });
    },
    storeRoot(amountWithdrawn = 0n, createdAt = 1n) {
      const call = bridgeAbi.encodeFunctionData("getTransferRoot", [rootHash, TOTAL]);
      const result = bridgeAbi.encodeFunctionResult("getTransferRoot", [{ total: TOTAL, amountWithdrawn, createdAt }]);
      const none = bridgeAbi.encodeFunctionResult("getTransferRoot", [{ total: 0, amountWithdrawn: 0, createdAt: 0 }]);
      arbitrum.contractResult = (to, data) => (to === destination.bridge && data === call ? result : none);
    },
    deliver(block = 2_000) {
      const transactionHash = repeatedByteHash("3c");
      const bond = bridgeAbi.encodeEventLog(bridgeAbi.getEvent("WithdrawalBonded"), [repeatedByteHash("1a"), AMOUNT]);
      const paid = erc20.encodeEventLog(erc20.getEvent("Transfer"), [destination.pool, destination.ammWrapper, 7n]);
      const events: ChainEvent[] = [
        { address: destination.bridge ?? "", ...bond, transactionHash },
        { address: destination.token ?? "", ...paid, transactionHash },
      ];
      arbitrum.events.push(...events.map((event, index) => ({ event, block, index })));
    },
  };
  parts.storeRoot(0n, 0n);
  optimism.events.push({ event: send, block: 1_000, index: 3 });
  return parts;
}

describe("a pending transfer from an L2", () => {
  const fromExplorer = { source: "explorer", sent: { blockNumber: 0, logIndex: 0 } } as const;

  test("waits for a bonder while its root is not committed", async () => {
    const { readPending, storeRoot, optimism } = setup();
    storeRoot();
    optimism.finalized = 999;
    expect(await readPending()).toEqual({
      substate: "WAITING_FOR_BONDER",
      payout: undefined,
      source: { blockNumber: 1_000, timestamp: 1_700_000_000, isFinal: false },
      destination: undefined,
    });
  });

  test.each<[string, TransferSubstate, Parameters<ReturnType<typeof setup>["commit"]>]>([
    ["before it was sent", "WAITING_FOR_BONDER", [999, 9]],
    ["in its block before it, as by the send that fills a collection", "WAITING_FOR_BONDER", [1_000, 2]],
    ["to another destination", "WAITING_FOR_BONDER", [1_001, 0, 8453]],
    ["by another contract", "WAITING_FOR_BONDER", [1_001, 0, 42161, repeatedByteAddress("ee")]],
    ["in its block after it", "WITHDRAWABLE", [1_000, 4]],
    ["in the next block", "WITHDRAWABLE", [1_001, 0]],
    ["much later", "WITHDRAWABLE", [90_000, 0]],
  ])("where a root that has arrived was committed %s is %s", async (_, substate, place) => {
    const { commit, storeRoot, readPending } = setup();
    commit(...place);
    storeRoot();
    expect((await readPending()).substate).toBe(substate);
  });

  test("cannot be withdrawn from a root that holds less than its amount", async () => {
    const { readPending, commit, storeRoot } = setup();
    commit(1_001, 0);
    storeRoot(TOTAL - AMOUNT + 1n);
    expect((await readPending()).substate).toBe("WAITING_FOR_SETTLEMENT");
    storeRoot(TOTAL - AMOUNT);
    expect((await readPending()).substate).toBe("WITHDRAWABLE");
  });

  test("follows a reorg that takes its commit away", async () => {
    const { readPending, commit, optimism } = setup();
    commit(99_990, 0);
    expect((await readPending()).substate).toBe("WAITING_FOR_SETTLEMENT");
    optimism.events.pop();
    expect((await readPending()).substate).toBe("WAITING_FOR_BONDER");
  });

  test.each([
    ["does not have its own log", () => {}],
    ["has its commit but not its own log", ({ commit }: ReturnType<typeof setup>) => commit(1_001, 0)],
  ])("has no details while the source %s", async (_, change) => {
    const parts = setup();
    parts.optimism.events = [];
    change(parts);
    await expect(parts.readPending()).rejects.toThrow("optimism currently returns incomplete logs");
  });

  test("is told apart from the others of its transaction, and of other transactions", async () => {
    const { readPending, send, commit } = setup();
    const [second, third, fourth] = [repeatedByteHash("1b"), repeatedByteHash("1c"), repeatedByteHash("1d")];
    const other = repeatedByteHash("2c");
    send(second, repeatedByteHash("2b"), 1_000, 2);
    send(third, other, 1_000, 5);
    commit(1_000, 6);
    send(fourth, other, 1_000, 7);
    const substates = [
      readPending(),
      readPending({ sent: { id: second, logIndex: 2 } }),
      readPending({ sent: { id: third, transactionHash: other, logIndex: 5 } }),
      readPending({ sent: { id: fourth, transactionHash: other, logIndex: 7 } }),
    ].map(async (details) => (await details).substate);
    expect(await Promise.all(substates)).toEqual([...Array(3).fill("WAITING_FOR_SETTLEMENT"), "WAITING_FOR_BONDER"]);
  });

  test("searches for its own log and for commits to its destination, in one request", async () => {
    const { readPending, optimism } = setup();
    const getLogs = vi.spyOn(optimism.client, "getLogs");
    optimism.head = 1_500;
    await readPending();
    expect(getLogs).toHaveBeenCalledTimes(1);
    const { filter, range } = getLogs.mock.calls[0]?.[0] ?? {};
    const events = [EVENT_TOPICS.transferSent, bridgeAbi.getEventTopic("TransfersCommitted")];
    const topics = [events, [repeatedByteHash("1a"), encodeTopic(42161n)]];
    expect(filter).toEqual({ address: source.bridge, topics });
    expect(range).toEqual({ from: 1_000, to: 1_500 });
  });

  test("believes a caller's own endpoint for that caller only", async () => {
    const { readPending, commit, optimism, arbitrum } = setup();
    const own = { chains: createChainAccess([optimism, arbitrum], ["optimism"]) };
    commit(1_001, 0);
    expect((await readPending({}, own)).substate).toBe("WAITING_FOR_SETTLEMENT");
    optimism.events.pop();
    expect((await readPending()).substate).toBe("WAITING_FOR_BONDER");
  });

  test.each<[string, Partial<SentTransfer>]>([
    ["without the token", { token: "none" }],
    ["without the token at its source", { token: "USDT", source: getChain("polygonzk") }],
    ["without the token at its destination", { token: "USDT", destination: getChain("polygonzk") }],
  ])("has no details on a route %s", async (_, sent) => {
    await expect(setup().readPending({ sent })).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: `${sent.source?.slug ?? "optimism"} returned a transfer of ${sent.token} on a route that does not exist`,
    });
  });

  test("is found among the other logs of its sending transaction, which is read once", async () => {
    const { readPending, send, optimism } = setup();
    const paid = erc20.encodeEventLog(erc20.getEvent("Transfer"), [source.pool, source.ammWrapper, 7n]);
    const event = { address: source.token ?? "", ...paid, transactionHash: repeatedByteHash("2b") };
    optimism.events.unshift({ event, block: 1_000, index: 1 });
    send(repeatedByteHash("1b"), repeatedByteHash("2b"), 1_000, 4);
    optimism.events.push(...optimism.events.splice(1, 1));
    const pending = readPending(fromExplorer);
    expect(await pending).toMatchObject({ substate: "WAITING_FOR_BONDER", source: { blockNumber: 1_000 } });
    expect(optimism.methods.filter((method) => method === "eth_getTransactionReceipt")).toHaveLength(1);
  });

  test.each([
    ["is missing", () => {}, {}],
    [
      "does not have its log",
      ({ send }: ReturnType<typeof setup>) => send(repeatedByteHash("1b"), repeatedByteHash("2b"), 1_000, 3),
      { message: "optimism has replaced the block of this transfer" },
    ],
  ])("has no details while its sending transaction %s", async (_, change, error) => {
    const parts = setup();
    parts.optimism.events = [];
    change(parts);
    await expect(parts.readPending(fromExplorer)).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE", ...error });
  });

  test("is looked for in its sending transaction when it comes from the explorer, which names no block", async () => {
    const { readPending, commit } = setup();
    commit(1_000, 2);
    const waiting = { substate: "WAITING_FOR_BONDER", source: { blockNumber: 1_000 } };
    expect(await readPending(fromExplorer)).toMatchObject(waiting);
    commit(99_990, 0);
    expect((await readPending(fromExplorer)).substate).toBe("WAITING_FOR_SETTLEMENT");
  });

  test.each(["optimism", "arbitrum"] as const)("has no details while %s does not tell", async (slug) => {
    const parts = setup();
    parts.commit(1_001, 0);
    parts.storeRoot();
    parts[slug].beforeResponse = () => Promise.reject(unavailableError(slug));
    await expect(parts.readPending()).rejects.toThrow(`${slug} is down`);
  });
});

test("pending transfers from L1 and over CCTP wait without any read but that of the finalized block", async () => {
  const { readPending, optimism, arbitrum } = setup();
  expect((await readPending({ sent: { kind: "l1" } })).substate).toBe("WAITING_FOR_MESSAGE");
  expect((await readPending({ sent: { kind: "cctp", id: "7" } })).substate).toBe("WAITING_FOR_ATTESTATION");
  expect([optimism.methods, arbitrum.methods]).toEqual([["eth_getBlockByNumber"], []]);
});

describe("a received transfer", () => {
  test("has both legs and what was paid, in one round where the block is known", async () => {
    const { read, deliver, arbitrum, optimism } = setup();
    deliver();
    expect(await read()).toEqual({
      substate: "RECEIVED",
      payout: { amount: 7n, token: "ETH", isUnrequestedHToken: false },
      source: { blockNumber: 1_000, timestamp: 1_700_000_000, isFinal: true },
      destination: { blockNumber: 2_000, timestamp: arbitrum.timestampOf(2_000), isFinal: true },
    });
    expect(optimism.methods).toEqual([]);
    expect(arbitrum.methods.toSorted()).toEqual(["eth_getBlockByNumber", "eth_getTransactionReceipt"]);
  });

  test("has the block of the receipt after a reorg moved the delivery", async () => {
    const { read, deliver, arbitrum } = setup();
    deliver(2_005);
    const { destination: leg } = await read({ isFinal: false });
    expect(leg).toEqual({ blockNumber: 2_005, timestamp: arbitrum.timestampOf(2_005), isFinal: false });
  });

  test("is final where the chains say so", async () => {
    const { read, deliver, arbitrum, optimism } = setup();
    deliver();
    [optimism.finalized, arbitrum.finalized] = [1_000, 1_999];
    const legs = { source: { isFinal: true }, destination: { isFinal: false } };
    expect(await read({ isFinal: false })).toMatchObject(legs);
  });

  test.each(["optimism", "arbitrum"] as const)(
    "is not final on %s while that does not tell for a second",
    async (slug) => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      const parts = setup();
      parts.deliver();
      for (const chain of [parts.optimism, parts.arbitrum]) chain.finalized = chain.head;
      const readsHead = (method: string) => method === "eth_getBlockByNumber" && parts[slug].methods.length > 2;
      const hanging = new Promise<void>(() => {});
      parts[slug].beforeResponse = (method) => (slug === "optimism" || readsHead(method) ? hanging : undefined);
      const details = parts.read({ isFinal: false });
      await vi.advanceTimersByTimeAsync(1_000);
      expect(await details).toMatchObject({
        source: { isFinal: slug !== "optimism" },
        destination: { isFinal: slug !== "arbitrum" },
      });
    },
  );

  test("is not waited for longer than half of what remains, where only its finality is missing", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { read, deliver, optimism } = setup();
    deliver();
    optimism.beforeResponse = () => new Promise(() => {});
    const details = read({ isFinal: false }, { remainingMs: () => 400 });
    expect(await settleAfter(details, 200)).toMatchObject({ substate: "RECEIVED", source: { isFinal: false } });
  });

  test("has the block of the receipt where no other is known", async () => {
    const { read, deliver, arbitrum } = setup();
    deliver();
    const delivery = { transactionHash: repeatedByteHash("3c"), blockNumber: undefined, bonder: undefined };
    const leg = { blockNumber: 2_000, timestamp: arbitrum.timestampOf(2_000) };
    expect(await read({ delivery })).toMatchObject({ destination: leg });
    expect(arbitrum.methods).toEqual(["eth_getTransactionReceipt", "eth_getBlockByHash"]);
  });

  test("has no details while the delivering transaction is missing or does not deliver it", async () => {
    const { read, arbitrum } = setup();
    await expect(read()).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    const event = { address: destination.bridge ?? "", topics: [EVENT_TOPICS.withdrawalBonded], data: "0x" };
    arbitrum.events.push({ event: { ...event, transactionHash: repeatedByteHash("3c") }, block: 2_000 });
    await expect(read()).rejects.toThrow("arbitrum has replaced the block of this transfer");
  });

  test("by a transaction that the explorer names wrongly was received, in what token is not known", async () => {
    const { read, arbitrum } = setup();
    const event = { address: repeatedByteAddress("ee"), topics: [encodeTopic(1n)], data: "0x" };
    arbitrum.events.push({ event: { ...event, transactionHash: repeatedByteHash("3c") }, block: 2_000 });
    expect(await read({ source: "explorer" })).toMatchObject({ substate: "RECEIVED", payout: undefined });
  });

  test("by an unknown transaction reads nothing of the destination", async () => {
    const { read, arbitrum } = setup();
    const delivery = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
    expect(await read({ delivery })).toMatchObject({ substate: "RECEIVED", payout: undefined, destination: undefined });
    expect(arbitrum.methods).toEqual([]);
  });

  test.each([
    ["that does not answer", "eth_"],
    ["only its receipt is missing", "eth_getTransactionReceipt"],
  ])("from the explorer has no block of the source while %s", async (_, failing) => {
    const { read, deliver, optimism } = setup();
    deliver();
    optimism.finalized = optimism.head;
    optimism.beforeResponse = (method) =>
      method.startsWith(failing) ? Promise.reject(unavailableError("optimism")) : undefined;
    expect(await read({ source: "explorer", isFinal: false, sent: { blockNumber: 0 } })).toMatchObject({
      substate: "RECEIVED",
      payout: { amount: 7n },
      source: { blockNumber: 0, timestamp: 1_700_000_000, isFinal: false },
    });
  });
});

describe("the substate", () => {
  const token: Payout = { amount: 5n, token: "USDT", isUnrequestedHToken: false };
  const hToken: Payout = { amount: 5n, token: "hUSDT", isUnrequestedHToken: true };

  // What the tests above do not show.
  test.each<
    [SentTransfer["kind"], TransferState, SettlementProgress | undefined, Payout | undefined, TransferSubstate]
  >([
    ["l2", "UNBONDABLE", "NOT_COMMITTED", undefined, "WAITING_FOR_SETTLEMENT"],
    ["l2", "UNBONDABLE", "COMMITTED", undefined, "WAITING_FOR_SETTLEMENT"],
    ["l2", "UNBONDABLE", "ARRIVED", undefined, "WITHDRAWABLE"],
    ["l2", "BONDED", undefined, hToken, "RECEIVED_HTOKEN"],
    ["l2", "BONDED", undefined, { ...hToken, isUnrequestedHToken: false }, "RECEIVED"],
    ["l1", "BONDED", undefined, hToken, "RECEIVED_HTOKEN"],
    ["cctp", "BONDED", undefined, token, "RECEIVED"],
  ])(
    "of a transfer of kind %s that is %s with settlement %s and payout %o is %s",
    (kind, state, settlement, payout, substate) => {
      expect(deriveSubstate({ state, sent: { kind } }, settlement, payout)).toBe(substate);
    },
  );
});
