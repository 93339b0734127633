import { describe, expect, test } from "vitest";
import { getDeliveryTransactionKey } from "../../../../src/quotes/state/read-set.js";
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

describe("the cost of a delivery", () => {
  const delivery = buildMintTransaction(findQuoteRoute("USDC", "polygon", "optimism"), "0x5a");
  if (delivery === undefined) throw new Error("it can be estimated");
  const state = (gasPrice: bigint | undefined) =>
    createChainState([[getDeliveryTransactionKey(delivery), { gas: 90_000n, l1Fee: 5n }]], { gasPrice });

  test("is what was read for it", () => {
    expect(computeDeliveryCost(state(7n), delivery, 1n)).toEqual({ gasPrice: 7n, gas: 90_000n, l1Fee: 5n });
  });

  test("is that of the SDK's gas if there is nothing to estimate", () => {
    expect(computeDeliveryCost(state(7n), undefined, 165_000n)).toEqual({ gasPrice: 7n, gas: 165_000n, l1Fee: 0n });
  });

  test("is unknown without a gas price", () => {
    expect(() => computeDeliveryCost(state(undefined), delivery, 1n)).toThrow("no gas price");
  });
});
