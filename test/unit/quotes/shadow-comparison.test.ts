import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import type { NetworkChains } from "../../../src/chain/chains.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { findToken } from "../../../src/hop/tokens.js";
import type { Quote } from "../../../src/quotes/math/quote.js";
import type { SdkEngine } from "../../../src/quotes/sdk-engine.js";
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
  amountOutMin: 1n,
  destinationAmountOutMin: 2n,
  bonderFee: 3n,
  estimatedReceived: 4n,
  deadline: 5,
  destinationDeadline: 6,
};
const factsOf = (number: bigint, gasPrice: bigint): ChainState => ({
  block: { number, timeSeconds: 0n },
  readAt: 5,
  readAtUnixSeconds: 1_795_000_000,
  gasPrice,
  getPool: () => Promise.reject(new Error()) as never,
  getUint: () => 0n,
  getDeliveryGasCost: () => ({ gas: 0n, l1Fee: 0n }),
  findUniswapSwap: () => undefined,
});
const given = { request, quote, sourceState: factsOf(0x10n, 1n), destinationState: factsOf(0x20n, 0xabcn) };

interface Seen {
  readonly verdicts: ComparisonResult[];
  readonly times: number[];
  readonly sent: unknown[][];
}

/** @param answer what the SDK makes of a quote; it is handed the chains as they are given to it */
function setup(answer: (chains: NetworkChains) => Promise<Quote>, sampleRate = 1, random = () => 0) {
  const seen: Seen = { verdicts: [], times: [], sent: [] };
  const getClient = (slug: string): ChainClient => ({
    slug,
    sendBatch: () => Promise.reject(new Error("not asked")),
    getLogs: () => Promise.reject(new Error("not asked")),
    async send(method, params) {
      seen.sent.push([slug, method, ...params]);
      return "0x1";
    },
  });
  const referenceEngine: SdkEngine = {
    quote: () => Promise.reject(new Error("not asked")),
    quoteWithCustomEndpoints: () => Promise.reject(new Error("not asked")),
    quoteAtTime(_, chains, nowSeconds) {
      seen.times.push(nowSeconds);
      return answer(chains);
    },
  };
  const verify = createShadowComparison({
    sampleRate,
    random,
    referenceEngine,
    chains: () => ({ getClient, hasCustomEndpoint: () => false }),
    onResult: (verdict) => seen.verdicts.push(verdict),
    signal: new AbortController().signal,
  });
  return { seen, verify };
}

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

describe("a verified quote", () => {
  test("is equal where the SDK gives the same amounts, whatever the second of its deadline", async () => {
    const { seen, verify } = setup(async () => ({ ...quote, deadline: 99, destinationDeadline: 99 }));
    verify(given);
    await settled();
    expect(seen.verdicts).toMatchObject([{ isEqual: true, served: given }]);
    expect(seen.times).toEqual([1_795_000_000]);
  });

  test.each(["amountOutMin", "destinationAmountOutMin", "bonderFee", "estimatedReceived"] as const)(
    "differs where %s does",
    async (field) => {
      const referenceQuote = { ...quote, [field]: 1_000n };
      const { seen, verify } = setup(async () => referenceQuote);
      verify(given);
      await settled();
      expect(seen.verdicts).toEqual([
        { served: given, referenceQuote, isEqual: false, counts: { equal: 0, different: 1, unknown: 0 } },
      ]);
    },
  );

  test("is not judged where the SDK has no answer", async () => {
    const { seen, verify } = setup(() => Promise.reject(new Error("the block is gone")));
    verify(given);
    await settled();
    expect(seen.verdicts).toMatchObject([
      { referenceQuote: undefined, isEqual: false, counts: { different: 0, unknown: 1 } },
    ]);
  });

  test("is computed from the blocks and the price of gas that ours was made from", async () => {
    const { seen, verify } = setup(async (chains) => {
      const { signal } = new AbortController();
      const [from, to] = [chains.getClient("arbitrum"), chains.getClient("optimism")];
      await from.send("eth_call", [{ to: "0xa" }, "latest"], signal);
      await to.send("eth_estimateGas", [{ to: "0xb" }], signal);
      expect(await to.send("eth_gasPrice", [], signal)).toBe("0xabc");
      return quote;
    });
    verify(given);
    await settled();
    expect(seen.verdicts).toMatchObject([{ isEqual: true }]);
    expect(seen.sent).toEqual([
      ["arbitrum", "eth_call", { to: "0xa" }, "0x10"],
      ["optimism", "eth_estimateGas", { to: "0xb" }, "0x20"],
    ]);
  });
});

test("a share of quotes is verified, one after the other, and no more are kept waiting than can be", async () => {
  let running = 0;
  let most = 0;
  let draws = 0;
  const { seen, verify } = setup(
    async () => {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      return quote;
    },
    0.25,
    () => (draws++ % 4) / 4,
  );
  for (let count = 0; count < 1_000; count++) verify(given);
  await settled();
  expect(most).toBe(1);
  // The first begins at once, a hundred wait, and the rest of the 250 is let go.
  expect(seen.verdicts).toHaveLength(101);
  expect(seen.verdicts.at(-1)?.counts).toEqual({ equal: 101, different: 0, unknown: 0 });
});
