import type { NetworkChainClients } from "../../chain/chains.js";
import { createFixedFeeSettings } from "../../hop/fee-settings-source.js";
import { createTokenPrices } from "../../prices/token-prices.js";
import { createAdaptiveLimiter } from "../../resilience/adaptive-limiter.js";
import { createSdkEngine } from "../sdk-engine.js";
import { createSnapshotEngine } from "../snapshot-engine.js";
import type { QuoteRequest } from "../state/quote-request.js";
import { type ComparisonInputs, type PrintedQuote, printQuote } from "./comparison-case.js";

/** Long enough for one quote from anything that answers. */
const MAX_AGE_MS = 600_000;

/**
 * Computes a quote with all intermediate values from the given inputs, as the service does for its callers.
 * @param chains at the block of the inputs
 */
export async function recomputeQuote(
  request: QuoteRequest,
  inputs: ComparisonInputs,
  chains: NetworkChainClients,
  signal: AbortSignal,
): Promise<PrintedQuote> {
  const requester = { caller: "shadow comparison", signal };
  const engine = createSnapshotEngine({
    ...createSources(inputs),
    chains: () => chains,
    maxAgeMs: MAX_AGE_MS,
    maxStaleMs: MAX_AGE_MS,
    clocks: { now: () => inputs.nowSeconds * 1_000, monotonicNow: () => 0 },
  });
  try {
    const fullRequest = { ...request, isFull: true };
    // Reads the ticks of Uniswap's pool, which the first read of a chain only finds out.
    if (request.token.symbol === "USDC.e") await engine.quote({ ...fullRequest, receiveAmount: 1n }, requester);
    const { quote } = await engine.quote(fullRequest, requester);
    return printQuote(quote);
  } finally {
    engine.close();
  }
}

/** Computes the same with the SDK, in this process. */
export async function recomputeSdkQuote(
  request: QuoteRequest,
  inputs: ComparisonInputs,
  chains: NetworkChainClients,
  signal: AbortSignal,
): Promise<PrintedQuote> {
  const limiter = createAdaptiveLimiter(() => 0);
  const engine = createSdkEngine({ ...createSources(inputs), chains: () => chains, limiter });
  return printQuote(await engine.quoteAtTime(request, chains, inputs.nowSeconds, signal));
}

function createSources({ settings, pricesUsd, attestations, nowSeconds }: ComparisonInputs) {
  return {
    settings: createFixedFeeSettings(settings),
    prices: createTokenPrices({
      fixedPricesUsd: new Map(Object.entries(pricesUsd)),
      sources: [],
      now: () => nowSeconds * 1_000,
    }),
    attestations: { find: async (hash: string) => attestations[hash] ?? undefined },
  };
}
