import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../../src/errors.js";
import {
  ambiguousNonceError,
  isCctpNonce,
  isSourceUnavailable,
  usesCustomEndpoints,
} from "../../../../src/transfers/sources/transfer-source.js";
import { BudgetExhaustedError } from "../../../../src/transfers/spend/lookup-budget.js";
import { createChainAccess, repeatedByteHash } from "../../../support/stubs/transfer-fixtures.js";

describe("a transfer ID", () => {
  test.each(["0", "77", "18446744073709551615"])("is a CCTP nonce: %s", (id) => {
    expect(isCctpNonce(id)).toBe(true);
  });

  test.each([repeatedByteHash("1a"), repeatedByteHash("11"), "", "7a", "-7", "7 7"])("is no CCTP nonce: %j", (id) => {
    expect(isCctpNonce(id)).toBe(false);
  });

  test("that is a nonce of several chains is refused with what helps", () => {
    expect(ambiguousNonceError()).toMatchObject({
      reason: "INVALID_PARAMETER",
      field: "transferId",
      message: expect.stringContaining("give the transaction's hash as well") as unknown,
    });
  });
});

test.each([
  ["no chain of", [], false],
  ["one chain of", ["polygon"], true],
  ["a chain that is not among", ["gnosis"], false],
])("a lookup uses custom endpoints: %s those that it reads", (_, custom, isCustom) => {
  expect(usesCustomEndpoints(createChainAccess([], custom), ["optimism", "polygon", "base"])).toBe(isCustom);
});

test.each<[string, unknown, boolean]>([
  ["an endpoint that does not answer", new ServiceError("UPSTREAM_UNAVAILABLE", "down"), true],
  ["a process that may not ask", new ServiceError("OVERLOADED", "full"), true],
  ["a caller that may not ask", new BudgetExhaustedError("caller", "RATE_LIMITED", "spent"), false],
  ["a request that is refused", ambiguousNonceError(), false],
  ["a fault of this process", new TypeError("undefined is not a function"), false],
  ["an error of another kind with such a reason", { reason: "UPSTREAM_UNAVAILABLE" }, false],
])("other sources may know what a source does not tell: %s", (_, error, mayKnow) => {
  expect(isSourceUnavailable(error)).toBe(mayKnow);
});
