import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../../src/hop/networks.js";
import { findToken } from "../../../../src/hop/tokens.js";
import type { PriceTable } from "../../../../src/prices/token-prices.js";
import type { Quote } from "../../../../src/quotes/math/quote.js";
import type { QuoteSteps } from "../../../../src/quotes/math/quote-steps.js";
import type { QuoteDetails } from "../../../../src/quotes/quote-details.js";
import { type PrintedQuote, printQuote } from "../../../../src/quotes/shadow-comparison/comparison-case.js";
import {
  createShadowComparison,
  type ReferenceSources,
  type ShadowComparisonDeps,
} from "../../../../src/quotes/shadow-comparison/shadow-comparison.js";
import type { ServedQuote } from "../../../../src/quotes/snapshot-engine.js";
import type { ChainState } from "../../../../src/quotes/state/chain-state.js";
import type { QuoteRequest } from "../../../../src/quotes/state/quote-request.js";

const mainnet = getNetwork("mainnet");
const token = findToken(mainnet, "ETH");
const source = mainnet.chains.get("arbitrum");
const destination = mainnet.chains.get("optimism");
if (!token || !source || !destination) throw new Error("no such route");
const request: QuoteRequest = {
  network: "mainnet",
  token,
  source,
  destination,
  amountIn: 10n ** 18n,
  slippagePercent: 0.5,
};
const quote: Quote = {
  amountIn: 1n,
  amountOutMin: 1n,
  destinationAmountOutMin: 2n,
  bonderFee: 3n,
  estimatedReceived: 4n,
  deadline: 5,
  destinationDeadline: 6,
};
const steps: QuoteSteps = {
  amountOut: 1n,
  requiredLiquidity: 2n,
  bonderFeeRelative: 3n,
  adjustedBonderFee: 4n,
  destinationTxFee: 5n,
  adjustedDestinationTxFee: 6n,
  totalFee: 7n,
  feeBps: 8,
  rate: 0.9,
  priceImpact: 0.1,
  lpFeeBps: 4,
  lpFees: 9n,
};
const reference = printQuote({ ...quote, steps });
const createState = (number: bigint, gasPrice: bigint): ChainState => ({
  block: { number, timeSeconds: 0n },
  readAt: 5,
  readAtUnixSeconds: 1_795_000_000,
  gasPrice,
  getPool: () => Promise.reject(new Error()) as never,
  getUint: () => 0n,
  findOptionalUint: () => undefined,
  hasTicks: () => false,
  getDeliveryGasCost: () => ({ gas: 0n, l1Fee: 0n }),
  findUniswapSwap: () => undefined,
});
const priceTable: PriceTable = {
  getUsdPrice: (symbol) => symbol.length,
  getOrigin: () => ({ source: "FIXED", updatedAtSeconds: 0 }),
};
const served: ServedQuote = {
  ...{ amountIn: 7n, quote, priceTable, hasSeparateSwap: false },
  sourceState: createState(0x10n, 1n),
  destinationState: createState(0x20n, 0xabcn),
};
const settings = getBuiltInFeeSettings("mainnet");
const { signal } = new AbortController();

/** @param quoteWithReference the reference engine's quotes, in turn; the last one is repeated */
function setup(
  quotes: readonly ((sources: ReferenceSources) => Promise<PrintedQuote>)[],
  changes: Partial<ShadowComparisonDeps> = {},
) {
  const sent: unknown[][] = [];
  const delays: number[] = [];
  const asked: QuoteRequest[] = [];
  const remaining = [...quotes];
  const getClient = (slug: string): ChainClient => ({
    slug,
    sendBatch: () => Promise.reject(new Error("not expected")),
    getLogs: () => Promise.reject(new Error("not expected")),
    async send(method, params) {
      sent.push([slug, method, ...params]);
      return "0x1";
    },
  });
  const compare = createShadowComparison({
    quote: async () => served,
    referenceEngine: {
      quote(referenceRequest, sources) {
        asked.push(referenceRequest);
        const quoteNext = remaining.length > 1 ? remaining.shift() : remaining[0];
        return quoteNext?.(sources) ?? Promise.reject(new Error("no quote"));
      },
    },
    settings: { getCurrent: async () => settings, peek: () => settings },
    attestations: { find: async (hash) => `attestation of ${hash}` },
    chains: () => ({ getClient, hasCustomEndpoint: () => false }),
    versions: { service: "1" },
    now: () => 1_795_000_000_000,
    sleep: async (ms) => void delays.push(ms),
    ...changes,
  });
  return { sent, delays, asked, compare: () => compare(request, signal) };
}

const differing = { ...reference, bonderFee: "1000" };

describe("a compared quote", () => {
  test("is equal if its amounts are, whatever its deadlines", async () => {
    const { compare, asked, delays } = setup([async () => reference]);
    expect(await compare()).toEqual({ outcome: "equal", quote: printQuote(quote) });
    expect(asked).toMatchObject([{ amountIn: 7n, receiveAmount: undefined }]);
    expect(delays).toEqual([]);
  });

  test.each(["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"] as const)(
    "differs if %s does each time that both quotes are made again",
    async (field) => {
      const { compare, delays, asked } = setup([async () => ({ ...reference, [field]: "1000" })]);
      expect(await compare()).toMatchObject({ outcome: "different", case: { sdkQuote: { [field]: "1000" } } });
      expect(delays).toEqual([5_000, 65_000]);
      expect(asked).toHaveLength(3);
    },
  );

  test("differs if the SDK's has no such value; the case is of the last comparison", async () => {
    const { bonderFee: _, ...incomplete } = reference;
    const quotes = [async () => differing, async () => differing, async () => incomplete];
    const result = await setup(quotes).compare();
    expect(result).toMatchObject({ outcome: "different" });
    expect(result).toHaveProperty("case.sdkQuote", incomplete);
  });

  test("with details differs if an intermediate value does", async () => {
    const details = { ...({} as QuoteDetails), steps: { ...steps, rate: 0.8 } };
    const quoteWithDetails = async () => ({ ...served, quote: { ...quote, details } });
    const { compare } = setup([async () => reference], { quote: quoteWithDetails });
    expect(await compare()).toMatchObject({ outcome: "different", case: { servedQuote: { rate: "0.8" } } });
  });

  test.each([
    ["in the first comparison only", [async () => differing, async () => reference]],
    ["twice, and not a third time", [async () => differing, async () => differing, async () => reference]],
    ["and cannot be made again", [async () => differing, async () => Promise.reject(new Error("the block is gone"))]],
  ])("does not count as different if it differs %s", async (_, quotes) => {
    expect(await setup(quotes).compare()).toEqual({
      outcome: "unconfirmed",
      differences: { bonderFee: ["3", "1000"] },
    });
  });

  test("does not count as different if its swap was read in another block", async () => {
    const { compare } = setup([async () => differing], { quote: async () => ({ ...served, hasSeparateSwap: true }) });
    expect(await compare()).toMatchObject({ outcome: "unconfirmed" });
  });

  test.each([
    ["the reference engine fails", {}, "the block is gone"],
    ["the quote fails", { quote: () => Promise.reject(new Error("no such pool")) }, "no such pool"],
    [
      "the settings change meanwhile",
      { settings: { getCurrent: async () => settings, peek: () => ({ ...settings }) } },
      "the fee settings have changed meanwhile",
    ],
  ])("could not be compared if %s", async (_, changes, reason) => {
    const { compare } = setup([() => Promise.reject(new Error("the block is gone"))], changes);
    expect(await compare()).toEqual({ outcome: "failed", reason });
  });

  test("is computed again from the same blocks, gas price, prices and settings", async () => {
    const { sent, compare } = setup([
      async ({ chains, getUsdPrice, findAttestation, nowSeconds, ...sources }) => {
        const [from, to] = [chains.getClient("arbitrum"), chains.getClient("optimism")];
        await from.send("eth_call", [{ to: "0xa" }, "latest"], signal);
        await to.send("eth_estimateGas", [{ to: "0xb" }], signal);
        expect(await to.send("eth_gasPrice", [], signal)).toBe("0xabc");
        expect(() => chains.getClient("polygon")).toThrow("not a chain of the route");
        expect([getUsdPrice("ETH"), await findAttestation("0x1"), nowSeconds]).toEqual([
          ...[3, "attestation of 0x1", 1_795_000_000],
        ]);
        expect(sources.settings).toBe(settings);
        return differing;
      },
    ]);
    const result = await compare();
    expect(sent.slice(0, 2)).toEqual([
      ["arbitrum", "eth_call", { to: "0xa" }, "0x10"],
      ["optimism", "eth_estimateGas", { to: "0xb" }, "0x20"],
    ]);
    expect(result).toMatchObject({
      outcome: "different",
      case: {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        request: { network: "mainnet", token: "ETH", fromChain: "arbitrum", toChain: "optimism", amount: "7" },
        inputs: { pricesUsd: { ETH: 3 }, attestations: { "0x1": "attestation of 0x1" }, nowSeconds: 1_795_000_000 },
        chains: {
          arbitrum: {
            pin: { block: "0x10", gasPrice: "0x1" },
            calls: [{ method: "eth_call", params: [{ to: "0xa" }, "0x10"], outcome: { result: "0x1" } }],
          },
        },
      },
    });
  });

  test("takes a limited number of calls", async () => {
    const { compare } = setup([
      async ({ chains }) => {
        const client = chains.getClient("arbitrum");
        for (let count = 0; count <= 200; count++) await client.send("eth_call", [{}, "latest"], signal);
        return reference;
      },
    ]);
    expect(await compare()).toEqual({ outcome: "failed", reason: "the comparison needs too many calls" });
  });
});
