import { expect, test } from "vitest";
import { getFeeLabel } from "../../../../../web/shared/format/fee-label.js";

test.each([
  ["USDC", "polygon", "CCTP relayer fee"],
  ["USDC.e", "optimism", "CCTP relayer fee"],
  ["USDC", "ethereum", "CCTP relayer fee"],
  ["ETH", "ethereum", "Relayer fee"],
  ["ETH", "optimism", "Bonder fee"],
])("the fee of %s from %s is called %s", (token, from, label) => {
  expect(getFeeLabel(token, from)).toBe(label);
});
