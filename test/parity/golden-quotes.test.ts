import { utils } from "ethers";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { ChainClient } from "../../src/chain/chain-client.js";
import { RevertError } from "../../src/chain/rpc-error.js";
import { builtInFeeSettings, type FeeSettings } from "../../src/hop/fee-settings.js";
import { createFeeSettingsSource } from "../../src/hop/fee-settings-source.js";
import { findChain, networkOf } from "../../src/hop/networks.js";
import { findToken } from "../../src/hop/tokens.js";
import { createTokenPrices } from "../../src/prices/token-prices.js";
import { createSdkEngine } from "../../src/quotes/sdk-engine.js";
import golden from "../golden/quotes.json" with { type: "json" };
import { calculateSwap, type Pool } from "../support/stable-swap.js";

type Case = (typeof golden.cases)[number];

const sevenDays = 7 * 24 * 3600;
const mainnet = networkOf("mainnet");
const { inputs } = golden;
const pools = new Map<string, Pool>();
for (const [name, pool] of Object.entries(inputs.pools)) {
  const slug = name.split(".").at(-1);
  pools.set(`${slug} ${pool.swap.toLowerCase()}`, {
    decimals: pool.decimals,
    balances: pool.balances.map(BigInt) as unknown as [bigint, bigint],
    aPrecise: BigInt(pool.aPrecise),
    swapFee: BigInt(pool.swapFee),
  });
}

const abi = new utils.Interface([
  "function calculateSwap(uint8 from, uint8 to, uint256 dx) view returns (uint256)",
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
  "function getL1Fee(bytes data) view returns (uint256)",
  "function minBonderFee() view returns (uint256)",
  "function minBonderFeeAbsolute() view returns (uint256)",
  "function decimals() view returns (uint8)",
  "function fee() view returns (uint24)",
  "function liquidity() view returns (uint128)",
  "function slot0() view returns (uint160, int24, uint16, uint16, uint16, uint8, bool)",
  "function quoteExactInput(bytes path, uint256 amountIn) view returns (uint256)",
]);

/** A chain that answers what the chain behind a golden case answered; its pools compute. */
function frozenChain(slug: string, { destination }: Case): ChainClient {
  const gasLimits = [...destination.gasLimit];
  const l1Fees = [...destination.l1FeeWei];
  const chain = inputs.chains[slug as keyof typeof inputs.chains];
  const cctp = (
    inputs.cctp as Record<
      string,
      { minBonderFee: string; uniswapV3?: { sqrtPriceX96: string; tick: number; liquidity: string; fee: number } }
    >
  )[slug];

  function call(to: string, data: string): string {
    const { name, args } = abi.parseTransaction({ data });
    const answer = (...values: unknown[]): string => abi.encodeFunctionResult(name, values);
    switch (name) {
      case "calculateSwap": {
        const pool = pools.get(`${slug} ${to.toLowerCase()}`);
        if (pool === undefined) throw new Error(`no pool ${to} on ${slug}`);
        try {
          return answer(calculateSwap(pool, args.from, args.dx.toBigInt()));
        } catch (error) {
          throw new RevertError(`execution reverted: ${error}`, 3, "0x");
        }
      }
      case "aggregate3":
        return answer(
          args.calls.map(({ target, callData }: { target: string; callData: string }) => [
            true,
            call(target, callData),
          ]),
        );
      case "getL1Fee":
        return answer(l1Fees.shift());
      case "minBonderFee":
        return answer(cctp?.minBonderFee);
      case "minBonderFeeAbsolute": {
        const bridge = Object.values(inputs.bridges).find(
          ({ l2Bridge }) => l2Bridge.toLowerCase() === to.toLowerCase(),
        );
        return answer(bridge?.minBonderFeeAbsolute);
      }
      case "decimals":
        return answer(6);
      case "fee":
        return answer(cctp?.uniswapV3?.fee);
      case "liquidity":
        return answer(cctp?.uniswapV3?.liquidity);
      case "slot0":
        return answer(cctp?.uniswapV3?.sqrtPriceX96, cctp?.uniswapV3?.tick, 0, 1, 1, 0, true);
      case "quoteExactInput":
        return answer(destination.uniswapOut[0]);
      default:
        throw new Error(`unexpected call ${name}`);
    }
  }

  return {
    slug,
    async send(method, params) {
      const [first] = params as [{ to: string; data: string }];
      if (method === "eth_gasPrice") return utils.hexValue(BigInt(chain.gasPrice));
      if (method === "eth_estimateGas") return utils.hexValue(BigInt(gasLimits.shift() ?? Number.NaN));
      if (method === "eth_call") return call(first.to, first.data);
      throw new Error(`unexpected method ${method}`);
    },
  };
}

const engine = createSdkEngine({
  settings: {
    ...createFeeSettingsSource(undefined),
    current: async () => ({ ...builtInFeeSettings("mainnet"), ...inputs.config }) as FeeSettings,
  },
  prices: createTokenPrices({ fixed: new Map(Object.entries(inputs.pricesUsd)), document: undefined, now: Date.now }),
  attestations: { find: async () => "0x00" },
});

describe("quotes through the SDK are those that the SDK gave on chains with the real contracts", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each(golden.cases.map((each, index) => [index, each] as const))("golden case %i", async (_, each) => {
    const { query, response } = each;
    // The second in which the recorded answer was computed, which may be the one after it was asked for.
    vi.useFakeTimers({ toFake: ["Date"], now: (response.deadline - sevenDays) * 1000 });
    const token = findToken(mainnet, query.token);
    const source = findChain(mainnet, query.fromChain);
    const destination = findChain(mainnet, query.toChain);
    if (!token || !source || !destination) throw new Error("unknown token or chain");
    const clients = new Map([source, destination].map(({ slug }) => [slug, frozenChain(slug, each)]));
    const request = {
      network: "mainnet",
      token,
      source,
      destination,
      amountIn: BigInt(query.amount),
      slippage: Number(query.slippage),
    } as const;

    const quote = await engine.quote(
      request,
      { client: (slug) => clients.get(slug) as ChainClient },
      new AbortController().signal,
    );

    expect({
      ...response,
      amountOutMin: quote.amountOutMin.toString(),
      destinationAmountOutMin: quote.destinationAmountOutMin.toString(),
      bonderFee: quote.bonderFee.toString(),
      estimatedRecieved: quote.estimatedReceived.toString(),
      deadline: quote.deadline,
      destinationDeadline: quote.destinationDeadline,
    }).toEqual({
      ...response,
      // Where the wrapper that recorded the case gave null, a value stands: from L1 the first field repeated.
      destinationAmountOutMin: response.destinationAmountOutMin ?? response.amountOutMin,
      destinationDeadline: response.destinationDeadline ?? (destination.isL1 ? 0 : response.deadline),
    });
  });
});
