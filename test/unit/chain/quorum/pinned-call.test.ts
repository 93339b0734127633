import { expect, test } from "vitest";
import { getNamedBlock, needsHead, pinCall } from "../../../../src/chain/quorum/canonical-answer.js";

const call = (method: string, ...params: unknown[]) => ({ method, params });

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
