import { afterEach, describe, expect, test, vi } from "vitest";
import type { ChainClient } from "../../src/chain/chain-client.js";
import { type FeeSettings, FeeSettingsSource, getBuiltInFeeSettings } from "../../src/hop/fee-settings.js";
import { ComparedTokenPrices } from "../../src/prices/token-prices.js";
import type { QuoteEngine } from "../../src/quotes/quote-engine.js";
import { SdkEngine } from "../../src/quotes/sdk-engine.js";
import { SnapshotEngine } from "../../src/quotes/snapshot-engine.js";
import { AdaptiveLimiter } from "../../src/resilience/adaptive-limiter.js";
import golden from "../golden/quotes.json" with { type: "json" };
import { isFullEffort } from "../support/effort.js";
import type { Pool } from "../support/reference/stable-swap.js";
import { createQuoteChainStub } from "../support/stubs/quote-chain-stub.js";
import { createQuoteRequest } from "../support/stubs/quote-routes.js";

const requester = { caller: "a", signal: new AbortController().signal };

type Case = (typeof golden.cases)[number];

const SEVEN_DAYS = 7 * 24 * 3600;
/** Of every bonder; not part of the recording. */
const CREDIT = 10n ** 24n;
const DEBIT = 10n ** 23n;
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
  const cctp = (inputs.cctp as Record<string, RecordedCctp>)[slug];
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
    burnLimit: BigInt(cctp?.burnLimit ?? 0),
    credit: CREDIT,
    debit: DEBIT,
    ...(uniswap !== undefined && {
      uniswap: {
        ...uniswap,
        sqrtPriceX96: BigInt(uniswap.sqrtPriceX96),
        liquidity: BigInt(uniswap.liquidity),
        quote: () => BigInt(destination.uniswapOut[0] ?? 0),
      },
    }),
  });
}

interface RecordedCctp {
  readonly minBonderFee: string;
  readonly burnLimit: string;
  readonly uniswapV3?: {
    readonly sqrtPriceX96: string;
    readonly tick: number;
    readonly liquidity: string;
    readonly fee: number;
  };
}

const deps = {
  settings: FeeSettingsSource.of({ ...getBuiltInFeeSettings("mainnet"), ...inputs.config } as FeeSettings),
  prices: new ComparedTokenPrices({
    fixedPricesUsd: new Map(Object.entries(inputs.pricesUsd)),
    sources: [],
  }),
  attestations: { find: async () => "0x00" },
  chains: (): never => {
    throw new Error("every golden case has custom endpoints");
  },
};
const snapshotEngine = new SnapshotEngine({
  ...deps,
  maxAgeMs: undefined,
  maxStaleMs: 30_000,
  clocks: { now: () => Date.now(), monotonicNow: () => Date.now() },
});
const engines: Readonly<Record<string, QuoteEngine>> = {
  snapshot: snapshotEngine,
  sdk: new SdkEngine({ ...deps, limiter: new AdaptiveLimiter(Date.now) }),
};

/** Returns the request of a golden case, with access to its recorded chains. Sets the clock to the recorded response. */
function replay(goldenCase: Case) {
  const { query, response } = goldenCase;
  // The second in which the recorded response was computed, which may be the one after the request.
  vi.useFakeTimers({ toFake: ["Date"], now: (response.deadline - SEVEN_DAYS) * 1000 });
  const amounts = { amountIn: BigInt(query.amount), slippagePercent: Number(query.slippage) };
  const request = createQuoteRequest(query.token, query.fromChain, query.toChain, amounts);
  const slugs = [request.source.slug, request.destination.slug];
  const clients = new Map(slugs.map((slug) => [slug, createRecordedChain(slug, goldenCase)]));
  const access = { getClient: (slug: string) => clients.get(slug) as ChainClient, hasCustomEndpoint: () => true };
  return { request, access };
}

afterEach(() => void vi.useRealTimers());

const cases = [...golden.cases.entries()];

describe.each(Object.entries(engines))(
  "quotes of engine %s equal those of the SDK and the deployed contracts",
  (name, engine) => {
    // The short form replays a third of the cases with the SDK, which they were recorded with.
    const replayed = cases.filter(([index]) => isFullEffort || name !== "sdk" || index % 3 === 0);
    test.each(replayed)("golden case %i", async (_, goldenCase) => {
      const { response } = goldenCase;
      const { request, access } = replay(goldenCase);
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
        destinationDeadline: response.destinationDeadline ?? (request.destination.isL1 ? 0 : response.deadline),
      });
    });
  },
);

describe("details equal the SDK's getSendData", () => {
  test.each(cases)("golden case %i", async (_, goldenCase) => {
    const { request, access } = replay(goldenCase);
    const { source, destination, token, amountIn } = request;
    const quote = await snapshotEngine.quoteWithCustomEndpoints({ ...request, isFull: true }, access, requester);

    const isCctp = token.symbol.startsWith("USDC");
    const burnLimit = isCctp ? 10n ** 12n : undefined;
    const { details, ...basicQuote } = quote;
    const isExceeded = burnLimit !== undefined && amountIn > burnLimit;
    expect({ ...basicQuote, ...(isExceeded && { exceededBurnLimit: burnLimit }) }).toEqual(
      await snapshotEngine.quoteWithCustomEndpoints(request, replay(goldenCase).access, requester),
    );
    const { lpFeeBps, lpFees, ...steps } = details?.breakdown ?? {};
    const printed = Object.entries(steps).map(([name, value]) => {
      return [name, typeof value === "bigint" ? String(value) : value];
    });
    const { estimatedReceived, ...recordedSteps } = goldenCase.steps;
    expect(Object.fromEntries(printed)).toEqual(recordedSteps);
    expect(quote.estimatedReceived).toBe(BigInt(estimatedReceived));

    const requiredLiquidity = BigInt(recordedSteps.requiredLiquidity);
    const [basis, available] = isCctp
      ? ["CCTP_BURN_LIMIT", burnLimit]
      : source.isL1
        ? ["UNLIMITED", undefined]
        : ["BONDER_CREDIT", CREDIT - DEBIT];
    expect(details).toMatchObject({
      liquidity: { basis, available },
      isLiquidityAvailable: available === undefined || (isCctp ? amountIn : requiredLiquidity) <= (available as bigint),
      deliveryTime: undefined,
      observedAt: goldenCase.response.deadline - SEVEN_DAYS,
    });
    if (!source.isL1 && !isCctp && !destination.isL1) {
      const gasLimit = goldenCase.destination.gasLimit.at(0);
      const chain = inputs.chains[destination.slug as keyof typeof inputs.chains];
      expect(details?.gas).toMatchObject({ gasPrice: BigInt(chain.gasPrice) });
      if (gasLimit !== undefined) expect(details?.gas.gasLimit).toBe(BigInt(gasLimit));
    }
  });
});
