import { describe, expect, test } from "vitest";
import {
  parseBlockHeader,
  parseLogs,
  parseReceipt,
  parseSender,
} from "../../../../src/chain/json-rpc/parse-results.js";
import { blockNumbersOf, createLog, createLogChainStub, createRpcLog } from "../support/log-chain-stub.js";

const { client } = createLogChainStub([]);
const invalid = expect.objectContaining({
  reason: "UPSTREAM_UNAVAILABLE",
  message: expect.stringContaining("optimism"),
});
const [log, next] = [createRpcLog(7), { ...createRpcLog(7, 1), transactionHash: createRpcLog(7).transactionHash }];
const { transactionHash, blockHash } = log;
const from = `0x${"c1".repeat(20)}`;
const receipt = { transactionHash, blockHash, from, logs: [log, next] };
const [parsedLog, parsedNext] = [createLog(7), { ...createLog(7, 1), transactionHash }];
const parsedReceipt = { ...receipt, logs: [parsedLog, parsedNext] };
const shout = (hex: string): string => `0x${hex.slice(2).toUpperCase()}`;

describe("parseReceipt", () => {
  test("returns the fields of a receipt, and undefined for null", () => {
    expect(parseReceipt(client, null)).toBeUndefined();
    expect(parseReceipt(client, { ...receipt, status: "0x1", type: "0x2" })).toEqual(parsedReceipt);
    expect(parseReceipt(client, { ...receipt, logs: [] })).toEqual({ ...receipt, logs: [] });
  });

  test("accepts hex of either case and returns lower case", () => {
    const hashes = { transactionHash: shout(transactionHash), blockHash: shout(blockHash) };
    const shouted = { ...hashes, from: shout(from), logs: [{ ...log, ...hashes }] };
    expect(parseReceipt(client, shouted)).toEqual({ ...receipt, logs: [parsedLog] });
  });

  const other = createRpcLog(8);
  test.each<[string, unknown]>([
    ["a log of another transaction", { ...receipt, logs: [log, { ...next, transactionHash: other.transactionHash }] }],
    ["a log of another block", { ...receipt, logs: [log, { ...next, blockHash: other.blockHash }] }],
    ["another transaction's hash", { ...receipt, transactionHash: other.transactionHash }],
    ["another block's hash", { ...receipt, blockHash: other.blockHash }],
    ["no hash", { ...receipt, transactionHash: undefined, logs: [] }],
    ["a short hash", { ...receipt, transactionHash: "0x12", logs: [] }],
    ["no block", { ...receipt, blockHash: null, logs: [] }],
    ["no sender", { ...receipt, from: null }],
    ["no logs", { ...receipt, logs: undefined }],
    ["a log that is none", { ...receipt, logs: [{ ...log, data: 5 }] }],
    ["a word", transactionHash],
    ["nothing", undefined],
  ])("rejects %s", (_, answer) => {
    expect(() => parseReceipt(client, answer)).toThrow(invalid);
  });
});

describe("parseLogs", () => {
  test("returns hex in lower case and numbers as numbers", () => {
    const shouted = {
      ...{ address: shout(log.address), topics: log.topics.map(shout), data: "0xAB", blockNumber: "0xA" },
      ...{ blockHash: shout(log.blockHash), logIndex: "0xB", transactionHash: shout(log.transactionHash) },
    };
    expect(parseLogs(client, [shouted])).toEqual([{ ...parsedLog, data: "0xab", blockNumber: 10, logIndex: 11 }]);
  });

  test("leaves out removed logs", () => {
    expect(
      parseLogs(client, [log, { ...createRpcLog(8), removed: true }, { ...createRpcLog(9), removed: false }]),
    ).toEqual([parsedLog, createLog(9)]);
    expect(blockNumbersOf(parseLogs(client, [createRpcLog(9), createRpcLog(8)]))).toEqual([9, 8]);
  });

  test.each<[string, object]>([
    ["address", { address: "0x1" }],
    ["topics", { topics: null }],
    ["topic", { topics: ["0x1"] }],
    ["data", { data: "" }],
    ["block number", { blockNumber: 7 }],
    ["block number that a double can hold", { blockNumber: "0x20000000000000" }],
    ["block", { blockHash: null }],
    ["log index", { logIndex: null }],
    ["transaction", { transactionHash: null }],
  ])("rejects a log with an invalid %s", (_, part) => {
    expect(() => parseLogs(client, [log, { ...log, ...part }])).toThrow(invalid);
  });
});

test("block headers and senders are returned in lower case", () => {
  const header = { number: "0x7", hash: shout(createRpcLog(0xab).blockHash), timestamp: "0x10" };
  expect(parseBlockHeader(client, header)).toEqual({ number: 7, hash: createRpcLog(0xab).blockHash, timestamp: 16 });
  expect(parseSender(client, { from: shout(from) })).toBe(from);
});

test.each([null, {}, { from: "0x12" }])("parseSender rejects %j", (answer) => {
  expect(() => parseSender(client, answer)).toThrow(invalid);
});
