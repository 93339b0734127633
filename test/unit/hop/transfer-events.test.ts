import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import { parseReceipt } from "../../../src/chain/json-rpc/parse-results.js";
import { createContractRegistry } from "../../../src/hop/contract-registry.js";
import { getNetwork } from "../../../src/hop/networks.js";
import {
  decodeReceivedEvent,
  decodeSentEvent,
  eventTopics,
  hasSameTransferFields,
} from "../../../src/hop/transfer-events.js";
import golden from "../../golden/transfers.json" with { type: "json" };

const mainnet = getNetwork("mainnet");
const book = createContractRegistry(mainnet);

const client = { slug: "recorded" } as ChainClient;
const receipts = new Map(
  Object.entries(golden.receipts).map(([hash, { chain, receipt }]) => {
    const parsed = parseReceipt(client, receipt);
    if (parsed === undefined) throw new Error(`no receipt ${hash}`);
    return [hash, { chain, receipt: parsed }];
  }),
);

function receiptOf(hash: string) {
  const found = receipts.get(hash);
  if (found === undefined) throw new Error(`no receipt ${hash}`);
  return found;
}

describe("events of the real contracts", () => {
  test("have the topics that the real contracts wrote", () => {
    const recorded = golden.about.topics;
    expect(eventTopics.transferSent).toBe(recorded.TransferSent);
    expect(eventTopics.transferSentToL2).toBe(recorded.TransferSentToL2);
    expect(eventTopics.transferFromL1Completed).toBe(recorded.TransferFromL1Completed);
    expect(eventTopics.withdrawalBonded).toBe(recorded.WithdrawalBonded);
    expect(eventTopics.withdrew).toBe(recorded.Withdrew);
    expect(eventTopics.cctpTransferSent).toBe(recorded.CCTPTransferSent);
  });

  test.each(golden.transfers)("$kind", (transfer) => {
    const { receipt, chain } = receiptOf(transfer.sourceTxHash);
    const source = mainnet.chains.get(chain);
    if (source === undefined) throw new Error(`no chain ${chain}`);
    const senders = book.getSendingContracts(source);
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

  test("a completion is that of the send with the same values only", () => {
    const transfer = golden.transfers.find(({ completedTxHash }) => completedTxHash !== undefined);
    if (transfer?.completedTxHash === undefined) throw new Error("no completed transfer");
    const event = receiptOf(transfer.sourceTxHash)
      .receipt.logs.map(decodeSentEvent)
      .find((each) => each !== undefined);
    const completion = receiptOf(transfer.completedTxHash).receipt.logs.find(
      ({ topics: [topic] }) => topic === eventTopics.transferFromL1Completed,
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

  test("an event with too little data is none", () => {
    const { receipt } = receiptOf(golden.transfers[0]?.sourceTxHash ?? "");
    const log = receipt.logs.find(({ topics: [topic] }) => topic === eventTopics.transferSentToL2);
    if (log === undefined) throw new Error("no event");
    expect(decodeSentEvent({ ...log, data: log.data.slice(0, -2) })).toBeUndefined();
    expect(decodeSentEvent({ ...log, topics: log.topics.slice(0, 2) })).toBeUndefined();
    for (const { receipt: other } of receipts.values()) {
      for (const received of other.logs.filter((each) => decodeReceivedEvent(each) !== undefined)) {
        expect(decodeReceivedEvent({ ...received, data: received.data.slice(0, -2) })).toBeUndefined();
        expect(decodeReceivedEvent({ ...received, topics: received.topics.slice(0, 1) })).toBeUndefined();
      }
    }
  });
});
