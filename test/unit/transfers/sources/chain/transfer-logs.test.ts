import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../../src/chain/chain-client.js";
import { parseReceipt } from "../../../../../src/chain/json-rpc/parse-results.js";
import { createContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../../src/hop/transfer-events.js";
import {
  parseDeliveries,
  parseSend,
  parseSentTransferIds,
} from "../../../../../src/transfers/sources/chain/transfer-logs.js";
import golden from "../../../../golden/transfers.json" with { type: "json" };
import {
  type ChainEvent,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
  toLog,
} from "../../../../support/stubs/transfer-fixtures.js";
import {
  cctpTransferSentEvent,
  hashFromName,
  mainnetNetwork,
  messageReceivedEvent,
  transferFromL1CompletedEvent,
  transferSentEvent,
  transferSentToL2Event,
  withdrawalBondedEvent,
  withdrewEvent,
} from "../../index/support/hop-events.js";

const book = createContractRegistry(mainnetNetwork);
const receipts = Object.values(golden.receipts);
const receiptOf = (events: readonly ChainEvent[]) => ({
  transactionHash: repeatedByteHash("2b"),
  blockHash: repeatedByteHash("01"),
  from: repeatedByteAddress("c1"),
  logs: events.map((event, index) => toLog(event, 5, index)),
});
const recorded = (transactionHash: string) => {
  const found = receipts.find(({ receipt }) => receipt.transactionHash === transactionHash);
  const receipt = found && parseReceipt({ slug: found.chain } as ChainClient, found.receipt);
  if (receipt === undefined) throw new Error(`no receipt ${transactionHash}`);
  return { chain: getChain(found?.chain ?? ""), receipt };
};
const nothing = {
  ...transferSentEvent("other", { from: "optimism", to: "arbitrum" }),
  topics: [repeatedByteHash("99")],
};

describe("what a recorded transaction sent and delivered", () => {
  test.each(golden.transfers)("$kind", (transfer) => {
    const id = transfer.transferId ?? transfer.sourceTxHash;
    const { chain, receipt } = recorded(transfer.sourceTxHash);
    const sent = parseSentTransferIds(mainnetNetwork, book, chain, receipt);
    expect(sent.map((each) => each.id)).toEqual([id]);
    const [first] = sent;
    expect(first && parseSend(mainnetNetwork, book, chain, first.log)).toMatchObject({
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
    const others = receipt.logs.filter(({ logIndex }) => logIndex !== transfer.sourceLogIndex);
    expect(others.map((log) => parseSend(mainnetNetwork, book, chain, log))).toEqual(others.map(() => undefined));
    expect(parseDeliveries(mainnetNetwork, book, chain, receipt)).toEqual([]);

    const delivery = recorded(transfer.bondTxHash ?? transfer.completedTxHash ?? "");
    expect(delivery.chain.slug).toBe(transfer.destinationChain);
    const event = transfer.transferId === null ? { kind: "l1" } : { kind: "l2", transferId: id, isBond: true };
    expect(parseDeliveries(mainnetNetwork, book, delivery.chain, delivery.receipt)).toMatchObject([
      { event, token: transfer.token },
    ]);
    expect(parseSentTransferIds(mainnetNetwork, book, delivery.chain, delivery.receipt)).toEqual([]);
  });
});

describe("what a transaction sent", () => {
  test("may be several, of several tokens and kinds, in log order", () => {
    const events = [
      transferSentEvent("b", { from: "optimism", to: "arbitrum", token: "USDT" }),
      nothing,
      transferSentEvent("a", { from: "optimism", to: "gnosis" }),
      cctpTransferSentEvent(77n, { from: "optimism", to: "base" }),
    ];
    const sent = parseSentTransferIds(mainnetNetwork, book, getChain("optimism"), receiptOf(events));
    expect(sent.map(({ id, log }) => [id, log.logIndex])).toEqual([
      [hashFromName("b"), 0],
      [hashFromName("a"), 2],
      ["77", 3],
    ]);
    const read = sent.map(({ log }) => parseSend(mainnetNetwork, book, getChain("optimism"), log));
    expect(read.map((each) => [each?.kind, each?.token, each?.destination.slug])).toEqual([
      ["l2", "USDT", "arbitrum"],
      ["l2", "ETH", "gnosis"],
      ["cctp", "USDC", "base"],
    ]);
  });

  test("from L1 has the transaction's hash as its id, in lower case", () => {
    const event = transferSentToL2Event("equal", "one", { to: "arbitrum" });
    const shouted = { ...event, transactionHash: `0x${event.transactionHash.slice(2).toUpperCase()}` };
    const log = toLog({ ...shouted, address: event.address.toUpperCase().replace("0X", "0x") }, 5);
    const id = event.transactionHash;
    expect(parseSend(mainnetNetwork, book, getChain("ethereum"), log)).toMatchObject({
      kind: "l1",
      id,
      transactionHash: id,
    });
    expect(
      parseSentTransferIds(mainnetNetwork, book, getChain("ethereum"), { ...receiptOf([]), logs: [log] }),
    ).toMatchObject([{ id }]);
  });

  test.each<[string, ChainEvent]>([
    [
      "a foreign contract",
      { ...transferSentEvent("a", { from: "optimism", to: "gnosis" }), address: repeatedByteAddress("99") },
    ],
    ["a bridge of another chain", transferSentEvent("a", { from: "arbitrum", to: "gnosis" })],
    ["another event", nothing],
    ["an event cut short", { ...transferSentEvent("a", { from: "optimism", to: "gnosis" }), data: "0x" }],
  ])("is nothing by %s", (_, event) => {
    expect(parseSend(mainnetNetwork, book, getChain("optimism"), toLog(event, 5))).toBeUndefined();
    expect(parseSentTransferIds(mainnetNetwork, book, getChain("optimism"), receiptOf([event]))).toEqual([]);
  });

  test("to a chain that nobody knows is said to be so, and is still one of the transaction's", () => {
    const event = transferSentEvent("a", { from: "optimism", to: "gnosis" });
    const toNowhere = event.topics.with(2, encodeTopic(424_242n));
    const receipt = receiptOf([{ ...event, topics: toNowhere }]);
    expect(parseSentTransferIds(mainnetNetwork, book, getChain("optimism"), receipt)).toMatchObject([
      { id: hashFromName("a") },
    ]);
    const [log] = receipt.logs;
    expect(() => log && parseSend(mainnetNetwork, book, getChain("optimism"), log)).toThrow(
      expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("424242") }),
    );
  });
});

describe("what a transaction delivered", () => {
  test("may be several, in every way, in log order", () => {
    const events = [
      withdrewEvent("b", { to: "arbitrum", token: "USDT" }),
      nothing,
      withdrawalBondedEvent("a", { to: "arbitrum" }),
      messageReceivedEvent(77n, { from: "base", to: "arbitrum" }),
      transferFromL1CompletedEvent("equal", "one", { to: "arbitrum", token: "DAI" }),
    ];
    expect(parseDeliveries(mainnetNetwork, book, getChain("arbitrum"), receiptOf(events))).toMatchObject([
      { event: { kind: "l2", transferId: hashFromName("b"), isBond: false }, token: "USDT", log: { logIndex: 0 } },
      { event: { kind: "l2", transferId: hashFromName("a"), isBond: true }, token: "ETH", log: { logIndex: 2 } },
      { event: { kind: "cctp", nonce: 77n, sourceDomain: 6 }, token: undefined, log: { logIndex: 3 } },
      { event: { kind: "l1", amount: 2_000n }, token: "DAI", log: { logIndex: 4 } },
    ]);
  });

  const bridge = withdrawalBondedEvent("a", { to: "arbitrum" }).address;
  const bridgeOnBase = withdrawalBondedEvent("a", { to: "base" }).address;
  const message = messageReceivedEvent(1n, { from: "base", to: "arbitrum" });
  const transmitter = message.address;
  const burner = cctpTransferSentEvent(1n, { from: "optimism", to: "arbitrum" }).address;
  const cctpBridge = cctpTransferSentEvent(1n, { from: "arbitrum", to: "base" }).address;
  test.each<[string, ChainEvent]>([
    ["a foreign contract", { ...withdrawalBondedEvent("a", { to: "arbitrum" }), address: repeatedByteAddress("99") }],
    ["a bridge of another chain", withdrawalBondedEvent("a", { to: "gnosis" })],
    [
      "a message that another contract sent",
      messageReceivedEvent(1n, { from: "base", to: "arbitrum" }, repeatedByteAddress("99")),
    ],
    [
      "a message that Hop's contract on another chain sent",
      messageReceivedEvent(1n, { from: "base", to: "arbitrum" }, burner),
    ],
    ["a message that a bridge sent", messageReceivedEvent(1n, { from: "base", to: "arbitrum" }, bridgeOnBase)],
    ["a message from a chain that nobody knows", messageReceivedEvent(1n, { from: "gnosis", to: "arbitrum" }, burner)],
    ["a message cut short", { ...message, data: message.data.slice(0, 2 + 2 * (4 * 32 + 4 + 4 * 32 - 1)) }],
    ["a message from a bridge", { ...message, address: bridge }],
    ["a bond from the transmitter", { ...withdrawalBondedEvent("a", { to: "arbitrum" }), address: transmitter }],
    ["a bond from the CCTP bridge", { ...withdrawalBondedEvent("a", { to: "arbitrum" }), address: cctpBridge }],
    ["a sending", transferSentEvent("a", { from: "arbitrum", to: "gnosis" })],
    [
      "topics that are too few",
      {
        ...transferFromL1CompletedEvent("equal", "one", { to: "arbitrum" }),
        topics: [EVENT_TOPICS.transferFromL1Completed],
      },
    ],
  ])("is nothing by %s", (_, event) => {
    expect(parseDeliveries(mainnetNetwork, book, getChain("arbitrum"), receiptOf([event]))).toEqual([]);
  });
});
