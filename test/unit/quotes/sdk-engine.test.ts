import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../src/chain/chain-client.js";
import { RevertError } from "../../../src/chain/json-rpc/revert-error.js";
import { getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { createFeeSettingsSource } from "../../../src/hop/fee-settings-source.js";
import { getNetwork, NETWORK_SLUGS } from "../../../src/hop/networks.js";
import { findToken } from "../../../src/hop/tokens.js";
import { createTokenPrices } from "../../../src/prices/token-prices.js";
import { createSdkEngine } from "../../../src/quotes/sdk-engine.js";
import { createAdaptiveLimiter } from "../../../src/resilience/adaptive-limiter.js";
import { findAvailableRoutes } from "../../../src/routes/available-routes.js";

const waiting = { caller: "a", signal: new AbortController().signal };

const word = (value: bigint): string => utils.hexZeroPad(utils.hexlify(value), 32);
const multicall = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
]);

/** A chain on which every pool gives one for one, less the last digit, and every call costs the same. */
function evenChain(slug: string): ChainClient {
  function call(data: string): string {
    if (data.startsWith(multicall.getSighash("aggregate3"))) {
      const [calls] = multicall.decodeFunctionData("aggregate3", data) as unknown as [{ callData: string }[]];
      return multicall.encodeFunctionResult("aggregate3", [calls.map(({ callData }) => [true, call(callData)])]);
    }
    // calculateSwap(uint8,uint8,uint256): the amount is its last word.
    if (data.startsWith("0xa95b089f")) return word(BigInt(`0x${data.slice(-64)}`) - 1n);
    return word(7n);
  }
  return {
    slug,
    sendBatch: () => Promise.reject(new Error("the SDK's calls come one by one")),
    getLogs: () => Promise.reject(new Error("quotes search no logs")),
    async send(method, params) {
      if (method === "eth_gasPrice") return "0x3b9aca00";
      if (method === "eth_estimateGas") return "0x30d40";
      return call((params[0] as { data: string }).data);
    },
  };
}

const engine = createSdkEngine({
  settings: createFeeSettingsSource(undefined),
  prices: createTokenPrices({
    fixedPricesUsd: new Map(
      ["ETH", "USDC", "USDT", "DAI", "MATIC", "HOP", "rETH", "MAGIC", "SNX", "sUSD"].map((each) => [each, 1]),
    ),
    document: undefined,
    now: Date.now,
  }),
  attestations: undefined,
  limiter: createAdaptiveLimiter(Date.now),
  chains: (): never => {
    throw new Error("every quote here has chains of its own");
  },
});

test.each(NETWORK_SLUGS)("every route of %s can be priced, with the chains that its quote names", async (slug) => {
  const network = getNetwork(slug);
  const routes = findAvailableRoutes(network, getBuiltInFeeSettings(slug)).filter(({ token }) => token !== "USDC.e");
  expect(routes.length).toBeGreaterThan(29);
  for (const { token: symbol, source, destination } of routes) {
    const token = findToken(network, symbol);
    if (token === undefined) throw new Error(`no token ${symbol}`);
    const asked = new Set<string>();
    const chains = {
      hasCustomEndpoint: () => true,
      getClient(name: string) {
        asked.add(name);
        return evenChain(name);
      },
    };
    const request = { network: slug, token, source, destination, amountIn: 10n ** 24n, slippagePercent: 1 };
    const quote = await engine.quoteWithCustomEndpoints(request, chains, waiting);
    const route = `${symbol} ${source.slug}>${destination.slug}`;
    expect(quote.estimatedReceived + quote.bonderFee, route).toBeGreaterThan(10n ** 24n - 3n);
    expect(quote.estimatedReceived + quote.bonderFee, route).toBeLessThanOrEqual(10n ** 24n);
    expect([...asked], route).toEqual([source.slug, destination.slug]);
  }
});

describe("an answer that Hop's contracts could not give is an upstream's fault, soon, and never a number", () => {
  const mainnet = getNetwork("mainnet");
  const huge = `0x${"0".repeat(63)}1${"0".repeat(600_000)}`;
  const max = `0x${"f".repeat(64)}`;
  const reverting = new RevertError("nonce".repeat(100_000), 3, `0x${"ab".repeat(100_000)}`);

  function quoteOver(lie: (method: string, data: string) => unknown) {
    const token = findToken(mainnet, "ETH");
    const [source, destination] = ["arbitrum", "optimism"].map((slug) => mainnet.chains.get(slug));
    if (!token || !source || !destination) throw new Error("no route");
    const chains = {
      hasCustomEndpoint: () => true,
      getClient: (slug: string): ChainClient => ({
        ...evenChain(slug),
        async send(method, params, signal) {
          const answer = lie(method, (params[0] as { data?: string } | undefined)?.data ?? "");
          if (answer instanceof Error) throw answer;
          return answer === undefined ? evenChain(slug).send(method, params, signal) : answer;
        },
      }),
    };
    const request = {
      network: "mainnet",
      token,
      source,
      destination,
      amountIn: 10n ** 18n,
      slippagePercent: 1,
    } as const;
    return engine.quoteWithCustomEndpoints(request, chains, waiting);
  }

  const to =
    (wanted: string, answer: unknown) =>
    (method: string, data: string): unknown =>
      method === wanted || data.startsWith(wanted) ? answer : undefined;
  const [calculateSwap, aggregate3, getL1Fee] = ["0xa95b089f", "0x82ad56cb", "0x49948e0e"] as const;

  test.each([
    ...["eth_gasPrice", "eth_estimateGas"].flatMap((method) =>
      [null, "", "0x", "0xzz", 5, {}, huge, max].map((answer) => [method, answer] as const),
    ),
    ...[calculateSwap, aggregate3, getL1Fee].flatMap((call) =>
      [null, "0x", "0x1234", 5, {}, huge].map((answer) => [call, answer] as const),
    ),
    [aggregate3, word(5n)],
    [aggregate3, max],
  ] as (readonly [string, unknown])[])("%s, lie %#", async (wanted, answer) => {
    const started = performance.now();
    await expect(quoteOver(to(wanted, answer))).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test("a swap that reverts is the amount's fault, at whatever length the node says so", async () => {
    const refused = quoteOver(to(calculateSwap, reverting));
    await expect(refused).rejects.toMatchObject({ reason: "INVALID_PARAMETER", field: "amount" });
  });
});
