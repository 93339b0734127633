import { describe, expect, test } from "vitest";
import type { TransferKind } from "../../../src/hop/contract-registry.js";
import { isImmutableStatus, type TransferDelivery, type TransferState } from "../../../src/transfers/status.js";
import { createSentTransfer, createStatus, defaultDelivery, getChain } from "../../support/stubs/transfer-fixtures.js";

const unknownDelivery: TransferDelivery = { transactionHash: undefined, blockNumber: undefined, bonder: undefined };
const withdrawn: TransferDelivery = { ...defaultDelivery, bonder: undefined };

/** Each combination of values; any that is not zero requests a swap at the destination. */
const swapRequests = [
  { amountOutMin: 0n, deadline: 0n },
  { amountOutMin: 1n, deadline: 0n },
  { amountOutMin: 0n, deadline: 1n },
  { amountOutMin: 1n, deadline: 1n },
];
const alwaysPending: readonly TransferState[] = ["PENDING", "PENDING", "PENDING", "PENDING"];

const sentAs = (kind: TransferKind, destination: string, event: object = {}) => ({
  kind,
  destination: getChain(destination),
  event: { ...createSentTransfer().event, ...event },
});

describe("the state of a transfer", () => {
  test.each<[TransferKind, string, readonly TransferState[]]>([
    ["l2", "ethereum", ["PENDING", "UNBONDABLE", "UNBONDABLE", "UNBONDABLE"]],
    ["l2", "arbitrum", alwaysPending],
    ["l1", "arbitrum", alwaysPending],
    ["cctp", "arbitrum", alwaysPending],
    ["cctp", "ethereum", alwaysPending],
  ])("kind %s to %s, before and after the delivery", (kind, destination, states) => {
    const getStates = (delivery: TransferDelivery | undefined) =>
      swapRequests.map((event) => createStatus({ sent: sentAs(kind, destination, event), delivery }).state);
    expect(getStates(undefined)).toEqual(states);
    for (const delivery of [unknownDelivery, withdrawn, defaultDelivery]) {
      expect(getStates(delivery)).toEqual(["BONDED", "BONDED", "BONDED", "BONDED"]);
    }
  });

  test("is returned with all given details", () => {
    const details = { source: "index", observedAtMs: 7, isFinal: false, priceUsd: 3, otherTransferIds: ["5"] } as const;
    const sent = createSentTransfer();
    const pending = { ...details, sent, delivery: undefined, state: "PENDING" };
    expect(createStatus({ ...details, delivery: undefined })).toEqual(pending);
  });
});

describe("a status is immutable", () => {
  test.each<[string, boolean, Parameters<typeof createStatus>[0]]>([
    ["bonded in final blocks", true, {}],
    ["withdrawn by an unknown account", true, { delivery: withdrawn }],
    ["bonded in blocks that are not final", false, { isFinal: false }],
    ["delivered, transaction unknown", false, { delivery: unknownDelivery }],
    ["pending, send final", false, { delivery: undefined }],
    ["unbondable", false, { delivery: undefined, sent: sentAs("l2", "ethereum") }],
    ["unbondable, then withdrawn", true, { delivery: withdrawn, sent: sentAs("l2", "ethereum") }],
  ])("%s: %s", (_, isImmutable, overrides) => {
    expect(isImmutableStatus(createStatus(overrides))).toBe(isImmutable);
  });
});
