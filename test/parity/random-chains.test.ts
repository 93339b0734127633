import { utils } from "ethers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { NetworkChainClients } from "../../src/chain/chains.js";
import { ServiceError } from "../../src/errors.js";
import { type FeeSettings, FeeSettingsSource, getBuiltInFeeSettings } from "../../src/hop/fee-settings.js";
import { type Chain, getNetwork, type NetworkSlug } from "../../src/hop/networks.js";
import { findAvailableRoutes } from "../../src/hop/routes.js";
import { findToken, type Token } from "../../src/hop/tokens.js";
import { ComparedTokenPrices } from "../../src/prices/token-prices.js";
import type { QuoteDetails } from "../../src/quotes/quote-details.js";
import { SdkEngine } from "../../src/quotes/sdk-engine.js";
import { SnapshotEngine } from "../../src/quotes/snapshot-engine.js";
import type { QuoteRequest } from "../../src/quotes/state/quote-request.js";
import { AdaptiveLimiter } from "../../src/resilience/adaptive-limiter.js";
import { isFullEffort } from "../support/effort.js";
import type { Pool } from "../support/reference/stable-swap.js";
import { createQuoteChainStub, type QuoteChainState } from "../support/stubs/quote-chain-stub.js";

const requester = { caller: "a", signal: new AbortController().signal };

// Compares with the SDK on chains of random values: pool balances and A, gas prices, estimates that succeed or revert, L1
// fees, minimum fees, token prices and fee settings.

const RUNS = isFullEffort ? 250 : 75;

/** Numbers of every magnitude up to this many bits. */
const magnitude = (bits: number): fc.Arbitrary<bigint> =>
  fc.integer({ min: 0, max: bits }).chain((n) => fc.bigInt({ min: 0n, max: 1n << BigInt(n) }));
const mayRevert = (bits: number): fc.Arbitrary<bigint | "reverts"> =>
  fc.option(magnitude(bits), { nil: "reverts" as const, freq: 4 });

/** Amounts that overflow the arithmetic of pools, so that each run has swaps that revert. */
const REVERTING_AMOUNT = fc.bigInt({ min: 1n << 254n, max: (1n << 256n) - 1n });

/** Realistic balances, so that most swaps succeed. */
const anyPool = fc.record({
  balances: fc.tuple(fc.bigInt({ min: 10n ** 3n, max: 10n ** 7n }), fc.bigInt({ min: 10n ** 3n, max: 10n ** 7n })),
  aPrecise: fc.bigInt({ min: 100n, max: 100_000n }),
  swapFee: fc.constantFrom(0n, 1_000_000n, 4_000_000n),
});

const anyChain = fc.record({
  // Without 0: the SDK quotes routes that Circle has closed too.
  ...{ credit: magnitude(100), debit: magnitude(100), burnLimit: magnitude(60).map((limit) => limit || 1n) },
  pool: anyPool,
  gasPrice: magnitude(40),
  gas: mayRevert(24),
  l1Fee: mayRevert(52),
  minFee: magnitude(60),
});
type AnyChain = typeof anyChain extends fc.Arbitrary<infer T> ? T : never;

const BONDERS = [
  `0x${"ab".repeat(20)}`,
  `0x${"AB".repeat(20)}`,
  utils.getAddress(`0x${"ab".repeat(20)}`),
  // Not valid addresses for ethers: a space, a wrong checksum, another prefix.
  `0x${"ab".repeat(20)} `,
  `0x${"aB".repeat(20)}`,
  `0X${"ab".repeat(20)}`,
  undefined,
];

const anySettings = fc.record({
  destinationFeeGasPriceMultiplier: fc.constantFrom<number[]>(1, 1.2, 1.9, 2.5, 0.333333, 10),
  bps: fc.integer({ min: 0, max: 10_000 }),
  relayerFeeEnabled: fc.boolean(),
  relayerFeeWei: magnitude(60),
  bonder: fc.constantFrom(...BONDERS),
});
type AnySettings = typeof anySettings extends fc.Arbitrary<infer T> ? T : never;

const anyCase = (network: NetworkSlug) =>
  fc.record({
    request: anyRequest(network),
    source: anyChain,
    destination: anyChain,
    settings: anySettings,
    prices: fc.tuple(anyPrice(), anyPrice()),
  });

function anyPrice(): fc.Arbitrary<number> {
  return fc.oneof(fc.double({ min: 0.0001, max: 100_000, noNaN: true }), fc.constantFrom(1, 3000, 0.99, 65_000.5));
}

function anyRequest(slug: NetworkSlug): fc.Arbitrary<QuoteRequest> {
  const network = getNetwork(slug);
  const routes = findAvailableRoutes(network, getBuiltInFeeSettings(slug)).flatMap(({ token, source, destination }) =>
    getNames(token).map((name) => ({ network: slug, token: findToken(network, name) as Token, source, destination })),
  );
  return fc
    .record({
      route: fc.constantFrom(...routes),
      amountIn: fc.oneof(magnitude(100), fc.bigInt({ min: 1n, max: 10n ** 24n }), magnitude(255), REVERTING_AMOUNT),
      slippagePercent: fc.oneof(
        fc.constantFrom(0, 0.1, 0.5, 1, 3, 99.99),
        fc.double({ min: 0, max: 99.999, noNaN: true }),
      ),
    })
    .map(({ route, amountIn, slippagePercent }) => ({
      ...route,
      amountIn: amountIn === 0n ? 1n : amountIn,
      slippagePercent,
    }));
}

const NAMES_BY_TOKEN: Readonly<Record<string, readonly string[]>> = {
  ETH: ["ETH", "WETH"],
  DAI: ["DAI", "XDAI", "WXDAI"],
  MATIC: ["MATIC", "WMATIC"],
};
const getNames = (token: string): readonly string[] => NAMES_BY_TOKEN[token] ?? [token];

function createChainState(chain: Chain, { network, token }: QuoteRequest, drawn: AnyChain): QuoteChainState {
  const address = getNetwork(network).contracts.get(token.symbol)?.get(chain.slug)?.l2SaddleSwap;
  const unit = 10n ** BigInt(token.decimals);
  const [canonical, hTokens] = drawn.pool.balances;
  const pool: Pool = { ...drawn.pool, decimals: token.decimals, balances: [canonical * unit, hTokens * unit] };
  return {
    slug: chain.slug,
    ...{ credit: drawn.credit, debit: drawn.debit, burnLimit: drawn.burnLimit },
    pools: new Map(typeof address === "string" ? [[address.toLowerCase(), pool]] : []),
    gasPrice: drawn.gasPrice,
    // Responses depend on every byte of the request.
    estimateGas: ({ from, to, data }) => addFingerprint(drawn.gas, [from, to, data]),
    l1Fee: (bytes) => addFingerprint(drawn.l1Fee, [bytes]),
    minBonderFeeAbsolute: (bridge) => drawn.minFee + fingerprint([bridge]),
    minBonderFee: drawn.minFee >> 40n,
    uniswap: {
      sqrtPriceX96: 2n ** 96n,
      tick: 0,
      liquidity: 10n ** 14n,
      fee: 100,
      quote: (amountIn) => (amountIn * 9_990n) / 10_000n,
    },
  };
}

function addFingerprint(drawn: bigint | "reverts", request: readonly (string | undefined)[]): bigint | "reverts" {
  return drawn === "reverts" ? drawn : drawn + fingerprint(request);
}

function fingerprint(request: readonly (string | undefined)[]): bigint {
  return BigInt(utils.id(request.join(" ").toLowerCase()).slice(0, 8));
}

function createSettings({ network, token, source, destination }: QuoteRequest, drawn: AnySettings): FeeSettings {
  const builtIn = getBuiltInFeeSettings(network);
  const { bonder } = drawn;
  return {
    ...builtIn,
    destinationFeeGasPriceMultiplier: drawn.destinationFeeGasPriceMultiplier,
    bonderFeeBps: { [token.symbol]: { [destination.slug]: drawn.bps, gnosis: Math.floor(drawn.bps / 2) } },
    bonders: bonder === undefined ? {} : { [token.symbol]: { [source.slug]: { [destination.slug]: bonder } } },
    relayerFeeEnabled: { [destination.slug]: drawn.relayerFeeEnabled },
    relayerFeeWei: { [destination.slug]: String(drawn.relayerFeeWei) },
  };
}

async function getOutcome(
  quoteOn: (access: NetworkChainClients) => Promise<unknown>,
  source: QuoteChainState,
  destination: QuoteChainState,
) {
  const clients = new Map([source, destination].map((state) => [state.slug, createQuoteChainStub(state)]));
  const hasCustomEndpoint = (): boolean => true;
  const getClient = (slug: string) => {
    const client = clients.get(slug);
    if (client === undefined) throw new Error(`unexpected chain ${slug}`);
    return client;
  };
  try {
    return await quoteOn({ getClient, hasCustomEndpoint });
  } catch (error) {
    if (error instanceof ServiceError) return { reason: error.reason, field: error.field };
    throw error;
  }
}

beforeAll(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  vi.spyOn(console, "warn").mockImplementation(() => {});
});

afterAll(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

type AnyCase = ReturnType<typeof anyCase> extends fc.Arbitrary<infer T> ? T : never;

/** Returns the outcomes of both engines for the same chains, prices and settings. */
async function getOutcomes({ request, source, destination, settings, prices: [token, native] }: AnyCase) {
  const { symbol } = request.token;
  const fixedPricesUsd = new Map([[symbol === "USDC.e" ? "USDC" : symbol, token]]);
  if (!fixedPricesUsd.has(getNativeSymbol(request))) fixedPricesUsd.set(getNativeSymbol(request), native);
  const shared = {
    settings: FeeSettingsSource.of(createSettings(request, settings)),
    prices: new ComparedTokenPrices({ fixedPricesUsd, sources: [] }),
    attestations: { find: async () => `0x${"5a".repeat(65)}` },
    chains: (): never => {
      throw new Error("every case has custom endpoints");
    },
  };
  const clocks = { now: () => Date.now(), monotonicNow: () => Date.now() };
  const snapshotEngine = new SnapshotEngine({ ...shared, maxAgeMs: undefined, maxStaleMs: 30_000, clocks });
  const chains = [
    createChainState(request.source, request, source),
    createChainState(request.destination, request, destination),
  ] as const;
  const sdkEngine = new SdkEngine({ ...shared, limiter: new AdaptiveLimiter(Date.now) });
  const fullRequest = { ...request, isFull: true };
  const quoteWithSteps: QuoteOn = async (access) => {
    const { details, ...quote } = await snapshotEngine.quoteWithCustomEndpoints(fullRequest, access, requester);
    expectLiquidity(details, { request, source, destination });
    return { ...quote, breakdown: details?.breakdown };
  };
  const quote: QuoteOn = async (access) => {
    const { exceededBurnLimit, ...others } = await snapshotEngine.quoteWithCustomEndpoints(request, access, requester);
    const isExceeded = isCctp(request) && request.amountIn > source.burnLimit;
    expect(exceededBurnLimit).toBe(isExceeded ? source.burnLimit : undefined);
    return others;
  };
  const nowSeconds = Math.floor(Date.now() / 1000);
  return {
    snapshot: await getOutcome(quote, ...chains),
    withDetails: await getOutcome(quoteWithSteps, ...chains),
    sdk: await getOutcome((access) => sdkEngine.quoteWithCustomEndpoints(request, access, requester), ...chains),
    sdkWithSteps: await getOutcome(
      (access) => sdkEngine.quoteAtTime(request, access, nowSeconds, requester.signal),
      ...chains,
    ),
  };
}

function isCctp({ token, network }: QuoteRequest): boolean {
  return token.symbol.startsWith("USDC") && network === "mainnet";
}

type QuoteOn = (access: NetworkChainClients) => Promise<unknown>;

function expectLiquidity(
  details: QuoteDetails | undefined,
  { request, source, destination }: Pick<AnyCase, "request" | "source" | "destination">,
): void {
  const { liquidity, isLiquidityAvailable, breakdown } = details as QuoteDetails;
  const { basis, available } = liquidity;
  if (isCctp(request)) expect(liquidity).toEqual({ basis: "CCTP_BURN_LIMIT", available: source.burnLimit });
  else if (request.source.isL1) expect(liquidity).toEqual({ basis: "UNLIMITED", available: undefined });
  else if (basis === "BONDER_CREDIT") {
    const { credit, debit } = destination;
    expect(available).toBe(credit > debit ? credit - debit : 0n);
    // Without a bonder's address, nothing can be read.
  } else expect(liquidity).toEqual({ basis: "UNKNOWN", available: undefined });
  const needed = isCctp(request) ? request.amountIn : breakdown.requiredLiquidity;
  expect(isLiquidityAvailable).toBe(available === undefined || available >= needed);
}

describe.each(["mainnet", "goerli"] as const)("on %s, the snapshot engine equals the SDK", (network) => {
  test("for random chains, prices and settings", async () => {
    const counts = { quoted: 0, rejected: 0 };
    await fc.assert(
      fc.asyncProperty(anyCase(network), async (drawn) => {
        const { snapshot, withDetails, sdk, sdkWithSteps } = await getOutcomes(drawn);
        expect(snapshot).toEqual(sdk);
        expect(withDetails).toEqual(sdkWithSteps);
        counts["reason" in (sdk as object) ? "rejected" : "quoted"] += 1;
      }),
      { numRuns: RUNS },
    );
    expect(counts.quoted).toBeGreaterThan(RUNS / 2);
    expect(counts.rejected).toBeGreaterThan(0);
  });

  test("in failing for a multiplier that ethers cannot parse", async () => {
    const routesToL1 = anyCase(network).filter(({ request }) => !request.source.isL1 && request.destination.isL1);
    const drawn = fc.sample(routesToL1, { numRuns: 1, seed: 1 })[0] as AnyCase;
    const settings = { ...drawn.settings, destinationFeeGasPriceMultiplier: 1e-7 };
    const request = { ...drawn.request, amountIn: 10n ** BigInt(drawn.request.token.decimals) };
    const { snapshot, sdk } = await getOutcomes({ ...drawn, request, settings });
    expect(snapshot).toEqual({ reason: "UPSTREAM_UNAVAILABLE", field: undefined });
    expect(sdk).toEqual(snapshot);
  });
});

/** Returns the symbol under which prices list the native token. */
function getNativeSymbol({ destination }: QuoteRequest): string {
  return destination.nativeToken === "XDAI" ? "DAI" : destination.nativeToken;
}
