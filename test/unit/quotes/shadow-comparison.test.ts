import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import type { NetworkChainClients } from "../../../src/chain/chains.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { findToken } from "../../../src/hop/tokens.js";
import type { Quote } from "../../../src/quotes/math/quote.js";
import type { QuoteSteps } from "../../../src/quotes/math/quote-steps.js";
import type { QuoteDetails } from "../../../src/quotes/quote-details.js";
import type { ReferenceQuote, SdkEngine } from "../../../src/quotes/sdk-engine.js";
import { type ComparisonResult, createShadowComparison } from "../../../src/quotes/shadow-comparison.js";
import type { ChainState } from "../../../src/quotes/state/chain-state.js";
import type { QuoteRequest } from "../../../src/quotes/state/quote-request.js";

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
const reference: ReferenceQuote = { ...quote, steps };
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
const served = { request, quote, sourceState: createState(0x10n, 1n), destinationState: createState(0x20n, 0xabcn) };

interface Recorded {
  readonly results: ComparisonResult[];
  readonly times: number[];
  readonly sent: unknown[][];
}

/** @param quoteWithReference quote of the reference engine, given its chains */
function setup(
  quoteWithReference: (chains: NetworkChainClients) => Promise<ReferenceQuote>,
  sampleRate = 1,
  random = () => 0,
) {
  const recorded: Recorded = { results: [], times: [], sent: [] };
  const getClient = (slug: string): ChainClient => ({
    slug,
    sendBatch: () => Promise.reject(new Error("not expected")),
    getLogs: () => Promise.reject(new Error("not expected")),
    async send(method, params) {
      recorded.sent.push([slug, method, ...params]);
      return "0x1";
    },
  });
  const referenceEngine: Pick<SdkEngine, "quoteAtTime"> = {
    quoteAtTime(_, chains, nowSeconds) {
      recorded.times.push(nowSeconds);
      return quoteWithReference(chains);
    },
  };
  const compare = createShadowComparison({
    sampleRate,
    random,
    referenceEngine,
    chains: () => ({ getClient, hasCustomEndpoint: () => false }),
    onResult: (result) => recorded.results.push(result),
    signal: new AbortController().signal,
  });
  return { recorded, compare };
}

const waitUntilSettled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

describe("a compared quote", () => {
  test("is equal if its amounts are, whatever its deadlines", async () => {
    const { recorded, compare } = setup(async () => ({ ...reference, deadline: 99, destinationDeadline: 99 }));
    compare(served);
    await waitUntilSettled();
    expect(recorded.results).toMatchObject([{ isEqual: true, served }]);
    expect(recorded.times).toEqual([1_795_000_000]);
  });

  test.each(["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"] as const)(
    "differs if %s does",
    async (field) => {
      const referenceQuote = { ...reference, [field]: 1_000n };
      const { recorded, compare } = setup(async () => referenceQuote);
      compare(served);
      await waitUntilSettled();
      expect(recorded.results).toEqual([
        { served, referenceQuote, isEqual: false, counts: { equal: 0, different: 1, unknown: 0 } },
      ]);
    },
  );

  test("with details differs if an intermediate value does", async () => {
    const details = { ...({} as QuoteDetails), steps };
    const { recorded, compare } = setup(async () => reference);
    compare({ ...served, quote: { ...quote, details } });
    compare({ ...served, quote: { ...quote, details: { ...details, steps: { ...steps, rate: 0.8 } } } });
    await waitUntilSettled();
    expect(recorded.results.map(({ isEqual }) => isEqual)).toEqual([true, false]);
  });

  test("is counted as unknown if the reference engine fails", async () => {
    const { recorded, compare } = setup(() => Promise.reject(new Error("the block is gone")));
    compare(served);
    await waitUntilSettled();
    expect(recorded.results).toMatchObject([
      { referenceQuote: undefined, isEqual: false, counts: { different: 0, unknown: 1 } },
    ]);
  });

  test("is recomputed at the blocks and the gas price of the served quote", async () => {
    const { recorded, compare } = setup(async (chains) => {
      const { signal } = new AbortController();
      const [from, to] = [chains.getClient("arbitrum"), chains.getClient("optimism")];
      await from.send("eth_call", [{ to: "0xa" }, "latest"], signal);
      await to.send("eth_estimateGas", [{ to: "0xb" }], signal);
      expect(await to.send("eth_gasPrice", [], signal)).toBe("0xabc");
      return reference;
    });
    compare(served);
    await waitUntilSettled();
    expect(recorded.results).toMatchObject([{ isEqual: true }]);
    expect(recorded.sent).toEqual([
      ["arbitrum", "eth_call", { to: "0xa" }, "0x10"],
      ["optimism", "eth_estimateGas", { to: "0xb" }, "0x20"],
    ]);
  });
});

test("compares a sample of the quotes one at a time, with a bounded queue", async () => {
  let running = 0;
  let maxRunning = 0;
  let draws = 0;
  const { recorded, compare } = setup(
    async () => {
      running += 1;
      maxRunning = Math.max(maxRunning, running);
      await Promise.resolve();
      running -= 1;
      return reference;
    },
    0.25,
    () => (draws++ % 4) / 4,
  );
  for (let count = 0; count < 1_000; count++) compare(served);
  await waitUntilSettled();
  expect(maxRunning).toBe(1);
  // Of the 250 sampled quotes, the first starts immediately, 100 are queued and the others are dropped.
  expect(recorded.results).toHaveLength(101);
  expect(recorded.results.at(-1)?.counts).toEqual({ equal: 101, different: 0, unknown: 0 });
});
