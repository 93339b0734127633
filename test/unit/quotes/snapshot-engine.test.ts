import { utils } from "ethers";
import { describe, expect, test, vi } from "vitest";
import type { NetworkChainClients } from "../../../src/chain/chains.js";
import type { BlockReading } from "../../../src/chain/heads/head-tracker.js";
import { ServiceError } from "../../../src/errors.js";
import { FeeSettingsSource, getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { ComparedTokenPrices, type TokenPrices } from "../../../src/prices/token-prices.js";
import { getSqrtPriceAtTick } from "../../../src/quotes/math/uniswap-v3.js";
import { SnapshotEngine, type SnapshotEngineDeps } from "../../../src/quotes/snapshot-engine.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { createQuoteChainStub } from "../../support/stubs/quote-chain-stub.js";
import { addressOf, createQuoteRequest } from "../../support/stubs/quote-routes.js";

const NOW = 1_795_000_000_999;
const requester = { caller: "a", signal: new AbortController().signal };

/** A chain as one endpoint reports it: "own" and "shared" differ in every number. The price of USDC.e is far from 1. */
function createStub(slug: string, view: "own" | "shared", isCreditKnown = true) {
  const scale = view === "own" ? 3n : 2n;
  const pool = {
    decimals: 6,
    balances: [10n ** 12n * scale, 10n ** 12n] as const,
    aPrecise: 20_000n,
    swapFee: 4_000_000n,
  };
  return createQuoteChainStub({
    slug,
    pools: new Map([[addressOf("USDT", slug, "l2SaddleSwap"), pool]]),
    gasPrice: 10n ** 7n * scale,
    estimateGas: () => 100_000n * scale,
    l1Fee: () => 5n * scale,
    minBonderFeeAbsolute: () => 7n * scale,
    minBonderFee: 3n * scale,
    ...(isCreditKnown && { credit: 10n ** 9n * scale, debit: 300n * scale }),
    uniswap: {
      sqrtPriceX96: getSqrtPriceAtTick(-3_000),
      tick: -3_000,
      liquidity: 10n ** 12n * scale,
      fee: 100,
      quote: (amount) => amount / scale,
    },
  });
}

/** Starts an engine whose shared endpoints report the "own" view of some chains, and records the batches that they get. */
function start(ownView: readonly string[], options: Partial<SnapshotEngineDeps> = {}, isCreditKnown = true) {
  const clock = { time: 1_000_000 };
  const reads = new Set<string>();
  const batches: { readonly slug: string; readonly text: string }[] = [];
  const symbols = ["USDT", "USDC", "ETH", "MATIC", "DAI", "HOP", "XDAI"];
  const prices = new ComparedTokenPrices({
    fixedPricesUsd: new Map(symbols.map((symbol) => [symbol, symbol === "ETH" ? 3_000 : 1])),
    sources: [],
  });
  const engine = closeAfterTest(
    new SnapshotEngine({
      settings: FeeSettingsSource.of(getBuiltInFeeSettings("mainnet")),
      prices,
      attestations: undefined,
      chains: () => ({
        hasCustomEndpoint: () => false,
        getClient(slug) {
          const stub = createStub(slug, ownView.includes(slug) ? "own" : "shared", isCreditKnown);
          return {
            ...stub,
            sendBatch(calls, signal) {
              reads.add(slug);
              batches.push({ slug, text: JSON.stringify(calls) });
              return stub.sendBatch(calls, signal);
            },
          };
        },
      }),
      maxAgeMs: undefined,
      maxStaleMs: 30_000,
      clocks: { now: () => NOW + clock.time - 1_000_000, monotonicNow: () => clock.time },
      ...options,
    }),
  );
  return { engine, clock, reads, batches, prices };
}

/** Endpoints of a caller for some chains. */
function createAccess(slugs: readonly string[]): NetworkChainClients {
  return {
    hasCustomEndpoint: (slug) => slugs.includes(slug),
    getClient: (slug) => createStub(slug, "own"),
  };
}

const BRIDGED = { amountIn: 10n ** 14n };
const exact = (receiveAmount: bigint) => ({ amountIn: 0n, receiveAmount });

describe.each([
  ["two chains with pools", createQuoteRequest("USDT", "arbitrum", "optimism")],
  ["a source on which nothing is read", createQuoteRequest("USDT", "ethereum", "optimism")],
  ["a destination without a pool", createQuoteRequest("USDT", "optimism", "ethereum")],
  ["CCTP", createQuoteRequest("USDC", "arbitrum", "polygon")],
  ["a swap of USDC.e by the Quoter contract", createQuoteRequest("USDC.e", "polygon", "optimism", BRIDGED)],
  ["an amount to receive", createQuoteRequest("USDT", "arbitrum", "optimism", exact(10n ** 7n))],
  [
    "an amount to receive after a swap of USDC.e",
    createQuoteRequest("USDC.e", "polygon", "optimism", exact(10n ** 7n)),
  ],
])("a quote through endpoints of the caller, with %s", (_, basicRequest) => {
  const [from, to] = [basicRequest.source.slug, basicRequest.destination.slug];

  const ends: readonly (readonly [string, string[]])[] = [
    ["source", [from]],
    ["destination", [to]],
    ["chains", [from, to]],
  ];
  test.each(ends.flatMap(([end, own]) => [false, true].map((isFull) => [end, isFull, own] as const)))(
    "is the one that everybody gets if all endpoints report the same of its %s (details: %s)",
    async (__, isFull, own) => {
      const request = { ...basicRequest, isFull };
      const { quote: expected } = await start(own).engine.quote(request, requester);
      const { engine, reads } = start([]);
      const quote = await engine.quoteWithCustomEndpoints(request, createAccess(own), requester);
      expect(quote).toEqual(expected);
      expect([...reads].filter((slug) => own.includes(slug))).toEqual([]);
    },
  );
});

describe("a swap that reverts", () => {
  const request = createQuoteRequest("USDT", "arbitrum", "optimism", { amountIn: 2n ** 255n });
  const invalid = expect.objectContaining({
    reason: "INVALID_PARAMETER",
    field: "amount",
    message: "the pools of this route cannot swap this amount",
  });

  test("is an invalid amount, whether the state has to be read or is cached", async () => {
    const { engine } = start([]);
    await expect((async () => engine.quote(request, requester))()).rejects.toEqual(invalid);
    expect(() => engine.quote(request, requester)).toThrow(invalid);
  });

  test("is one through endpoints of the caller too", async () => {
    const { engine } = start([]);
    const access = createAccess(["arbitrum"]);
    await expect(engine.quoteWithCustomEndpoints(request, access, requester)).rejects.toEqual(invalid);
  });
});

test("the error of the caller's endpoint is the error of the quote", async () => {
  const { engine } = start([]);
  const down = new ServiceError("UPSTREAM_UNAVAILABLE", "no endpoint");
  const access: NetworkChainClients = {
    hasCustomEndpoint: (slug) => slug === "optimism",
    getClient: (slug) => ({ ...createStub(slug, "own"), sendBatch: () => Promise.reject(down) }),
  };
  const result = engine.quoteWithCustomEndpoints(createQuoteRequest("USDT", "arbitrum", "optimism"), access, requester);
  await expect(result).rejects.toBe(down);
});

test.each([
  [["arbitrum"], ["arbitrum"], true],
  [["optimism"], ["optimism"], true],
  [["arbitrum"], ["optimism"], false],
  [["optimism"], ["arbitrum"], false],
])("endpoints of the caller for %j are refused with an old block of %j: %s", async (own, old, isRefused) => {
  const blockAges = {
    stalledCount: () => 0,
    findStalled: () => undefined,
    isTooOld: (_: string, slug: string) => old.includes(slug),
    getAgeMs: ({ readAt }: BlockReading) => readAt,
  };
  const { engine } = start([], { blockAges });
  const request = createQuoteRequest("USDT", "arbitrum", "optimism");
  const result = engine.quoteWithCustomEndpoints(request, createAccess(own), requester);
  if (isRefused) await expect(result).rejects.toMatchObject({ reason: "CHAIN_STALLED" });
  else expect(await result).toMatchObject({ amountIn: request.amountIn });
});

describe("a shared quote", () => {
  const request = createQuoteRequest("USDT", "arbitrum", "optimism");

  test("is answered synchronously from cached inputs, with their age and limits", async () => {
    const ages: number[] = [];
    const { engine, clock } = start([], { onQuoteAge: (ageMs) => ages.push(ageMs) });
    expect((await engine.quote(request, requester)).freshness).toEqual({ ageMs: 0, maxAgeMs: 4_000, refreshMs: 2_000 });
    clock.time += 900;
    const cached = engine.quote(request, requester);
    expect(cached).not.toBeInstanceOf(Promise);
    expect((await cached).freshness).toEqual({ ageMs: 900, maxAgeMs: 4_000, refreshMs: 2_000 });
    expect(ages).toEqual([0, 900]);
    expect(engine.countActiveRoutes()).toBe(1);
  });

  test.each([
    ["source", createQuoteRequest("USDT", "arbitrum", "polygon")],
    ["destination", createQuoteRequest("USDT", "polygon", "optimism")],
  ])("is as old as the older of its inputs, if that is the state of the %s", async (_, other) => {
    const { engine, clock, reads } = start([]);
    await engine.quote(other, requester);
    clock.time += 900;
    reads.clear();
    const { freshness } = await engine.quote(request, requester);
    expect(reads.size).toBe(1);
    expect(freshness.ageMs).toBe(900);
  });

  test("with details of a swap that was read earlier was observed then", async () => {
    vi.useFakeTimers();
    const swap = createQuoteRequest("USDC.e", "polygon", "optimism", BRIDGED);
    const { engine, clock, reads } = start([]);
    await engine.quote(swap, requester);
    reads.clear();
    clock.time += 3_000;
    await vi.advanceTimersByTimeAsync(3_000);
    // The states were refreshed, the swap was not.
    expect([...reads].sort()).toEqual(["optimism", "polygon"]);
    const { quote, freshness } = await engine.quote({ ...swap, isFull: true }, requester);
    expect(freshness.ageMs).toBe(3_000);
    expect(quote.details).toMatchObject({ observedAt: Math.floor(NOW / 1000) });
    engine.close();
    reads.clear();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(reads.size).toBe(0);
  });

  test("expires a week after it was computed", async () => {
    const { engine, clock } = start([]);
    await engine.quote(request, requester);
    clock.time += 2_000;
    const { quote } = await engine.quote(request, requester);
    expect(quote.deadline).toBe(Math.floor((NOW + 2_000) / 1000) + 7 * 24 * 3_600);
  });

  test("waits for prices alone if these are not cached", async () => {
    const { engine: withPrices, prices } = start([]);
    const expected = await withPrices.quote(request, requester);
    const uncached: TokenPrices = {
      getTable: (symbols) => prices.getTable(symbols),
      getUsdPrice: (symbol) => prices.getUsdPrice(symbol),
      peekTable: () => undefined,
    };
    const { engine } = start([], { prices: uncached });
    expect(await engine.quote(request, requester)).toEqual(expected);
    expect(await engine.quote(request, requester)).toEqual(expected);
  });
});

describe("a quote with details", () => {
  const request = createQuoteRequest("USDT", "arbitrum", "optimism");
  const CREDIT_SELECTOR = utils.id("getCredit(address)").slice(2, 10);
  const DEBIT_SELECTOR = utils.id("getDebitAndAdditionalDebit(address)").slice(2, 10);

  test("reads the bonder's credit and debit with everything else, and a quote without details does not", async () => {
    const basic = start([]);
    const basicQuote = await basic.engine.quote(request, requester);
    const full = start([]);
    const { quote, freshness } = await full.engine.quote({ ...request, isFull: true }, requester);

    const { details, ...rest } = quote;
    const fixedOrigin = { source: "FIXED", updatedAtSeconds: 0 };
    expect({ quote: rest, freshness }).toEqual(basicQuote);
    const chainsOf = (batches: typeof basic.batches) => batches.map(({ slug }) => slug);
    expect(chainsOf(full.batches)).toEqual(chainsOf(basic.batches));
    expect(basic.batches.filter(({ text }) => text.includes(CREDIT_SELECTOR) || text.includes(DEBIT_SELECTOR))).toEqual(
      [],
    );
    const reading = full.batches.filter(({ text }) => text.includes(CREDIT_SELECTOR) && text.includes(DEBIT_SELECTOR));
    expect(chainsOf(reading)).toEqual(["optimism"]);
    expect(details).toMatchObject({
      liquidity: { basis: "BONDER_CREDIT", available: 2n * 10n ** 9n - 600n },
      isLiquidityAvailable: true,
      gas: { gasLimit: 200_000n, gasPrice: 2n * 10n ** 7n, l1Fee: 10n },
      prices: { tokenUsd: 1, nativeUsd: 3000, tokenOrigin: fixedOrigin, nativeOrigin: fixedOrigin },
      deliveryTime: undefined,
      observedAt: 1_795_000_000,
      validUntil: 1_795_000_004,
    });
  });

  test("is answered without the liquidity if that cannot be read", async () => {
    const { engine, batches } = start([], {}, false);
    const { quote } = await engine.quote({ ...request, isFull: true }, requester);
    expect(quote.details).toMatchObject({
      liquidity: { basis: "UNKNOWN", available: undefined },
      isLiquidityAvailable: true,
    });
    const sent = batches.length;
    await engine.quote({ ...request, isFull: true }, requester);
    // What could not be read is not asked for again before the next refresh.
    expect(batches).toHaveLength(sent);
  });

  test("for receiveAmount observes the amount that was found", async () => {
    const { engine } = start([]);
    const exactRequest = { ...request, ...exact(10n ** 8n) };
    const { quote } = await engine.quote(exactRequest, requester);
    expect(quote.estimatedReceived).toBeGreaterThanOrEqual(10n ** 8n);
    expect((await engine.quote({ ...request, amountIn: quote.amountIn }, requester)).quote).toEqual(quote);
    await expect(async () => engine.quote({ ...exactRequest, ...exact(10n ** 13n) }, requester)).rejects.toMatchObject({
      reason: "INVALID_PARAMETER",
      field: "receiveAmount",
      message: "the pools of this route cannot deliver this amount",
    });
  });
});
