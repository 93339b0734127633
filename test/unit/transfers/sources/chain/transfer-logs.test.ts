import { describe, expect, test } from "vitest";
import { createBridgeBook } from "../../../../../src/hop/contract-registry.js";
import { topicOf, topics } from "../../../../../src/hop/transfer-events.js";
import { readReceived, readSend, readSentIds } from "../../../../../src/transfers/sources/chain/transfer-logs.js";
import golden from "../../../../golden/transfers.json" with { type: "json" };
import { address, chainOf, type FakeEvent, hash, logOf } from "../../../../support/stubs/transfer-fixtures.js";
import {
  cctpSent,
  completed,
  hashOf,
  mainnet,
  messageReceived,
  sentToL2,
  transferSent,
  withdrawalBonded,
  withdrew,
} from "../../index/support/hop-events.js";

const book = createBridgeBook(mainnet);
const receipts = Object.values(golden.receipts);
const receiptOf = (events: readonly FakeEvent[]) => ({
  transactionHash: hash("2b"),
  blockHash: hash("01"),
  from: address("c1"),
  logs: events.map((event, index) => logOf(event, 5, index)),
});
const recorded = (transactionHash: string) => {
  const found = receipts.find(({ receipt }) => receipt.transactionHash === transactionHash);
  if (found === undefined) throw new Error(`no receipt ${transactionHash}`);
  return { chain: chainOf(found.chain), receipt: { ...found.receipt, from: address("c1") } };
};
const nothing = {
  ...transferSent("other", { from: "optimism", to: "arbitrum" }),
  topics: [hash("99")],
};

describe("what a recorded transaction sent and delivered", () => {
  test.each(golden.transfers)("$kind", (transfer) => {
    const id = transfer.transferId ?? transfer.sourceTxHash;
    const { chain, receipt } = recorded(transfer.sourceTxHash);
    const sent = readSentIds(mainnet, book, chain, receipt);
    expect(sent.map((each) => each.id)).toEqual([id]);
    const [first] = sent;
    expect(first && readSend(mainnet, book, chain, first.log)).toMatchObject({
      id,
      kind: transfer.transferId === null ? "l1" : "l2",
      token: transfer.token,
      source: { slug: transfer.sourceChain },
      destination: { slug: transfer.destinationChain },
      transactionHash: transfer.sourceTxHash,
      blockNumber: transfer.sourceBlock,
      logIndex: transfer.sourceLogIndex,
      event: { amount: BigInt(transfer.amount), deadline: BigInt(transfer.deadline) },
    });
    const others = receipt.logs.filter(({ logIndex }) => Number(logIndex) !== transfer.sourceLogIndex);
    expect(others.map((log) => readSend(mainnet, book, chain, log))).toEqual(others.map(() => undefined));
    expect(readReceived(mainnet, book, chain, receipt)).toEqual([]);

    const delivery = recorded(transfer.bondTxHash ?? transfer.completedTxHash ?? "");
    expect(delivery.chain.slug).toBe(transfer.destinationChain);
    const event = transfer.transferId === null ? { kind: "l1" } : { kind: "l2", transferId: id, isBond: true };
    expect(readReceived(mainnet, book, delivery.chain, delivery.receipt)).toMatchObject([
      { event, token: transfer.token },
    ]);
    expect(readSentIds(mainnet, book, delivery.chain, delivery.receipt)).toEqual([]);
  });
});

describe("what a transaction sent", () => {
  test("may be several, of several tokens and kinds, in log order", () => {
    const events = [
      transferSent("b", { from: "optimism", to: "arbitrum", token: "USDT" }),
      nothing,
      transferSent("a", { from: "optimism", to: "gnosis" }),
      cctpSent(77n, { from: "optimism", to: "base" }),
    ];
    const sent = readSentIds(mainnet, book, chainOf("optimism"), receiptOf(events));
    expect(sent.map(({ id, log }) => [id, Number(log.logIndex)])).toEqual([
      [hashOf("b"), 0],
      [hashOf("a"), 2],
      ["77", 3],
    ]);
    const read = sent.map(({ log }) => readSend(mainnet, book, chainOf("optimism"), log));
    expect(read.map((each) => [each?.kind, each?.token, each?.destination.slug])).toEqual([
      ["l2", "USDT", "arbitrum"],
      ["l2", "ETH", "gnosis"],
      ["cctp", "USDC", "base"],
    ]);
  });

  test("from L1 has the transaction's hash as its id, in lower case", () => {
    const event = sentToL2("equal", "one", { to: "arbitrum" });
    const shouted = { ...event, transactionHash: `0x${event.transactionHash.slice(2).toUpperCase()}` };
    const log = logOf({ ...shouted, address: event.address.toUpperCase().replace("0X", "0x") }, 5);
    const id = event.transactionHash;
    expect(readSend(mainnet, book, chainOf("ethereum"), log)).toMatchObject({ kind: "l1", id, transactionHash: id });
    expect(readSentIds(mainnet, book, chainOf("ethereum"), { ...receiptOf([]), logs: [log] })).toMatchObject([{ id }]);
  });

  test.each<[string, FakeEvent]>([
    ["a foreign contract", { ...transferSent("a", { from: "optimism", to: "gnosis" }), address: address("99") }],
    ["a bridge of another chain", transferSent("a", { from: "arbitrum", to: "gnosis" })],
    ["another event", nothing],
    ["an event cut short", { ...transferSent("a", { from: "optimism", to: "gnosis" }), data: "0x" }],
  ])("is nothing by %s", (_, event) => {
    expect(readSend(mainnet, book, chainOf("optimism"), logOf(event, 5))).toBeUndefined();
    expect(readSentIds(mainnet, book, chainOf("optimism"), receiptOf([event]))).toEqual([]);
  });

  test("to a chain that nobody knows is said to be so, and is still one of the transaction's", () => {
    const event = transferSent("a", { from: "optimism", to: "gnosis" });
    const toNowhere = event.topics.with(2, topicOf(424_242n));
    const receipt = receiptOf([{ ...event, topics: toNowhere }]);
    expect(readSentIds(mainnet, book, chainOf("optimism"), receipt)).toMatchObject([{ id: hashOf("a") }]);
    const [log] = receipt.logs;
    expect(() => log && readSend(mainnet, book, chainOf("optimism"), log)).toThrow(
      expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("424242") }),
    );
  });
});

describe("what a transaction delivered", () => {
  test("may be several, in every way, in log order", () => {
    const events = [
      withdrew("b", { to: "arbitrum", token: "USDT" }),
      nothing,
      withdrawalBonded("a", { to: "arbitrum" }),
      messageReceived(77n, { from: "base", to: "arbitrum" }),
      completed("equal", "one", { to: "arbitrum", token: "DAI" }),
    ];
    expect(readReceived(mainnet, book, chainOf("arbitrum"), receiptOf(events))).toMatchObject([
      { event: { kind: "l2", transferId: hashOf("b"), isBond: false }, token: "USDT", log: { logIndex: "0x0" } },
      { event: { kind: "l2", transferId: hashOf("a"), isBond: true }, token: "ETH", log: { logIndex: "0x2" } },
      { event: { kind: "cctp", nonce: 77n, sourceDomain: 6 }, token: undefined, log: { logIndex: "0x3" } },
      { event: { kind: "l1", amount: 2_000n }, token: "DAI", log: { logIndex: "0x4" } },
    ]);
  });

  const bridge = withdrawalBonded("a", { to: "arbitrum" }).address;
  const bridgeOnBase = withdrawalBonded("a", { to: "base" }).address;
  const message = messageReceived(1n, { from: "base", to: "arbitrum" });
  const transmitter = message.address;
  const burner = cctpSent(1n, { from: "optimism", to: "arbitrum" }).address;
  const cctpBridge = cctpSent(1n, { from: "arbitrum", to: "base" }).address;
  test.each<[string, FakeEvent]>([
    ["a foreign contract", { ...withdrawalBonded("a", { to: "arbitrum" }), address: address("99") }],
    ["a bridge of another chain", withdrawalBonded("a", { to: "gnosis" })],
    ["a message that another contract sent", messageReceived(1n, { from: "base", to: "arbitrum" }, address("99"))],
    [
      "a message that Hop's contract on another chain sent",
      messageReceived(1n, { from: "base", to: "arbitrum" }, burner),
    ],
    ["a message that a bridge sent", messageReceived(1n, { from: "base", to: "arbitrum" }, bridgeOnBase)],
    ["a message from a chain that nobody knows", messageReceived(1n, { from: "gnosis", to: "arbitrum" }, burner)],
    ["a message cut short", { ...message, data: message.data.slice(0, 2 + 2 * (4 * 32 + 4 + 4 * 32 - 1)) }],
    ["a message from a bridge", { ...message, address: bridge }],
    ["a bond from the transmitter", { ...withdrawalBonded("a", { to: "arbitrum" }), address: transmitter }],
    ["a bond from the CCTP bridge", { ...withdrawalBonded("a", { to: "arbitrum" }), address: cctpBridge }],
    ["a sending", transferSent("a", { from: "arbitrum", to: "gnosis" })],
    [
      "topics that are too few",
      { ...completed("equal", "one", { to: "arbitrum" }), topics: [topics.transferFromL1Completed] },
    ],
  ])("is nothing by %s", (_, event) => {
    expect(readReceived(mainnet, book, chainOf("arbitrum"), receiptOf([event]))).toEqual([]);
  });
});
