import { describe, expect, test } from "vitest";
import { ContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { EVENT_TOPICS, encodeTopic } from "../../../../../src/hop/transfer-events.js";
import {
  parseDeliveries,
  parseSend,
  parseSentTransferIds,
} from "../../../../../src/transfers/sources/chain/transfer-logs.js";
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

const contracts = new ContractRegistry(mainnetNetwork);
const createReceipt = (events: readonly ChainEvent[]) => ({
  transactionHash: repeatedByteHash("2b"),
  blockHash: repeatedByteHash("01"),
  from: repeatedByteAddress("c1"),
  logs: events.map((event, index) => toLog(event, 5, index)),
});
const unknownEvent = {
  ...transferSentEvent("other", { from: "optimism", to: "arbitrum" }),
  topics: [repeatedByteHash("99")],
};

describe("the sends of a transaction", () => {
  test("are listed in log order, across tokens and kinds", () => {
    const events = [
      transferSentEvent("b", { from: "optimism", to: "arbitrum", token: "USDT" }),
      unknownEvent,
      transferSentEvent("a", { from: "optimism", to: "gnosis" }),
      cctpTransferSentEvent(77n, { from: "optimism", to: "base" }),
    ];
    const sent = parseSentTransferIds(mainnetNetwork, contracts, getChain("optimism"), createReceipt(events));
    expect(sent.map(({ id, log }) => [id, log.logIndex])).toEqual([
      [hashFromName("b"), 0],
      [hashFromName("a"), 2],
      ["77", 3],
    ]);
    const parsed = sent.map(({ log }) => parseSend(mainnetNetwork, contracts, getChain("optimism"), log));
    expect(parsed.map((send) => [send?.kind, send?.token, send?.destination.slug])).toEqual([
      ["l2", "USDT", "arbitrum"],
      ["l2", "ETH", "gnosis"],
      ["cctp", "USDC", "base"],
    ]);
  });

  test("from L1 have the transaction's hash as ID, in lower case", () => {
    const event = transferSentToL2Event("equal", "one", { to: "arbitrum" });
    const upperCaseEvent = { ...event, transactionHash: `0x${event.transactionHash.slice(2).toUpperCase()}` };
    const log = toLog({ ...upperCaseEvent, address: event.address.toUpperCase().replace("0X", "0x") }, 5);
    const id = event.transactionHash;
    expect(parseSend(mainnetNetwork, contracts, getChain("ethereum"), log)).toMatchObject({
      kind: "l1",
      id,
      transactionHash: id,
    });
    expect(
      parseSentTransferIds(mainnetNetwork, contracts, getChain("ethereum"), { ...createReceipt([]), logs: [log] }),
    ).toMatchObject([{ id }]);
  });

  test.each<[string, ChainEvent]>([
    [
      "a foreign contract",
      { ...transferSentEvent("a", { from: "optimism", to: "gnosis" }), address: repeatedByteAddress("99") },
    ],
    ["a bridge of another chain", transferSentEvent("a", { from: "arbitrum", to: "gnosis" })],
    ["another event", unknownEvent],
    ["a truncated event", { ...transferSentEvent("a", { from: "optimism", to: "gnosis" }), data: "0x" }],
  ])("do not include %s", (_, event) => {
    expect(parseSend(mainnetNetwork, contracts, getChain("optimism"), toLog(event, 5))).toBeUndefined();
    expect(parseSentTransferIds(mainnetNetwork, contracts, getChain("optimism"), createReceipt([event]))).toEqual([]);
  });

  test("to an unknown chain are listed but cannot be parsed", () => {
    const event = transferSentEvent("a", { from: "optimism", to: "gnosis" });
    const topics = event.topics.with(2, encodeTopic(424_242n));
    const receipt = createReceipt([{ ...event, topics }]);
    expect(parseSentTransferIds(mainnetNetwork, contracts, getChain("optimism"), receipt)).toMatchObject([
      { id: hashFromName("a") },
    ]);
    const [log] = receipt.logs;
    expect(() => log && parseSend(mainnetNetwork, contracts, getChain("optimism"), log)).toThrow(
      expect.objectContaining({ reason: "UPSTREAM_UNAVAILABLE", message: expect.stringContaining("424242") }),
    );
  });
});

describe("the deliveries of a transaction", () => {
  test("are listed in log order, across all kinds", () => {
    const events = [
      withdrewEvent("b", { to: "arbitrum", token: "USDT" }),
      unknownEvent,
      withdrawalBondedEvent("a", { to: "arbitrum" }),
      messageReceivedEvent(77n, { from: "base", to: "arbitrum" }),
      transferFromL1CompletedEvent("equal", "one", { to: "arbitrum", token: "DAI" }),
    ];
    expect(parseDeliveries(contracts, getChain("arbitrum"), createReceipt(events))).toMatchObject([
      { event: { kind: "l2", transferId: hashFromName("b"), isBond: false }, token: "USDT", log: { logIndex: 0 } },
      { event: { kind: "l2", transferId: hashFromName("a"), isBond: true }, token: "ETH", log: { logIndex: 2 } },
      { event: { kind: "cctp", nonce: 77n, sourceDomain: 6 }, token: "USDC", log: { logIndex: 3 } },
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
    ["a message from an unknown domain", messageReceivedEvent(1n, { from: "gnosis", to: "arbitrum" }, burner)],
    ["a truncated message", { ...message, data: message.data.slice(0, 2 + 2 * (4 * 32 + 4 + 4 * 32 - 1)) }],
    ["a message from a bridge", { ...message, address: bridge }],
    ["a bond from the transmitter", { ...withdrawalBondedEvent("a", { to: "arbitrum" }), address: transmitter }],
    ["a bond from the CCTP bridge", { ...withdrawalBondedEvent("a", { to: "arbitrum" }), address: cctpBridge }],
    ["a send", transferSentEvent("a", { from: "arbitrum", to: "gnosis" })],
    [
      "an event with too few topics",
      {
        ...transferFromL1CompletedEvent("equal", "one", { to: "arbitrum" }),
        topics: [EVENT_TOPICS.transferFromL1Completed],
      },
    ],
  ])("do not include %s", (_, event) => {
    expect(parseDeliveries(contracts, getChain("arbitrum"), createReceipt([event]))).toEqual([]);
  });
});
