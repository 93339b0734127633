import { describe, expect, test } from "vitest";
import type { RouteQuoter } from "../../../src/quotes/math/quote.js";
import { createQuoteDetails, type QuoteDetails, type QuoteDetailsInputs } from "../../../src/quotes/quote-details.js";
import type { ChainState } from "../../../src/quotes/state/chain-state.js";
import type { Liquidity } from "../../../src/quotes/state/route-liquidity.js";

const explained = {
  quote: { amountIn: 1_000n },
  breakdown: { requiredLiquidity: 990n },
} as ReturnType<RouteQuoter["explain"]>;
const feeInputs = {
  delivery: { gasPrice: 7n, gas: 100_000n, l1Fee: 5n },
  tokenUsd: 1,
  nativeUsd: 3_000,
};
const deliveryTime = { p50Seconds: 60, p90Seconds: 120, samples: 5 };
const stateOf = (number: bigint, readAtUnixSeconds: number) =>
  ({ block: { number, timeSeconds: 0n }, readAtUnixSeconds }) as ChainState;

interface Options {
  readonly source?: ChainState | undefined;
  readonly destination?: ChainState | undefined;
  readonly swapReadAtSeconds?: number;
  readonly maxAgeMs?: number;
  readonly liquidity?: Liquidity;
  readonly snapshot?: unknown;
}

function createDetails(options: Options = {}): QuoteDetails {
  const { liquidity = { basis: "UNLIMITED", available: undefined } } = options;
  const inputs = {
    plan: {
      pricedTokens: ["USDC", "ETH"],
      full: {
        getLiquidity: (source: unknown, destination: unknown) =>
          source === options.source && destination === options.destination ? liquidity : undefined,
      },
    },
    quoter: { snapshot: options.snapshot ?? { kind: "bridge", bonder: undefined }, findMinAmount: () => 3n },
    priceTable: { getOrigin: (token: string) => ({ source: `source of ${token}` }) },
    sourceState: options.source,
    destinationState: options.destination,
    maxAgeMs: options.maxAgeMs ?? 4_000,
  } as unknown as QuoteDetailsInputs;
  return createQuoteDetails(explained, inputs, options.swapReadAtSeconds ?? 1_000, deliveryTime);
}

test("the details of a quote have its breakdown, its smallest amount and the time of deliveries", () => {
  expect(createDetails()).toMatchObject({ breakdown: explained.breakdown, minAmount: 3n, deliveryTime });
});

describe("the inputs of a quote", () => {
  test.each([
    ["source", 900, 950, 1_000, 900],
    ["destination", 950, 900, 1_000, 900],
    ["swap", 1_000, 950, 900, 900],
  ])("were observed when the oldest one was read: the %s", (_, source, destination, swapReadAtSeconds, observedAt) => {
    const states = { source: stateOf(1n, source), destination: stateOf(2n, destination) };
    expect(createDetails({ ...states, swapReadAtSeconds })).toMatchObject({ observedAt, validUntil: observedAt + 4 });
  });

  test("were observed now where nothing is read", () => {
    expect(createDetails()).toMatchObject({
      observedAt: 1_000,
      validUntil: 1_004,
      sourceBlock: 0n,
      destinationBlock: 0n,
    });
    expect(createDetails({ source: stateOf(9n, 1_001) })).toMatchObject({ observedAt: 1_000, sourceBlock: 9n });
    expect(createDetails({ destination: stateOf(9n, 999) })).toMatchObject({ observedAt: 999, destinationBlock: 9n });
  });

  test("are valid for their maximum age, in whole seconds", () => {
    expect(createDetails({ maxAgeMs: 4_999 }).validUntil).toBe(1_004);
    expect(createDetails({ maxAgeMs: 5_000 }).validUntil).toBe(1_005);
  });
});

describe("the liquidity of a route", () => {
  test.each([
    ["BONDER_CREDIT", 990n, true],
    ["BONDER_CREDIT", 989n, false],
    ["CCTP_BURN_LIMIT", 1_000n, true],
    ["CCTP_BURN_LIMIT", 999n, false],
    ["UNLIMITED", undefined, true],
    ["UNKNOWN", undefined, true],
  ] as const)("%s of %s suffices for 1,000 of which 990 are bridged: %s", (basis, available, suffices) => {
    const states = { source: stateOf(1n, 1), destination: stateOf(2n, 2) };
    const details = createDetails({ ...states, liquidity: { basis, available } });
    expect(details).toMatchObject({ liquidity: { basis, available }, isLiquidityAvailable: suffices });
  });
});

describe("gas and prices", () => {
  test.each([
    ["of a bonded transfer", { kind: "bridge", bonder: feeInputs }],
    ["of a transfer by CCTP", { kind: "cctp", ...feeInputs }],
  ])("are those %s", (_, snapshot) => {
    expect(createDetails({ snapshot })).toMatchObject({
      gas: { gasLimit: 100_000n, gasPrice: 7n, l1Fee: 5n },
      prices: {
        tokenUsd: 1,
        nativeUsd: 3_000,
        tokenOrigin: { source: "source of USDC" },
        nativeOrigin: { source: "source of ETH" },
      },
    });
  });

  test("are 0 from L1 over Hop's own bridge", () => {
    expect(createDetails()).toMatchObject({
      gas: { gasLimit: 0n, gasPrice: 0n, l1Fee: 0n },
      prices: { tokenUsd: 0, nativeUsd: 0, tokenOrigin: undefined, nativeOrigin: undefined },
    });
  });
});
