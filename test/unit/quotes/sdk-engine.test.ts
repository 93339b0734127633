import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import { RevertError } from "../../../src/chain/json-rpc/rpc-errors.js";
import { FeeSettingsSource, getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { getNetwork, NETWORK_SLUGS } from "../../../src/hop/networks.js";
import { findAvailableRoutes } from "../../../src/hop/routes.js";
import { findToken } from "../../../src/hop/tokens.js";
import { ComparedTokenPrices } from "../../../src/prices/token-prices.js";
import { SdkEngine } from "../../../src/quotes/sdk-engine.js";
import { AdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { createQuoteRequest } from "../../support/stubs/quote-routes.js";

const requester = { caller: "a", signal: new AbortController().signal };

const encodeWord = (value: bigint): string => utils.hexZeroPad(utils.hexlify(value), 32);
const multicall = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
]);

/** A chain on which every pool swaps 1:1 less one unit, and every transaction costs the same. */
function createEvenChain(slug: string): ChainClient {
  function call(data: string): string {
    if (data.startsWith(multicall.getSighash("aggregate3"))) {
      const [calls] = multicall.decodeFunctionData("aggregate3", data) as unknown as [{ callData: string }[]];
      return multicall.encodeFunctionResult("aggregate3", [calls.map(({ callData }) => [true, call(callData)])]);
    }
    // calculateSwap(uint8,uint8,uint256): the amount is its last word.
    if (data.startsWith("0xa95b089f")) return encodeWord(BigInt(`0x${data.slice(-64)}`) - 1n);
    return encodeWord(7n);
  }
  return {
    slug,
    sendBatch: () => Promise.reject(new Error("the SDK does not send batches")),
    getLogs: () => Promise.reject(new Error("quotes do not read logs")),
    async send(method, params) {
      if (method === "eth_gasPrice") return "0x3b9aca00";
      if (method === "eth_estimateGas") return "0x30d40";
      return call((params[0] as { data: string }).data);
    },
  };
}

const engine = new SdkEngine({
  settings: new FeeSettingsSource(undefined),
  prices: new ComparedTokenPrices({
    fixedPricesUsd: new Map(
      ["ETH", "USDC", "USDT", "DAI", "MATIC", "HOP", "rETH", "MAGIC", "SNX", "sUSD"].map((symbol) => [symbol, 1]),
    ),
    sources: [],
  }),
  attestations: undefined,
  limiter: new AdaptiveLimiter(Date.now),
  chains: (): never => {
    throw new Error("every quote has custom endpoints");
  },
});

test.each(NETWORK_SLUGS)("quotes every route of %s with calls to its two chains only", async (slug) => {
  const network = getNetwork(slug);
  const routes = findAvailableRoutes(network, getBuiltInFeeSettings(slug)).filter(({ token }) => token !== "USDC.e");
  expect(routes.length).toBeGreaterThan(29);
  for (const { token: symbol, source, destination } of routes) {
    const token = findToken(network, symbol);
    if (token === undefined) throw new Error(`no token ${symbol}`);
    const requestedSlugs = new Set<string>();
    const chains = {
      hasCustomEndpoint: () => true,
      getClient(slugOfChain: string) {
        requestedSlugs.add(slugOfChain);
        return createEvenChain(slugOfChain);
      },
    };
    const request = { network: slug, token, source, destination, amountIn: 10n ** 24n, slippagePercent: 1 };
    const quote = await engine.quoteWithCustomEndpoints(request, chains, requester);
    const route = `${symbol} ${source.slug}>${destination.slug}`;
    expect(quote.estimatedReceived + quote.bonderFee, route).toBeGreaterThan(10n ** 24n - 3n);
    expect(quote.estimatedReceived + quote.bonderFee, route).toBeLessThanOrEqual(10n ** 24n);
    expect([...requestedSlugs], route).toEqual([source.slug, destination.slug]);
  }
});

describe("an invalid response of a contract fails fast with UPSTREAM_UNAVAILABLE", () => {
  const huge = `0x${"0".repeat(63)}1${"0".repeat(600_000)}`;
  const max = `0x${"f".repeat(64)}`;
  const revertError = new RevertError("nonce".repeat(100_000), 3, `0x${"ab".repeat(100_000)}`);

  function quoteWith(override: (method: string, data: string) => unknown) {
    const chains = {
      hasCustomEndpoint: () => true,
      getClient: (slug: string): ChainClient => ({
        ...createEvenChain(slug),
        async send(method, params, signal) {
          const response = override(method, (params[0] as { data?: string } | undefined)?.data ?? "");
          if (response instanceof Error) throw response;
          return response === undefined ? createEvenChain(slug).send(method, params, signal) : response;
        },
      }),
    };
    const request = createQuoteRequest("ETH", "arbitrum", "optimism", { amountIn: 10n ** 18n });
    return engine.quoteWithCustomEndpoints(request, chains, requester);
  }

  const respondTo =
    (target: string, response: unknown) =>
    (method: string, data: string): unknown =>
      method === target || data.startsWith(target) ? response : undefined;
  const [calculateSwap, aggregate3, getL1Fee] = ["0xa95b089f", "0x82ad56cb", "0x49948e0e"] as const;

  test.each([
    ...["eth_gasPrice", "eth_estimateGas"].flatMap((method) =>
      [null, "", "0x", "0xzz", 5, {}, huge, max].map((answer) => [method, answer] as const),
    ),
    ...[calculateSwap, aggregate3, getL1Fee].flatMap((call) =>
      [null, "0x", "0x1234", 5, {}, huge].map((answer) => [call, answer] as const),
    ),
    [aggregate3, encodeWord(5n)],
    [aggregate3, max],
  ] as (readonly [string, unknown])[])("%s, response %#", async (target, response) => {
    const started = performance.now();
    await expect(quoteWith(respondTo(target, response))).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(performance.now() - started).toBeLessThan(60_000);
  });

  test("reports a swap that reverts as an invalid amount, however long the node's message is", async () => {
    const quote = quoteWith(respondTo(calculateSwap, revertError));
    await expect(quote).rejects.toMatchObject({ reason: "INVALID_PARAMETER", field: "amount" });
  });
});

test.each([
  ["view", { isFull: true }],
  ["receiveAmount", { receiveAmount: 1n }],
])("rejects %s, which the SDK cannot answer from one state", async (field, asked) => {
  const request = createQuoteRequest("USDT", "polygon", "optimism", asked);
  const chains = { hasCustomEndpoint: () => true, getClient: createEvenChain };
  await expect(engine.quoteWithCustomEndpoints(request, chains, requester)).rejects.toMatchObject({
    reason: "INVALID_PARAMETER",
    field,
  });
});
