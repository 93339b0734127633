import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import { parseReceipt } from "../../../src/chain/json-rpc/parse-results.js";
import { ContractRegistry } from "../../../src/hop/contract-registry.js";
import { getNetwork } from "../../../src/hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  decodeTransferLeaf,
  EVENT_TOPICS,
  hasSameTransferFields,
} from "../../../src/hop/transfer-events.js";
import golden from "../../golden/transfers.json" with { type: "json" };

const mainnet = getNetwork("mainnet");
const registry = new ContractRegistry(mainnet);

const client = { slug: "recorded" } as ChainClient;
const receipts = new Map(
  Object.entries(golden.receipts).map(([hash, { chain, receipt }]) => {
    const parsed = parseReceipt(client, receipt);
    if (parsed === undefined) throw new Error(`no receipt ${hash}`);
    return [hash, { chain, receipt: parsed }];
  }),
);

function getReceipt(hash: string) {
  const receipt = receipts.get(hash);
  if (receipt === undefined) throw new Error(`no receipt ${hash}`);
  return receipt;
}

describe("recorded events of the deployed contracts", () => {
  test("have the recorded topics", () => {
    const recorded = golden.about.topics;
    expect(EVENT_TOPICS.transferSent).toBe(recorded.TransferSent);
    expect(EVENT_TOPICS.transferSentToL2).toBe(recorded.TransferSentToL2);
    expect(EVENT_TOPICS.transferFromL1Completed).toBe(recorded.TransferFromL1Completed);
    expect(EVENT_TOPICS.withdrawalBonded).toBe(recorded.WithdrawalBonded);
    expect(EVENT_TOPICS.withdrew).toBe(recorded.Withdrew);
    expect(EVENT_TOPICS.cctpTransferSent).toBe(recorded.CCTPTransferSent);
  });

  test.each(golden.transfers)("decode to the recorded transfer: $kind", (transfer) => {
    const { receipt, chain } = getReceipt(transfer.sourceTxHash);
    const source = mainnet.chains.get(chain);
    if (source === undefined) throw new Error(`no chain ${chain}`);
    const senders = registry.getSendingContracts(source);
    const sent = receipt.logs.flatMap((log) => {
      const event = senders.has(log.address) ? decodeSentEvent(log) : undefined;
      return event ? [{ event, token: senders.get(log.address)?.token }] : [];
    });
    expect(sent).toHaveLength(1);
    expect(sent[0]).toEqual({
      token: transfer.token,
      event: {
        transferId: transfer.transferId ?? undefined,
        destinationChainId: transfer.destinationChainId,
        recipient: transfer.recipient.toLowerCase(),
        amount: BigInt(transfer.amount),
        amountOutMin: BigInt(transfer.amountOutMin),
        deadline: BigInt(transfer.deadline),
        bonderFee: BigInt(transfer.bonderFee),
        relayer: transfer.relayer?.toLowerCase(),
      },
    });
  });

  test("decode to the nonce that makes the transfer ID, and to its place in the tree", () => {
    const leaves = golden.transfers.flatMap(({ sourceTxHash }) =>
      getReceipt(sourceTxHash).receipt.logs.flatMap((log) => {
        const [event, leaf] = [decodeSentEvent(log), decodeTransferLeaf(log)];
        return event && leaf ? [{ event, leaf }] : [];
      }),
    );
    expect(leaves.map(({ leaf }) => leaf.treeIndex)).toEqual([0, 0]);
    for (const { event, leaf } of leaves) {
      const { destinationChainId, recipient, amount, bonderFee, amountOutMin, deadline } = event;
      const fields = [destinationChainId, recipient, amount, leaf.transferNonce, bonderFee, amountOutMin, deadline];
      const types = ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"];
      expect(utils.keccak256(utils.defaultAbiCoder.encode(types, fields))).toBe(event.transferId);
    }
  });

  test("match a send with a completion only if all fields are equal", () => {
    const transfer = golden.transfers.find(({ completedTxHash }) => completedTxHash !== undefined);
    if (transfer?.completedTxHash === undefined) throw new Error("no completed transfer");
    const event = getReceipt(transfer.sourceTxHash)
      .receipt.logs.map(decodeSentEvent)
      .find((decoded) => decoded !== undefined);
    const completion = getReceipt(transfer.completedTxHash).receipt.logs.find(
      ({ topics: [topic] }) => topic === EVENT_TOPICS.transferFromL1Completed,
    );
    if (event === undefined || completion === undefined) throw new Error("no event");
    const completed = decodeReceivedEvent(completion);
    if (completed?.kind !== "l1") throw new Error("no completion");
    expect(hasSameTransferFields(event, completed)).toBe(true);
    for (const other of [
      { ...event, amount: event.amount + 1n },
      { ...event, amountOutMin: event.amountOutMin + 1n },
      { ...event, deadline: event.deadline + 1n },
      { ...event, bonderFee: event.bonderFee + 1n },
      { ...event, recipient: `0x${"22".repeat(20)}` },
      { ...event, relayer: `0x${"22".repeat(20)}` },
    ]) {
      expect(hasSameTransferFields(other, completed)).toBe(false);
    }
  });

  test("are ignored with too few topics or too little data", () => {
    const { receipt } = getReceipt(golden.transfers[0]?.sourceTxHash ?? "");
    const log = receipt.logs.find(({ topics: [topic] }) => topic === EVENT_TOPICS.transferSentToL2);
    if (log === undefined) throw new Error("no event");
    expect(decodeSentEvent({ ...log, data: log.data.slice(0, -2) })).toBeUndefined();
    expect(decodeSentEvent({ ...log, topics: log.topics.slice(0, 2) })).toBeUndefined();
    for (const { receipt: other } of receipts.values()) {
      for (const received of other.logs.filter((log) => decodeReceivedEvent(log) !== undefined)) {
        expect(decodeReceivedEvent({ ...received, data: received.data.slice(0, -2) })).toBeUndefined();
        expect(decodeReceivedEvent({ ...received, topics: received.topics.slice(0, 1) })).toBeUndefined();
      }
    }
  });
});
