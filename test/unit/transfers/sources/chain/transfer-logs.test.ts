import { describe, expect, test } from "vitest";
import type { Log } from "../../../../../src/chain/json-rpc/parse-results.js";
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
const foreign = repeatedByteAddress("99");
const parseSends = (slug: string, receipt: ReturnType<typeof createReceipt>) =>
  parseSentTransferIds(mainnetNetwork, contracts, getChain(slug), receipt);
const parseLog = (slug: string, log: Log) => parseSend(mainnetNetwork, contracts, getChain(slug), log);
const sentToGnosis = transferSentEvent("a", { from: "optimism", to: "gnosis" });
const unknownEvent = { ...sentToGnosis, topics: [repeatedByteHash("99")] };

describe("the sends of a transaction", () => {
  test("are listed in log order, across tokens and kinds", () => {
    const events = [
      transferSentEvent("b", { from: "optimism", to: "arbitrum", token: "USDT" }),
      unknownEvent,
      sentToGnosis,
      cctpTransferSentEvent(77n, { from: "optimism", to: "base" }),
    ];
    const sent = parseSends("optimism", createReceipt(events));
    expect(sent.map(({ id, log }) => [id, log.logIndex])).toEqual([
      [hashFromName("b"), 0],
      [hashFromName("a"), 2],
      ["77", 3],
    ]);
    const parsed = sent.map(({ log }) => parseLog("optimism", log));
    expect(parsed.map((send) => [send?.kind, send?.token, send?.destination.slug])).toEqual([
      ["l2", "USDT", "arbitrum"],
      ["l2", "ETH", "gnosis"],
      ["cctp", "USDC", "base"],
    ]);
  });

  test("from L1 have the transaction's hash as ID, in lower case", () => {
    const event = transferSentToL2Event("equal", "one", { to: "arbitrum" });
    const id = event.transactionHash;
    const transactionHash = `0x${id.slice(2).toUpperCase()}`;
    const log = toLog({ ...event, transactionHash, address: event.address.toUpperCase().replace("0X", "0x") }, 5);
    expect(parseLog("ethereum", log)).toMatchObject({ kind: "l1", id, transactionHash: id });
    expect(parseSends("ethereum", { ...createReceipt([]), logs: [log] })).toMatchObject([{ id }]);
  });

  test.each<[string, ChainEvent]>([
    ["a foreign contract", { ...sentToGnosis, address: foreign }],
    ["a bridge of another chain", transferSentEvent("a", { from: "arbitrum", to: "gnosis" })],
    ["another event", unknownEvent],
    ["a truncated event", { ...sentToGnosis, data: "0x" }],
  ])("do not include %s", (_, event) => {
    expect(parseLog("optimism", toLog(event, 5))).toBeUndefined();
    expect(parseSends("optimism", createReceipt([event]))).toEqual([]);
  });

  test("to an unknown chain are listed but cannot be parsed", () => {
    const log = toLog({ ...sentToGnosis, topics: sentToGnosis.topics.with(2, encodeTopic(424_242n)) }, 5);
    expect(parseSends("optimism", { ...createReceipt([]), logs: [log] })).toMatchObject([{ id: hashFromName("a") }]);
    expect(() => parseLog("optimism", log)).toThrow(
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

  const bond = withdrawalBondedEvent("a", { to: "arbitrum" });
  const bondOnBase = withdrawalBondedEvent("a", { to: "base" });
  const fromBase = { from: "base", to: "arbitrum" };
  const message = messageReceivedEvent(1n, fromBase);
  const burner = cctpTransferSentEvent(1n, { from: "optimism", to: "arbitrum" }).address;
  const cctpBridge = cctpTransferSentEvent(1n, { from: "arbitrum", to: "base" }).address;
  const completion = transferFromL1CompletedEvent("equal", "one", { to: "arbitrum" });
  test.each<[string, ChainEvent]>([
    ["a foreign contract", { ...bond, address: foreign }],
    ["a bridge of another chain", withdrawalBondedEvent("a", { to: "gnosis" })],
    ["a message that another contract sent", messageReceivedEvent(1n, fromBase, foreign)],
    ["a message that Hop's contract on another chain sent", messageReceivedEvent(1n, fromBase, burner)],
    ["a message that a bridge sent", messageReceivedEvent(1n, fromBase, bondOnBase.address)],
    ["a message from an unknown domain", messageReceivedEvent(1n, { from: "gnosis", to: "arbitrum" }, burner)],
    ["a truncated message", { ...message, data: message.data.slice(0, 2 + 2 * (4 * 32 + 4 + 4 * 32 - 1)) }],
    ["a message from a bridge", { ...message, address: bond.address }],
    ["a bond from the transmitter", { ...bond, address: message.address }],
    ["a bond from the CCTP bridge", { ...bond, address: cctpBridge }],
    ["a send", transferSentEvent("a", { from: "arbitrum", to: "gnosis" })],
    ["an event with too few topics", { ...completion, topics: [EVENT_TOPICS.transferFromL1Completed] }],
  ])("do not include %s", (_, event) => {
    expect(parseDeliveries(contracts, getChain("arbitrum"), createReceipt([event]))).toEqual([]);
  });
});
