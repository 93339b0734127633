import { describe, expect, test } from "vitest";
import { deriveSubstate, type SettlementProgress } from "../../../../src/transfers/details/substate.js";
import type { Payout, TransferSubstate } from "../../../../src/transfers/details/transfer-details.js";
import type { TransferState } from "../../../../src/transfers/status.js";
import type { SentTransfer } from "../../../../src/transfers/transfer.js";

const token: Payout = { amount: 5n, token: "USDT", isUnrequestedHToken: false };
const hToken: Payout = { amount: 5n, token: "hUSDT", isUnrequestedHToken: true };

describe("the substate", () => {
  test.each<
    [SentTransfer["kind"], TransferState, SettlementProgress | undefined, Payout | undefined, TransferSubstate]
  >([
    ["l2", "PENDING", "NOT_COMMITTED", undefined, "WAITING_FOR_BONDER"],
    ["l2", "PENDING", "COMMITTED", undefined, "WAITING_FOR_SETTLEMENT"],
    ["l2", "PENDING", "ARRIVED", undefined, "WITHDRAWABLE"],
    ["l2", "UNBONDABLE", "NOT_COMMITTED", undefined, "WAITING_FOR_SETTLEMENT"],
    ["l2", "UNBONDABLE", "COMMITTED", undefined, "WAITING_FOR_SETTLEMENT"],
    ["l2", "UNBONDABLE", "ARRIVED", undefined, "WITHDRAWABLE"],
    ["l1", "PENDING", undefined, undefined, "WAITING_FOR_MESSAGE"],
    ["cctp", "PENDING", undefined, undefined, "WAITING_FOR_ATTESTATION"],
    ["l2", "BONDED", undefined, token, "RECEIVED"],
    ["l2", "BONDED", undefined, hToken, "RECEIVED_HTOKEN"],
    ["l2", "BONDED", undefined, { ...hToken, isUnrequestedHToken: false }, "RECEIVED"],
    ["l2", "BONDED", undefined, undefined, "RECEIVED"],
    ["l1", "BONDED", undefined, hToken, "RECEIVED_HTOKEN"],
    ["cctp", "BONDED", undefined, token, "RECEIVED"],
  ])(
    "of a transfer of kind %s that is %s with settlement %s and payout %o is %s",
    (kind, state, settlement, payout, substate) => {
      expect(deriveSubstate({ state, sent: { kind } }, settlement, payout)).toBe(substate);
    },
  );
});
