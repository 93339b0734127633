import { expect, test } from "vitest";
import { getFeeLabel, isCctpToken, isCctpTransfer } from "../../../../../web/shared/format/fee-label.js";

test.each([
  ["USDC", "polygon", "CCTP relayer fee"],
  ["USDC.e", "optimism", "CCTP relayer fee"],
  ["USDC", "ethereum", "CCTP relayer fee"],
  ["ETH", "ethereum", "Relayer fee"],
  ["ETH", "optimism", "Bonder fee"],
])("the fee of %s from %s is called %s", (token, from, label) => {
  expect(getFeeLabel(isCctpToken(token), from)).toBe(label);
});

test("a transfer of USDC.e went over CCTP if its id is a number", () => {
  expect(isCctpTransfer({ transferId: "1000001" })).toBe(true);
  expect(isCctpTransfer({ transferId: `0x${"12".repeat(32)}` })).toBe(false);
});
