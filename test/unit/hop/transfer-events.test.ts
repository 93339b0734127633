import { describe, expect, test } from "vitest";
import { createBridgeBook } from "../../../src/hop/contract-registry.js";
import { networkOf } from "../../../src/hop/networks.js";
import { decodeReceived, decodeSent, haveEqualValues, topics } from "../../../src/hop/transfer-events.js";
import golden from "../../golden/transfers.json" with { type: "json" };

const mainnet = networkOf("mainnet");
const book = createBridgeBook(mainnet);

type Receipts = Record<string, (typeof golden.receipts)[keyof typeof golden.receipts]>;
const receipts: Receipts = golden.receipts;

function receiptOf(hash: string) {
  const found = receipts[hash];
  if (found === undefined) throw new Error(`no receipt ${hash}`);
  return found;
}

describe("events of the real contracts", () => {
  test("have the topics that the real contracts wrote", () => {
    const recorded = golden.about.topics;
    expect(topics.transferSent).toBe(recorded.TransferSent);
    expect(topics.transferSentToL2).toBe(recorded.TransferSentToL2);
    expect(topics.transferFromL1Completed).toBe(recorded.TransferFromL1Completed);
    expect(topics.withdrawalBonded).toBe(recorded.WithdrawalBonded);
    expect(topics.withdrew).toBe(recorded.Withdrew);
    expect(topics.cctpTransferSent).toBe(recorded.CCTPTransferSent);
  });

  test.each(golden.transfers)("$kind", (transfer) => {
    const { receipt, chain } = receiptOf(transfer.sourceTxHash);
    const source = mainnet.chains.get(chain);
    if (source === undefined) throw new Error(`no chain ${chain}`);
    const senders = book.senders(source);
    const sent = receipt.logs.flatMap((log) => {
      const event = senders.has(log.address) ? decodeSent(log) : undefined;
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
      .receipt.logs.map(decodeSent)
      .find((each) => each !== undefined);
    const completion = receiptOf(transfer.completedTxHash).receipt.logs.find(
      ({ topics: [topic] }) => topic === topics.transferFromL1Completed,
    );
    if (event === undefined || completion === undefined) throw new Error("no event");
    const completed = decodeReceived(completion);
    if (completed?.kind !== "l1") throw new Error("no completion");
    expect(haveEqualValues(event, completed)).toBe(true);
    for (const other of [
      { ...event, amount: event.amount + 1n },
      { ...event, amountOutMin: event.amountOutMin + 1n },
      { ...event, deadline: event.deadline + 1n },
      { ...event, bonderFee: event.bonderFee + 1n },
      { ...event, recipient: `0x${"22".repeat(20)}` },
      { ...event, relayer: `0x${"22".repeat(20)}` },
    ]) {
      expect(haveEqualValues(other, completed)).toBe(false);
    }
  });

  test("an event with too little data is none", () => {
    const { receipt } = receiptOf(golden.transfers[0]?.sourceTxHash ?? "");
    const log = receipt.logs.find(({ topics: [topic] }) => topic === topics.transferSentToL2);
    if (log === undefined) throw new Error("no event");
    expect(decodeSent({ ...log, data: log.data.slice(0, -2) })).toBeUndefined();
    expect(decodeSent({ ...log, topics: log.topics.slice(0, 2) })).toBeUndefined();
    for (const { receipt: other } of Object.values(receipts)) {
      for (const received of other.logs.filter((each) => decodeReceived(each) !== undefined)) {
        expect(decodeReceived({ ...received, data: received.data.slice(0, -2) })).toBeUndefined();
        expect(decodeReceived({ ...received, topics: received.topics.slice(0, 1) })).toBeUndefined();
      }
    }
  });
});
