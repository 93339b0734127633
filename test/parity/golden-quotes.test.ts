import { afterEach, describe, expect, test, vi } from "vitest";
import type { ChainClient } from "../../src/chain/chain-client.js";
import { type FeeSettings, getBuiltInFeeSettings } from "../../src/hop/fee-settings.js";
import { createFeeSettingsSource } from "../../src/hop/fee-settings-source.js";
import { findChain, getNetwork } from "../../src/hop/networks.js";
import { findToken } from "../../src/hop/tokens.js";
import { createTokenPrices } from "../../src/prices/token-prices.js";
import type { QuoteEngine } from "../../src/quotes/quote-engine.js";
import { createSdkEngine } from "../../src/quotes/sdk-engine.js";
import { createSnapshotEngine } from "../../src/quotes/snapshot-engine.js";
import { createAdaptiveLimiter } from "../../src/resilience/adaptive-limiter.js";
import golden from "../golden/quotes.json" with { type: "json" };
import type { Pool } from "../support/reference/stable-swap.js";
import { createQuoteChainStub } from "../support/stubs/quote-chain-stub.js";

const requester = { caller: "a", signal: new AbortController().signal };

type Case = (typeof golden.cases)[number];

const SEVEN_DAYS = 7 * 24 * 3600;
const mainnet = getNetwork("mainnet");
const { inputs } = golden;
const poolsByChain = new Map<string, Map<string, Pool>>();
for (const [name, pool] of Object.entries(inputs.pools)) {
  const slug = name.split(".").at(-1) ?? "";
  const pools = poolsByChain.get(slug) ?? new Map();
  poolsByChain.set(slug, pools);
  pools.set(pool.swap.toLowerCase(), {
    decimals: pool.decimals,
    balances: pool.balances.map(BigInt) as unknown as [bigint, bigint],
    aPrecise: BigInt(pool.aPrecise),
    swapFee: BigInt(pool.swapFee),
  });
}

/** Creates a chain with the recorded responses of a golden case; its pools compute swaps. */
function createRecordedChain(slug: string, { destination }: Case): ChainClient {
  // Recorded in the order of the SDK's calls; each engine calls at least once.
  const replay = (recorded: readonly string[]) => {
    const remaining = [...recorded];
    return () => BigInt((remaining.length > 1 ? remaining.shift() : remaining[0]) ?? 0);
  };
  const nextGas = replay(destination.gasLimit);
  const nextL1Fee = replay(destination.l1FeeWei);
  const chain = inputs.chains[slug as keyof typeof inputs.chains];
  const cctp = (inputs.cctp as Record<string, { minBonderFee: string; uniswapV3?: RecordedUniswap }>)[slug];
  const uniswap = cctp?.uniswapV3;
  return createQuoteChainStub({
    slug,
    pools: poolsByChain.get(slug) ?? new Map(),
    gasPrice: BigInt(chain.gasPrice),
    estimateGas: nextGas,
    l1Fee: nextL1Fee,
    minBonderFeeAbsolute: (bridge) => {
      const recordedBridge = Object.values(inputs.bridges).find(({ l2Bridge }) => l2Bridge.toLowerCase() === bridge);
      return BigInt(recordedBridge?.minBonderFeeAbsolute ?? Number.NaN);
    },
    minBonderFee: BigInt(cctp?.minBonderFee ?? 0),
    ...(uniswap === undefined
      ? {}
      : { uniswap: { ...asBigInts(uniswap), quote: () => BigInt(destination.uniswapOut[0] ?? 0) } }),
  });
}

interface RecordedUniswap {
  readonly sqrtPriceX96: string;
  readonly tick: number;
  readonly liquidity: string;
  readonly fee: number;
}

function asBigInts({ sqrtPriceX96, liquidity, ...rest }: RecordedUniswap) {
  return { ...rest, sqrtPriceX96: BigInt(sqrtPriceX96), liquidity: BigInt(liquidity) };
}

const deps = {
  settings: {
    ...createFeeSettingsSource(undefined),
    getCurrent: async () => ({ ...getBuiltInFeeSettings("mainnet"), ...inputs.config }) as FeeSettings,
  },
  prices: createTokenPrices({
    fixedPricesUsd: new Map(Object.entries(inputs.pricesUsd)),
    document: undefined,
    now: Date.now,
  }),
  attestations: { find: async () => "0x00" },
  chains: (): never => {
    throw new Error("every golden case has custom endpoints");
  },
};
const engines: Readonly<Record<string, QuoteEngine>> = {
  snapshot: createSnapshotEngine({
    ...deps,
    maxAgeMs: undefined,
    maxStaleMs: 30_000,
    clocks: { now: () => Date.now(), monotonicNow: () => Date.now() },
  }),
  sdk: createSdkEngine({ ...deps, limiter: createAdaptiveLimiter(Date.now) }),
};

describe.each(Object.entries(engines))(
  "quotes of engine %s equal those of the SDK and the deployed contracts",
  (_, engine) => {
    afterEach(() => {
      vi.useRealTimers();
    });

    test.each(golden.cases.map((goldenCase, index) => [index, goldenCase] as const))(
      "golden case %i",
      async (_, goldenCase) => {
        const { query, response } = goldenCase;
        // The second in which the recorded response was computed, which may be the one after the request.
        vi.useFakeTimers({ toFake: ["Date"], now: (response.deadline - SEVEN_DAYS) * 1000 });
        const token = findToken(mainnet, query.token);
        const source = findChain(mainnet, query.fromChain);
        const destination = findChain(mainnet, query.toChain);
        if (!token || !source || !destination) throw new Error("unknown token or chain");
        const clients = new Map([source, destination].map(({ slug }) => [slug, createRecordedChain(slug, goldenCase)]));
        const request = {
          network: "mainnet",
          token,
          source,
          destination,
          amountIn: BigInt(query.amount),
          slippagePercent: Number(query.slippage),
        } as const;

        const access = { getClient: (slug: string) => clients.get(slug) as ChainClient, hasCustomEndpoint: () => true };
        const quote = await engine.quoteWithCustomEndpoints(request, access, requester);

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
          // The recording has null for transfers from L1; the service repeats the first field.
          destinationAmountOutMin: response.destinationAmountOutMin ?? response.amountOutMin,
          destinationDeadline: response.destinationDeadline ?? (destination.isL1 ? 0 : response.deadline),
        });
      },
    );
  },
);
