import { describe, expect, test } from "vitest";
import {
  parseBlockHeader,
  parseLogs,
  parseReceipt,
  parseSender,
} from "../../../../src/chain/json-rpc/parse-results.js";
import { blockNumbersOf, createLog, createLogChainStub } from "../support/log-chain-stub.js";

const { client } = createLogChainStub([]);
const unlikeHop = expect.objectContaining({
  reason: "UPSTREAM_UNAVAILABLE",
  message: expect.stringContaining("optimism"),
});
const [log, next] = [createLog(7), { ...createLog(7, 1), transactionHash: createLog(7).transactionHash }];
const { transactionHash, blockHash } = log;
const from = `0x${"c1".repeat(20)}`;
const receipt = { transactionHash, blockHash, from, logs: [log, next] };
const shout = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`;

describe("a receipt", () => {
  test("is what it says of its transaction", () => {
    expect(parseReceipt(client, { ...receipt, status: "0x1", type: "0x2" })).toEqual(receipt);
    expect(parseReceipt(client, { ...receipt, logs: [] })).toEqual({ ...receipt, logs: [] });
  });

  test("may not be there", () => {
    expect(parseReceipt(client, null)).toBeUndefined();
  });

  test("may be written in other letters than its logs", () => {
    const shouted = { ...receipt, transactionHash: shout(transactionHash), blockHash: shout(blockHash) };
    expect(parseReceipt(client, shouted)?.logs).toEqual([log, next]);
    const logs = [{ ...log, transactionHash: shout(transactionHash), blockHash: shout(blockHash) }];
    expect(parseReceipt(client, { ...receipt, logs })?.logs).toHaveLength(1);
  });

  test("is without logs that were undone", () => {
    const undone = { ...createLog(8), removed: true };
    expect(parseReceipt(client, { ...receipt, logs: [undone, log] })?.logs).toEqual([log]);
  });

  test.each<[string, unknown]>([
    [
      "a log of another transaction",
      { ...receipt, logs: [log, { ...next, transactionHash: createLog(8).transactionHash }] },
    ],
    ["a log of another block", { ...receipt, logs: [log, { ...next, blockHash: createLog(8).blockHash }] }],
    ["another transaction's hash", { ...receipt, transactionHash: createLog(8).transactionHash }],
    ["another block's hash", { ...receipt, blockHash: createLog(8).blockHash }],
    ["no hash", { ...receipt, transactionHash: undefined, logs: [] }],
    ["a short hash", { ...receipt, transactionHash: "0x12", logs: [] }],
    ["no block", { ...receipt, blockHash: null, logs: [] }],
    ["no sender", { ...receipt, from: null }],
    ["no logs", { ...receipt, logs: undefined }],
    ["a log that is none", { ...receipt, logs: [{ ...log, data: 5 }] }],
    ["a word", transactionHash],
    ["nothing", undefined],
  ])("with %s is none", (_, answer) => {
    expect(() => parseReceipt(client, answer)).toThrow(unlikeHop);
  });
});

describe("logs", () => {
  test("have topics in lower case, and stand", () => {
    const shouted = { ...log, topics: log.topics.map(shout), data: "0x" };
    expect(
      parseLogs(client, [shouted, { ...createLog(8), removed: true }, { ...createLog(9), removed: false }]),
    ).toMatchObject([{ topics: log.topics }, { blockNumber: "0x9" }]);
    expect(blockNumbersOf(parseLogs(client, [createLog(9), createLog(8)]))).toEqual([9, 8]);
  });

  test.each<[string, object]>([
    ["address", { address: "0x1" }],
    ["topics", { topics: null }],
    ["topic", { topics: ["0x1"] }],
    ["data", { data: "" }],
    ["block number", { blockNumber: 7 }],
    ["block", { blockHash: null }],
    ["place", { logIndex: null }],
    ["transaction", { transactionHash: null }],
  ])("with a log without its %s are none", (_, part) => {
    expect(() => parseLogs(client, [log, { ...log, ...part }])).toThrow(unlikeHop);
  });
});

test("hashes and addresses are given in lower case", () => {
  const header = { number: "0x7", hash: shout(createLog(0xab).blockHash), timestamp: "0x10" };
  expect(parseBlockHeader(client, header)).toEqual({ number: 7, hash: createLog(0xab).blockHash, timestamp: 16 });
  expect(parseSender(client, { from: shout(from) })).toBe(from);
});

test.each([null, {}, { from: "0x12" }])("who sent a transaction is not told by %j", (answer) => {
  expect(() => parseSender(client, answer)).toThrow(unlikeHop);
});
