import { describe, expect, test } from "vitest";
import { RevertError } from "../../../../src/chain/json-rpc/rpc-errors.js";
import {
  canonicalize,
  getComparison,
  getNamedBlock,
  getReadKind,
  needsHead,
  pinCall,
} from "../../../../src/chain/quorum/canonical-answer.js";

const hash = (digit: string): string => `0x${digit.repeat(64)}`;
const call = (method: string, ...params: unknown[]) => ({ method, params });
const textOf = (method: string, result: unknown, block?: number): string =>
  canonicalize(call(method), { result }, block).text;

const log = (logIndex: number) => ({
  address: `0x${"Aa".repeat(20)}`,
  topics: [hash("1")],
  data: "0xAB",
  blockNumber: "0x5",
  blockHash: hash("b"),
  logIndex: `0x${logIndex.toString(16)}`,
  transactionHash: hash("c"),
});
const receipt = {
  ...{ transactionHash: hash("c"), blockHash: hash("b"), blockNumber: "0x5", from: "0x1", to: "0x2", status: "0x1" },
  logs: [log(1), log(2)],
};

describe("the canonical form of an answer", () => {
  test("ignores what nodes add, the case of hex, padding and the order of logs", () => {
    const other = {
      ...receipt,
      blockNumber: "0x0005",
      transactionHash: hash("C"),
      logs: [{ ...log(2), logIndex: "0x02", blockTimestamp: "0x77" }, log(1)],
      effectiveGasPrice: "0x9",
    };
    expect(textOf("eth_getTransactionReceipt", other)).toBe(textOf("eth_getTransactionReceipt", receipt));
  });

  test.each([
    ["the status", { status: "0x0" }],
    ["the sender", { from: "0x9" }],
    ["the block", { blockHash: hash("d") }],
    ["a log left out", { logs: [log(1)] }],
    ["a log invented", { logs: [log(1), log(2), log(3)] }],
    ["the data of a log", { logs: [log(1), { ...log(2), data: "0xac" }] }],
    ["a topic", { logs: [log(1), { ...log(2), topics: [hash("2")] }] }],
  ])("of a receipt differs with %s", (_, change) => {
    const changed = { ...receipt, ...change };
    expect(textOf("eth_getTransactionReceipt", changed)).not.toBe(textOf("eth_getTransactionReceipt", receipt));
  });

  test("takes what happened after the common block for not found", () => {
    for (const [method, result] of [
      ["eth_getTransactionReceipt", receipt],
      ["eth_getTransactionByHash", { hash: hash("c"), blockNumber: "0x5" }],
      ["eth_getTransactionByHash", { hash: hash("c"), blockNumber: null }],
      ["eth_getBlockByHash", { hash: hash("b"), number: "0x5" }],
    ] as const) {
      const beyond = canonicalize(call(method), { result }, 4);
      expect(beyond).toEqual({ text: textOf(method, null), isBeyond: true });
    }
    expect(canonicalize(call("eth_getTransactionReceipt"), { result: receipt }, 5).isBeyond).toBeUndefined();
  });

  test("leaves out logs that a reorg removed", () => {
    expect(textOf("eth_getLogs", [log(1), { ...log(2), removed: true }])).toBe(textOf("eth_getLogs", [log(1)]));
  });

  test("tells the results of contracts and reverts apart by their bytes", () => {
    expect(textOf("eth_call", "0x0A")).toBe(textOf("eth_call", "0x0a"));
    expect(textOf("eth_call", "0x0a")).not.toBe(textOf("eth_call", "0x0b"));
    expect(textOf("eth_call", "0x00")).not.toBe(textOf("eth_call", "0x0000"));
    const revert = (data?: string) =>
      canonicalize(call("eth_call"), { revert: new RevertError("no", 3, data) }, 1).text;
    expect(revert("0xAB")).toBe(revert("0xab"));
    expect(revert("0xab")).not.toBe(revert("0xac"));
    expect(revert()).toBe(revert("0x"));
    expect(revert()).not.toBe(textOf("eth_call", "0x"));
  });

  test("of gas is a quantity, of finality the number of a block", () => {
    expect(canonicalize(call("eth_gasPrice"), { result: "0x10" }, 1).quantity).toBe(16n);
    expect(canonicalize(call("eth_estimateGas"), { result: "0x10" }, 1).quantity).toBe(16n);
    const finalized = call("eth_getBlockByNumber", "finalized", false);
    expect(canonicalize(finalized, { result: { number: "0x10" } }, 1).quantity).toBe(16n);
    expect(canonicalize(finalized, { result: null }, 1).quantity).toBe(-1n);
    expect([getReadKind(finalized), getComparison(finalized)]).toEqual(["finality", "tag"]);
    expect(getComparison(call("eth_getBlockByNumber", "0x1", false))).toBe("exact");
  });
});

test.each([
  [call("eth_call", { to: "0x1" }, "latest"), call("eth_call", { to: "0x1" }, "0x10")],
  [call("eth_call", { to: "0x1" }), call("eth_call", { to: "0x1" }, "0x10")],
  [call("eth_getBlockByNumber", "latest", false), call("eth_getBlockByNumber", "0x10", false)],
  [call("eth_getStorageAt", "0x1", "0x0", "latest"), call("eth_getStorageAt", "0x1", "0x0", "0x10")],
  [call("eth_getLogs", { fromBlock: "0x1" }), call("eth_getLogs", { fromBlock: "0x1", toBlock: "0x10" })],
  [
    call("eth_getLogs", { fromBlock: "latest", toBlock: "latest" }),
    call("eth_getLogs", { fromBlock: "0x10", toBlock: "0x10" }),
  ],
])("%j is asked about a block that all have", (latest, pinned) => {
  expect(needsHead(latest)).toBe(true);
  expect(pinCall(latest, 16)).toEqual(pinned);
  expect(getNamedBlock(pinned)).toBe(16);
  expect(needsHead(pinned)).toBe(false);
});

test.each([
  call("eth_call", { to: "0x1" }, "0x5"),
  call("eth_getBlockByNumber", "0x5", false),
  call("eth_getLogs", { fromBlock: "0x1", toBlock: "0x5" }),
  call("eth_gasPrice"),
  call("eth_estimateGas", { to: "0x1" }),
])("%j stays as it is and needs no head", (named) => {
  expect(needsHead(named)).toBe(false);
  expect(pinCall(named, 16)).toEqual(named);
});

test.each([
  call("eth_getTransactionReceipt", "0x1"),
  call("eth_getTransactionByHash", "0x1"),
  call("eth_getBlockByHash", "0x1", false),
  call("eth_getBlockByNumber", "finalized", false),
])("%j stays as it is and depends on the head", (dependent) => {
  expect(needsHead(dependent)).toBe(true);
  expect(pinCall(dependent, 16)).toEqual(dependent);
  expect(getNamedBlock(dependent)).toBeUndefined();
});
