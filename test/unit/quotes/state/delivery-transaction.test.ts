import { describe, expect, test } from "vitest";
import { buildMintTransaction, computeDeliveryCost } from "../../../../src/quotes/state/route-plan.js";
import { createChainState, findQuoteRoute } from "../../../support/stubs/quote-routes.js";

// What is sent, test/parity/random-chains.test.ts compares with the SDK, byte by byte.

describe("the delivery of a transfer by CCTP", () => {
  test.each(["", "0x5", "5a", "0x5g", "0x5a ", " 0x5a", "null"])(
    "is not estimated with an attestation that is no bytes: '%s'",
    (attestation) => {
      expect(buildMintTransaction(findQuoteRoute("USDC", "polygon", "optimism"), attestation)).toBeUndefined();
    },
  );

  test("is not estimated on a chain without CCTP", () => {
    const { chains } = findQuoteRoute("ETH", "polygon", "gnosis").network;
    const route = { ...findQuoteRoute("USDC", "polygon", "optimism"), destination: chains.get("gnosis") };
    expect(buildMintTransaction(route as ReturnType<typeof findQuoteRoute>, "0x5a")).toBeUndefined();
  });
});

test("the cost of a delivery is unknown without a gas price", () => {
  expect(() => computeDeliveryCost(createChainState(), undefined, 1n)).toThrow("no gas price");
});
