import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GetQuoteRequestSchema, GetQuoteResponseSchema } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { FeeSettingsSource, getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import type { CallContext } from "../../../../src/operations/operation.js";
import { createGetQuote } from "../../../../src/operations/quotes/get-quote.js";
import type { QuoteEngine, TimestampedQuote } from "../../../../src/quotes/quote-engine.js";

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
  const policies: unknown[] = [];
  const context = {
    addLogFields: (fields: unknown) => logFields.push(fields),
    setCachePolicy: (policy: unknown) => policies.push(policy),
  } as unknown as CallContext;
  const settings = { value: getBuiltInFeeSettings("mainnet"), readAt: 0 };
  const document = { get: async () => settings, peek: () => (isSettingsCached ? settings : undefined) };
  const operation = createGetQuote({
    chains: { withCustomEndpoints: () => Promise.reject(new Error("no custom endpoints")) },
    settings: new FeeSettingsSource({ mainnet: document, goerli: document }),
    engine: { quote, quoteWithCustomEndpoints: () => Promise.reject(new Error("no custom endpoints")) },
  });
  return { call: () => operation(request, context), logFields, policies };
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
