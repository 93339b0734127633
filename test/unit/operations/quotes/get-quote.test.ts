import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { FeeSettingsSource, getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import { createProtobufJsonPrinter, createRestJsonPrinter } from "../../../../src/http/codec/json-printer.js";
import { createBinaryWriter } from "../../../../src/http/codec/write-binary.js";
import { createGetQuote, toQuoteResponse } from "../../../../src/operations/quotes/get-quote.js";
import type { DetailedQuote, QuoteEngine, TimestampedQuote } from "../../../../src/quotes/quote-engine.js";
import type { QuoteRequest } from "../../../../src/quotes/state/quote-request.js";
import { createRecordingContext } from "../call-context.js";

const timestampedQuote: TimestampedQuote = {
  quote: {
    amountIn: 1_000_000n,
    amountOutMin: 1n,
    destinationAmountOutMin: 2n,
    bonderFee: 3n,
    estimatedReceived: 4n,
    deadline: 5,
    destinationDeadline: 6,
  },
  freshness: { ageMs: 1999, maxAgeMs: 4000, refreshMs: 2001 },
};

const request = create(GetQuoteRequestSchema, {
  amount: "1000000",
  token: "usdt",
  fromChain: "polygon",
  toChain: "arbitrum",
  slippage: 0.5,
});

function callGetQuote(quote: QuoteEngine["quote"], isSettingsCached = true) {
  const logFields: unknown[] = [];
  const { context, recorded } = createRecordingContext({ addLogFields: (fields) => logFields.push(fields) });
  const settings = { value: getBuiltInFeeSettings("mainnet"), readAt: 0 };
  const document = { get: async () => settings, peek: () => (isSettingsCached ? settings : undefined) };
  const operation = createGetQuote({
    chains: { withCustomEndpoints: () => Promise.reject(new Error("no custom endpoints")) },
    settings: new FeeSettingsSource({ mainnet: document, goerli: document }),
    engine: { quote, quoteWithCustomEndpoints: () => Promise.reject(new Error("no custom endpoints")) },
  });
  return { call: () => operation(request, context), logFields, policies: recorded.cache };
}

test("returns a complete message, at once if everything is cached", () => {
  const { call, policies } = callGetQuote(() => timestampedQuote);
  const expected = create(GetQuoteResponseSchema, {
    ...{ amountIn: "1000000", slippage: 0.5, amountOutMin: "1", destinationAmountOutMin: "2", bonderFee: "3" },
    ...{ estimatedReceived: "4", estimatedRecieved: "4", deadline: 5n, destinationDeadline: 6n },
  });
  expect(call()).toStrictEqual(expected);
  expect(policies).toEqual([{ ageSeconds: 1, maxAgeSeconds: 4, staleWhileRevalidateSeconds: 3 }]);
});

test.each([
  ["settings", () => timestampedQuote, false],
  ["the engine", async () => timestampedQuote, true],
] as const)("waits for %s", async (_, quote, isSettingsCached) => {
  const { call } = callGetQuote(quote, isSettingsCached);
  expect(call()).toBeInstanceOf(Promise);
  expect(await call()).toMatchObject({ amountOutMin: "1" });
});

test("logs one frozen object for all requests of a route, so that its printed form is reused", () => {
  const { call, logFields } = callGetQuote(() => timestampedQuote);
  void [call(), call()];
  expect(logFields[0]).toEqual({ network: "mainnet", token: "USDT", route: "polygon>arbitrum" });
  expect(Object.isFrozen(logFields[0])).toBe(true);
  expect(logFields[1]).toBe(logFields[0]);
});

const amounts = { amountOut: 1n, requiredLiquidity: 1n, bonderFeeRelative: 1n, adjustedBonderFee: 1n };
const fees = { destinationTxFee: 1n, adjustedDestinationTxFee: 1n, totalFee: 2n, feeBps: 3, lpFeeBps: 4, lpFees: 0n };

function createResponse(known: { priceImpact?: number; deliveryTime?: { p50Seconds: number; samples: number } }) {
  const details = {
    breakdown: { ...amounts, ...fees, rate: 0.09, priceImpact: known.priceImpact },
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
