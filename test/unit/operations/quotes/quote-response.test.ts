import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createProtobufJsonPrinter, createRestJsonPrinter } from "../../../../src/http/codec/json-printer.js";
import { createBinaryWriter } from "../../../../src/http/codec/write-binary.js";
import { toQuoteResponse } from "../../../../src/operations/quotes/get-quote.js";
import type { DetailedQuote } from "../../../../src/quotes/quote-engine.js";
import type { QuoteRequest } from "../../../../src/quotes/state/quote-request.js";

const amounts = { amountOut: 1n, requiredLiquidity: 1n, bonderFeeRelative: 1n, adjustedBonderFee: 1n };
const fees = { destinationTxFee: 1n, adjustedDestinationTxFee: 1n, totalFee: 2n, feeBps: 3, lpFeeBps: 4, lpFees: 0n };

function createResponse(known: { priceImpact?: number; deliveryTime?: { p50Seconds: number; samples: number } }) {
  const details = {
    steps: { ...amounts, ...fees, rate: 0.09, priceImpact: known.priceImpact },
    liquidity: { basis: "UNLIMITED", available: undefined },
    isLiquidityAvailable: true,
    deliveryTime: known.deliveryTime && { p90Seconds: 9, ...known.deliveryTime },
    gas: { gasLimit: 0n, gasPrice: 0n, l1Fee: 0n },
    prices: { tokenUsd: 0, nativeUsd: 0 },
    sourceBlock: 1n,
    destinationBlock: 0n,
    observedAt: 1,
    validUntil: 2,
  };
  const quote = { amountIn: 1n, amountOutMin: 1n, destinationAmountOutMin: 1n, bonderFee: 1n, estimatedReceived: 1n };
  const detailed = { ...quote, deadline: 5, destinationDeadline: 0, details } as unknown as DetailedQuote;
  return toQuoteResponse({ slippagePercent: 0.5 } as QuoteRequest, detailed);
}

/** Returns the details as each of the printers gives them, and of the bytes. */
function print(response: ReturnType<typeof createResponse>): Record<string, unknown>[] {
  const printers = [createRestJsonPrinter(GetQuoteResponseSchema), createProtobufJsonPrinter(GetQuoteResponseSchema)];
  const binary = createBinaryWriter(GetQuoteResponseSchema)(response, 0);
  expect(binary.equals(toBinary(GetQuoteResponseSchema, response))).toBe(true);
  return [
    ...printers.map((printer) => JSON.parse(printer(response)).details),
    fromBinary(GetQuoteResponseSchema, binary).details,
  ];
}

test("a price impact and a delivery time that are not known are left out", () => {
  for (const details of print(createResponse({}))) {
    expect(details).toMatchObject({ rate: 0.09 });
    expect(Object.keys(details)).not.toContain("priceImpact");
    expect(Object.keys(details)).not.toContain("deliveryTime");
  }
});

test("a price impact of 0 and a delivery within the same second are told", () => {
  const response = createResponse({ priceImpact: 0, deliveryTime: { p50Seconds: 0, samples: 1 } });
  const [rest, protobufJson, binary] = print(response);
  expect(rest).toMatchObject({ priceImpact: 0, deliveryTime: { p50Seconds: 0, p90Seconds: 9, samples: 1 } });
  expect(protobufJson).toMatchObject({ priceImpact: 0, deliveryTime: { p90Seconds: 9, samples: 1 } });
  expect(binary).toMatchObject({ priceImpact: 0, deliveryTime: { p50Seconds: 0, p90Seconds: 9, samples: 1 } });
});
