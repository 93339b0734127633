import { expect, test } from "vitest";
import type {
  TransferStatusResponse,
  TransferSubstate,
  WithdrawalResponse,
} from "../../../../web/shared/api/api-types.js";
import { findExplorerUrl } from "../../../../web/transfer/explorers.js";
import { describeWithdrawal, mayNeedWithdrawal } from "../../../../web/transfer/withdrawal-steps.js";

const NOW_MS = 1_800_000_000_000;

test("a transfer needs no withdrawal while a bonder usually pays, and once it was received", () => {
  const ask = (substate: TransferSubstate, ageSeconds = 60, state = "PENDING"): boolean => {
    const timestamp = NOW_MS / 1000 - ageSeconds;
    return mayNeedWithdrawal({ state, timestamp, details: { substate } } as TransferStatusResponse, NOW_MS);
  };
  expect(ask("WAITING_FOR_BONDER", 3_600)).toBe(false);
  expect(ask("WAITING_FOR_BONDER", 3_601)).toBe(true);
  expect(ask("WAITING_FOR_MESSAGE", 10_000)).toBe(false);
  for (const substate of ["WAITING_FOR_SETTLEMENT", "WITHDRAWABLE", "WAITING_FOR_ATTESTATION"] as const) {
    expect(ask(substate)).toBe(true);
    expect(ask(substate, 60, "BONDED")).toBe(false);
  }
  expect(mayNeedWithdrawal({ state: "UNBONDABLE", timestamp: 0 } as TransferStatusResponse, NOW_MS)).toBe(false);
});

test("anybody can commit from the time that the service names, or where none is known", () => {
  const describe = (availableAt?: number): string => {
    const chains = { sourceChainSlug: "optimism", destinationChainSlug: "polygon" };
    const withdrawal = { state: "WAITING_FOR_COMMIT", ...chains, ...(availableAt && { availableAt }) };
    return describeWithdrawal(withdrawal as WithdrawalResponse, NOW_MS);
  };
  expect(describe(NOW_MS / 1000)).toContain("Anybody can commit it later");
  for (const availableAt of [NOW_MS / 1000 - 1, undefined])
    expect(describe(availableAt)).toContain("Anybody can call commitTransfers on Optimism now");
});

test("a chain without a known explorer has no link", () => {
  expect(findExplorerUrl(10, "address", "0x12")).toBe("https://optimistic.etherscan.io/address/0x12");
  expect(findExplorerUrl(5, "tx", "0x12")).toBeUndefined();
});
