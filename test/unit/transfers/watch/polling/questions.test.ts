import { describe, expect, test } from "vitest";
import { createContractRegistry } from "../../../../../src/hop/contract-registry.js";
import { getNetwork } from "../../../../../src/hop/networks.js";
import {
  EVENT_TOPICS,
  encodeIsTransferIdSpentCall,
  encodeTopic,
  encodeUsedNoncesCall,
} from "../../../../../src/hop/transfer-events.js";
import {
  createAppearanceQuestion,
  createDeliveryQuestion,
  getQuestionKey,
  joinLogFilters,
  type Question,
} from "../../../../../src/transfers/watch/polling/questions.js";
import {
  toCanonicalTargets,
  toTransferQuery,
  type WatchTarget,
} from "../../../../../src/transfers/watch/watch-target.js";
import {
  createSentTransfer,
  getChain,
  repeatedByteAddress,
  repeatedByteHash,
} from "../../../../support/stubs/transfer-fixtures.js";

const network = getNetwork("mainnet");
const contracts = createContractRegistry(network);
const arbitrum = getChain("arbitrum");
const bridge = contracts.findBridge("ETH", arbitrum);
const sendersOf = (slug: string, kind: string) =>
  [...contracts.getSendingContracts(getChain(slug))].filter(([, sender]) => sender.kind === kind).map(([each]) => each);

describe("the question whether a transfer was delivered", () => {
  const { event } = createSentTransfer();

  test("from an L2 is the flag of its ID at the bridge", () => {
    const data = encodeIsTransferIdSpentCall(repeatedByteHash("1a"));
    expect(createDeliveryQuestion(createSentTransfer(), contracts)).toEqual({
      kind: "flag",
      call: { to: bridge, data },
    });
  });

  test("by CCTP is the flag of its nonce at the MessageTransmitter", () => {
    const sent = createSentTransfer({ kind: "cctp", id: "258", token: "USDC" });
    expect(createDeliveryQuestion(sent, contracts)).toEqual({
      kind: "flag",
      call: { to: contracts.findMessageTransmitter(arbitrum), data: encodeUsedNoncesCall(2, 258n) },
    });
    for (const chain of [{ destination: getChain("gnosis") }, { source: getChain("gnosis") }]) {
      expect(createDeliveryQuestion({ ...sent, ...chain }, contracts)).toBeUndefined();
    }
  });

  test("from L1 is the log of its completion, which names recipient and relayer", () => {
    const relayer = repeatedByteAddress("e3");
    const sent = createSentTransfer({ kind: "l1", event: { ...event, relayer } });
    expect(createDeliveryQuestion(sent, contracts)).toEqual({
      kind: "log",
      address: [bridge],
      topics: [EVENT_TOPICS.transferFromL1Completed, encodeTopic(event.recipient), encodeTopic(relayer)],
    });
    expect(createDeliveryQuestion(createSentTransfer({ kind: "l1" }), contracts)).toBeUndefined();
  });

  test("is none on a route that does not exist", () => {
    expect(createDeliveryQuestion(createSentTransfer({ token: "none" }), contracts)).toBeUndefined();
  });
});

describe("the question whether a transfer has appeared", () => {
  const [hash, nonce] = [repeatedByteHash("2b"), "258"];
  const ask = (kind: "id" | "hash", value: string, slug: string) =>
    createAppearanceQuestion({ kind, value }, getChain(slug), contracts);

  test("of a transaction is its receipt, and so is that of an ID on L1", () => {
    expect(ask("hash", hash, "arbitrum")).toEqual({ kind: "receipt", hash });
    expect(ask("id", hash, "ethereum")).toEqual({ kind: "receipt", hash });
  });

  test("of an ID on an L2 is a log of its bridges", () => {
    const address = sendersOf("arbitrum", "l2");
    expect(address).toContain(bridge);
    const topics = [EVENT_TOPICS.transferSent, hash];
    expect(ask("id", hash, "arbitrum")).toEqual({ kind: "log", address, topics });
  });

  test.each(["arbitrum", "ethereum"])("of a nonce on %s is a log of its CCTP contract", (slug) => {
    const address = sendersOf(slug, "cctp");
    expect(address).toHaveLength(1);
    const topics = [EVENT_TOPICS.cctpTransferSent, encodeTopic(258n)];
    expect(ask("id", nonce, slug)).toEqual({ kind: "log", address, topics });
  });

  test("of a nonce is none on a chain without CCTP", () => {
    expect(ask("id", nonce, "gnosis")).toBeUndefined();
  });
});

test("log questions of one event are one filter, which matches all that each of them does", () => {
  const [first, second] = [repeatedByteAddress("c1"), repeatedByteAddress("c2")];
  const question = (address: string[], ...topics: (string | null)[]) => ({ kind: "log", address, topics }) as const;
  expect(
    joinLogFilters([
      question([first], "sent", "1"),
      question([first, second], "sent", "2"),
      question([second], "completed", "3", "4", "5"),
      question([second], "completed", null, "4"),
    ]),
  ).toEqual([
    { address: [first, second], topics: [["sent"], ["1", "2"]] },
    { address: [second], topics: [["completed"], null, ["4"]] },
  ]);
  expect(joinLogFilters([])).toEqual([]);
});

test("equal questions have equal keys, and others do not", () => {
  const log = (address: string[], ...topics: (string | null)[]): Question => ({ kind: "log", address, topics });
  const questions: Question[] = [
    { kind: "receipt", hash: "0x01" },
    { kind: "receipt", hash: "0x02" },
    { kind: "flag", call: { to: "0x01", data: "0x02" } },
    { kind: "flag", call: { to: "0x01", data: "0x03" } },
    ...[log(["a"], "b"), log(["a", "b"], "c"), log(["a"], "b", "c"), log(["a"], "b", null)],
  ];
  expect(new Set(questions.map(getQuestionKey)).size).toBe(questions.length);
  expect(structuredClone(questions).map(getQuestionKey)).toEqual(questions.map(getQuestionKey));
});

test("a target is looked up by its kind, and equal targets are one, in an order that does not depend on theirs", () => {
  const target = (kind: "id" | "hash", value: string, isFull = false): WatchTarget => ({
    network,
    kind,
    value,
    isFull,
  });
  expect(toTransferQuery(target("id", "7"))).toEqual({ transferId: "7", transactionHash: undefined });
  expect(toTransferQuery(target("hash", "0x01"))).toEqual({ transferId: undefined, transactionHash: "0x01" });
  const targets = [target("id", "7"), target("hash", "0x01"), target("id", "7", true), target("id", "0x01")];
  const canonical = toCanonicalTargets([...targets, ...targets]);
  expect(canonical).toHaveLength(4);
  expect(canonical).toEqual(expect.arrayContaining(targets));
  expect(toCanonicalTargets(targets.toReversed())).toEqual(canonical);
});
