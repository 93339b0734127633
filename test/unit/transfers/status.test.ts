import { describe, expect, test } from "vitest";
import type { TransferKind } from "../../../src/hop/contract-registry.js";
import { isImmutableStatus, type TransferState } from "../../../src/transfers/status.js";
import type { TransferDelivery } from "../../../src/transfers/transfer.js";
import { createSentTransfer, createStatus, defaultDelivery, getChain } from "../../support/stubs/transfer-fixtures.js";

const unknown: TransferDelivery = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
const withdrawn: TransferDelivery = { ...defaultDelivery, bonder: undefined };

/** What may ask for a swap at the destination. */
const asking = [
  { amountOutMin: 0n, deadline: 0n },
  { amountOutMin: 1n, deadline: 0n },
  { amountOutMin: 0n, deadline: 1n },
  { amountOutMin: 1n, deadline: 1n },
];
const never: readonly TransferState[] = ["PENDING", "PENDING", "PENDING", "PENDING"];

const sentAs = (kind: TransferKind, destination: string, event: object = {}) => ({
  kind,
  destination: getChain(destination),
  event: { ...createSentTransfer().event, ...event },
});

describe("the state of a transfer", () => {
  test.each<[TransferKind, string, readonly TransferState[]]>([
    ["l2", "ethereum", ["PENDING", "UNBONDABLE", "UNBONDABLE", "UNBONDABLE"]],
    ["l2", "arbitrum", never],
    ["l1", "arbitrum", never],
    ["cctp", "arbitrum", never],
    ["cctp", "ethereum", never],
  ])("over %s to %s, before it is received and after", (kind, destination, states) => {
    const of = (delivery: TransferDelivery | undefined) =>
      asking.map((event) => createStatus({ sent: sentAs(kind, destination, event), delivery }).state);
    expect(of(undefined)).toEqual(states);
    for (const delivery of [unknown, withdrawn, defaultDelivery]) {
      expect(of(delivery)).toEqual(["BONDED", "BONDED", "BONDED", "BONDED"]);
    }
  });

  test("comes with all that is known of it", () => {
    const facts = { source: "index", observedAtMs: 7, isFinal: false, priceUsd: 3, otherTransferIds: ["5"] } as const;
    const sent = createSentTransfer();
    expect(createStatus({ ...facts, delivery: undefined })).toEqual({
      ...facts,
      sent,
      delivery: undefined,
      state: "PENDING",
    });
  });
});

describe("a status is settled", () => {
  test.each<[string, boolean, Parameters<typeof createStatus>[0]]>([
    ["bonded in blocks that stay", true, {}],
    ["withdrawn by nobody knows whom", true, { delivery: withdrawn }],
    ["bonded in blocks that may be undone", false, { isFinal: false }],
    ["received, not known by what", false, { delivery: unknown }],
    ["pending, and sent for sure", false, { delivery: undefined }],
    ["not to be bonded", false, { delivery: undefined, sent: sentAs("l2", "ethereum") }],
    ["withdrawn, when it could not be bonded", true, { delivery: withdrawn, sent: sentAs("l2", "ethereum") }],
  ])("%s: %s", (_, settled, parts) => {
    expect(isImmutableStatus(createStatus(parts))).toBe(settled);
  });
});
