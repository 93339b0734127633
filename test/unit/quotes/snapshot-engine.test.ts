import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { FeeSettingsSource, getBuiltInFeeSettings } from "../../../src/hop/fee-settings.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { findToken } from "../../../src/hop/tokens.js";
import { ComparedTokenPrices } from "../../../src/prices/token-prices.js";
import { SnapshotEngine } from "../../../src/quotes/snapshot-engine.js";
import { createQuoteChainStub } from "../../support/stubs/quote-chain-stub.js";

const mainnet = getNetwork("mainnet");
const token = findToken(mainnet, "USDC");
const source = mainnet.chains.get("arbitrum");
const destination = mainnet.chains.get("polygon");
if (!token || !source || !destination) throw new Error("no such route");
const request = { network: "mainnet", token, source, destination, amountIn: 10n ** 9n, slippagePercent: 0.5 } as const;

describe("a quote with details", () => {
  const usdt = findToken(mainnet, "USDT");
  const optimism = mainnet.chains.get("optimism");
  if (!usdt || !optimism) throw new Error("no such route");
  const usdtRequest = { ...request, token: usdt, destination: optimism, amountIn: 10n ** 8n };
  const pool = { decimals: 6, balances: [10n ** 12n, 10n ** 12n] as const, aPrecise: 20_000n, swapFee: 4_000_000n };
  const poolAddress = (slug: string) => String(mainnet.contracts.get("USDT")?.get(slug)?.l2SaddleSwap).toLowerCase();
  const CREDIT_SELECTOR = utils.id("getCredit(address)").slice(2, 10);
  const DEBIT_SELECTOR = utils.id("getDebitAndAdditionalDebit(address)").slice(2, 10);
  const requester = { caller: "a", signal: new AbortController().signal };

  /** Starts an engine, and records the batches that each chain gets. @param credit undefined: the call reverts */
  function start(credit: bigint | undefined) {
    const batches: { readonly slug: string; readonly text: string }[] = [];
    const settings = getBuiltInFeeSettings("mainnet");
    const engine = new SnapshotEngine({
      settings: FeeSettingsSource.of(settings),
      prices: new ComparedTokenPrices({
        fixedPricesUsd: new Map([
          ["USDT", 1],
          ["ETH", 3000],
        ]),
        sources: [],
      }),
      attestations: undefined,
      chains: () => ({
        hasCustomEndpoint: () => false,
        getClient(slug) {
          const stub = createQuoteChainStub({
            slug,
            pools: new Map([[poolAddress(slug), pool]]),
            ...{ gasPrice: 10n ** 7n, estimateGas: () => 100_000n, l1Fee: () => 5n },
            ...{ minBonderFeeAbsolute: () => 0n, minBonderFee: 0n },
            ...(credit === undefined ? {} : { credit, debit: 300n }),
          });
          return {
            ...stub,
            sendBatch(calls, signal) {
              batches.push({ slug, text: JSON.stringify(calls) });
              return stub.sendBatch(calls, signal);
            },
          };
        },
      }),
      maxAgeMs: undefined,
      maxStaleMs: 30_000,
      clocks: { now: () => 1_795_000_000_999, monotonicNow: () => 1_000_000 },
    });
    return { engine, batches };
  }

  test("reads the bonder's credit and debit with everything else, and a quote without details does not", async () => {
    const basic = start(10n ** 9n);
    const basicQuote = await basic.engine.quote(usdtRequest, requester);
    basic.engine.close();
    const full = start(10n ** 9n);
    const { quote, freshness } = await full.engine.quote({ ...usdtRequest, isFull: true }, requester);
    full.engine.close();

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
      liquidity: { basis: "BONDER_CREDIT", available: 10n ** 9n - 300n },
      isLiquidityAvailable: true,
      gas: { gasLimit: 100_000n, gasPrice: 10n ** 7n, l1Fee: 5n },
      prices: { tokenUsd: 1, nativeUsd: 3000, tokenOrigin: fixedOrigin, nativeOrigin: fixedOrigin },
      deliveryTime: undefined,
      observedAt: 1_795_000_000,
      validUntil: 1_795_000_004,
    });
  });

  test("is answered without the liquidity if that cannot be read", async () => {
    const { engine, batches } = start(undefined);
    const { quote } = await engine.quote({ ...usdtRequest, isFull: true }, requester);
    expect(quote.details).toMatchObject({
      liquidity: { basis: "UNKNOWN", available: undefined },
      isLiquidityAvailable: true,
    });
    const sent = batches.length;
    await engine.quote({ ...usdtRequest, isFull: true }, requester);
    engine.close();
    // What could not be read is not asked for again before the next refresh.
    expect(batches).toHaveLength(sent);
  });

  test("for receiveAmount observes the amount that was found", async () => {
    const { engine } = start(10n ** 9n);
    const exact = { ...usdtRequest, amountIn: 0n, receiveAmount: 10n ** 8n };
    const { quote } = await engine.quote(exact, requester);
    expect(quote.estimatedReceived).toBeGreaterThanOrEqual(10n ** 8n);
    expect((await engine.quote({ ...usdtRequest, amountIn: quote.amountIn }, requester)).quote).toEqual(quote);
    const impossible = { ...exact, receiveAmount: 10n ** 12n };
    await expect(async () => engine.quote(impossible, requester)).rejects.toMatchObject({
      reason: "INVALID_PARAMETER",
      field: "receiveAmount",
      message: "the pools of this route cannot deliver this amount",
    });
    engine.close();
  });
});
