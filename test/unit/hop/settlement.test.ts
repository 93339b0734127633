import { L1_ERC20_Bridge__factory as L1Bridge, L2_Bridge__factory as L2Bridge } from "@hop-protocol/sdk";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import {
  decodeStoredRoot,
  decodeTransfersCommitted,
  encodeGetTransferRootCall,
  encodeLastCommitTimeCall,
  encodePendingTransferIdCall,
  encodeWithdrawCall,
  FORCE_COMMIT_DELAY_CALL,
  TRANSFERS_COMMITTED_TOPIC,
} from "../../../src/hop/settlement.js";
import {
  createSentTransfer,
  repeatedByteAddress,
  repeatedByteHash,
  toLog,
} from "../../support/stubs/transfer-fixtures.js";

// The ABIs of the SDK are the reference.
const bridge = new utils.Interface(L2Bridge.abi as never);
const root = { rootHash: repeatedByteHash("9a"), totalAmount: 12_345_678_901_234_567_890n };

const log = (topics: readonly string[], data: string) =>
  toLog({ address: repeatedByteAddress("b1"), topics, data, transactionHash: repeatedByteHash("2b") }, 7);

describe("TransfersCommitted", () => {
  const { topics, data } = bridge.encodeEventLog(bridge.getEvent("TransfersCommitted"), [
    42161,
    root.rootHash,
    root.totalAmount,
    1_700_000_000,
  ]);

  test("has the topic of the SDK's ABI", () => {
    expect(TRANSFERS_COMMITTED_TOPIC).toBe(bridge.getEventTopic("TransfersCommitted"));
  });

  test("is decoded", () => {
    expect(decodeTransfersCommitted(log(topics, data))).toEqual({
      ...root,
      destinationChainId: 42161,
      committedAt: 1_700_000_000,
    });
  });

  test.each([
    ["another event", [repeatedByteHash("01"), ...topics.slice(1)], data],
    ["missing topics", topics.slice(0, 2), data],
    ["missing data", topics, "0x"],
    ["too little data", topics, data.slice(0, -2)],
  ])("is not decoded: %s", (_, otherTopics, otherData) => {
    expect(decodeTransfersCommitted(log(otherTopics, otherData))).toBeUndefined();
  });
});

describe("getTransferRoot", () => {
  test.each([
    ["L2", bridge],
    ["L1", new utils.Interface(L1Bridge.abi as never)],
  ])("is encoded and decoded as by the SDK's ABI of the bridge on %s", (_, abi) => {
    expect(encodeGetTransferRootCall(root)).toBe(
      abi.encodeFunctionData("getTransferRoot", [root.rootHash, root.totalAmount]),
    );
    const stored = { total: 5n, amountWithdrawn: 3n, createdAt: 1_700_000_001n };
    expect(decodeStoredRoot(abi.encodeFunctionResult("getTransferRoot", [stored]))).toEqual(stored);
  });

  test("has no result in malformed data", () => {
    expect([decodeStoredRoot("0x"), decodeStoredRoot(`0x${"00".repeat(95)}`)]).toEqual([undefined, undefined]);
  });
});

test("the calls of a withdrawal are those of the SDK's ABI", () => {
  const event = { ...createSentTransfer().event, deadline: 2n ** 255n };
  const nonce = repeatedByteHash("4d");
  for (const siblings of [[], [repeatedByteHash("5e"), repeatedByteHash("6f")]]) {
    const proof = { ...root, transferNonce: nonce, treeIndex: 2, siblings, totalLeaves: 3 };
    const parts = [event.recipient, event.amount, nonce, event.bonderFee, event.amountOutMin, event.deadline];
    expect(encodeWithdrawCall(event, proof)).toBe(
      bridge.encodeFunctionData("withdraw", [...parts, root.rootHash, root.totalAmount, 2, siblings, 3]),
    );
  }
  expect(encodePendingTransferIdCall(42161, 7)).toBe(
    bridge.encodeFunctionData("pendingTransferIdsForChainId", [42161, 7]),
  );
  expect(encodeLastCommitTimeCall(42161)).toBe(bridge.encodeFunctionData("lastCommitTimeForChainId", [42161]));
  expect(FORCE_COMMIT_DELAY_CALL).toBe(bridge.encodeFunctionData("minimumForceCommitDelay"));
});
