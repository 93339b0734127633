import type { ChainClient } from "../chain/chain-client.js";
import type { NetworkChains } from "../chain/chains.js";
import { isQuantity } from "../chain/hex.js";
import { RevertError } from "../chain/json-rpc/revert-error.js";
import { ServiceError } from "../errors.js";
import type { AttestationClient } from "../hop/cctp/attestation-client.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { SendRpc } from "../hop/sdk/sdk-provider.js";
import { loadSdkQuoter, type SdkDataSources, type SdkQuoter } from "../hop/sdk/sdk-quoter.js";
import type { TokenPrices } from "../prices/token-prices.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import type { Quote } from "./math/quote.js";
import type { QuoteEngine, QuoteRequest, QuoteRequester } from "./quote-engine.js";

export interface SdkEngineDeps {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
  /** The chains of a network on the endpoints of our own. */
  readonly chains: (network: NetworkSlug) => NetworkChains;
  /** What quotes for callers have to pass: one takes milliseconds of CPU. */
  readonly limiter: AdaptiveLimiter;
}

export interface SdkEngine extends QuoteEngine {
  /** As quotePrivately, with the clock of another time, Unix seconds, and at once: deadlines have a part in the price. */
  quoteAtTime(request: QuoteRequest, chains: NetworkChains, nowSeconds: number, signal: AbortSignal): Promise<Quote>;
}

/** Selectors of the calls that revert because of the amount: calculateSwap, aggregate3 (of such calls), quoteExactInput. */
const swapSelectors = new Set(["0xa95b089f", "0x82ad56cb", "0xcdca1753"]);

/** Codes of ethers' errors about what it was given to read. */
const ethersInputErrorCodes = new Set(["CALL_EXCEPTION", "INVALID_ARGUMENT", "NUMERIC_FAULT", "BUFFER_OVERRUN"]);

/** Longest answer of a contract, in characters of hex: three swaps in one aggregate3 take a quarter of it. */
const MAX_RESULT_LENGTH = 4098;

/** A quote by the SDK is as old as it takes to make it, and about the next block there would be another. */
const SDK_QUOTE_FRESHNESS = { ageMs: 0, maxAgeMs: 2_000, refreshMs: 2_000 };

/** Quotes through the SDK, fed with our own chains, prices and settings. */
export function createSdkEngine({
  settings,
  prices,
  attestations,
  chains: ourChains,
  limiter,
}: SdkEngineDeps): SdkEngine {
  let loading: Promise<SdkQuoter> | undefined;

  async function quote(
    { network, token, source, destination, amountIn, slippagePercent }: QuoteRequest,
    chains: NetworkChains,
    getNowSeconds: (() => number) | undefined,
    signal: AbortSignal,
  ): Promise<Quote> {
    loading ??= loadSdkQuoter().catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
    const [sdkQuote, feeSettings] = await Promise.all([loading, settings.getCurrent(network)]);
    if (feeSettings.bonderFeeBps[token.symbol] === undefined) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${token.symbol}`);
    }
    const trouble = createFailureRecorder();
    const sources: SdkDataSources = {
      chains: [source, destination].map(({ slug, chainId }) => {
        return { slug, chainId, send: createRecordedSend(chains.getClient(slug), trouble, signal) };
      }),
      settings: feeSettings,
      getUsdPrice: (symbol) => trouble.track(prices.getUsdPrice(symbol)),
      findAttestation: async (hash) => attestations && trouble.track(attestations.find(hash)),
      getNowSeconds,
    };
    const request = {
      network,
      token: token.requestedSymbol,
      sourceSlug: source.slug,
      destinationSlug: destination.slug,
    };
    const answer = await sdkQuote({ ...request, amountIn, slippagePercent }, sources).catch((error: unknown) => {
      throw trouble.toReportedError(error);
    });
    // The SDK goes on with a constant or 0 where a read fails, and the quote would be silently wrong.
    trouble.throwIfFailed();
    const { amountOutMin, deadline } = answer;
    return {
      amountOutMin,
      destinationAmountOutMin: answer.destinationAmountOutMin ?? amountOutMin,
      bonderFee: answer.totalFee,
      estimatedReceived: answer.estimatedReceived,
      deadline,
      destinationDeadline: answer.destinationDeadline ?? deadline,
    };
  }

  function quoteWithCustomEndpoints(
    request: QuoteRequest,
    chains: NetworkChains,
    { caller, signal }: QuoteRequester,
  ): Promise<Quote> {
    return limiter.run(caller, signal, () => quote(request, chains, undefined, signal));
  }

  return {
    quote: async (request, waiting) => ({
      quote: await quoteWithCustomEndpoints(request, ourChains(request.network), waiting),
      freshness: SDK_QUOTE_FRESHNESS,
    }),
    quoteWithCustomEndpoints,
    quoteAtTime: (request, chains, nowSeconds, signal) => quote(request, chains, () => nowSeconds, signal),
  };
}

/** Sees what went wrong below the SDK, which swallows some failures and rewords the others. */
interface FailureRecorder {
  /** Passes a promise through and remembers its failure. */
  track<T>(promise: Promise<T>): Promise<T>;
  /** Notes that a call which swaps the amount reverted. */
  recordSwapRevert(): void;
  /** The error to answer for one that the SDK threw. */
  toReportedError(error: unknown): unknown;
  /** Throws the first remembered failure, if any. */
  throwIfFailed(): void;
}

function createFailureRecorder(): FailureRecorder {
  let failure: { readonly error: unknown } | undefined;
  let swapReverted = false;

  return {
    async track(promise) {
      try {
        return await promise;
      } catch (error) {
        if (!(error instanceof RevertError)) failure ??= { error };
        throw error;
      }
    },
    recordSwapRevert() {
      swapReverted = true;
    },
    toReportedError(error) {
      if (failure !== undefined) return failure.error;
      // Uniswap's own arithmetic in the SDK refuses with a failed invariant what its contract refuses with a revert.
      if (swapReverted || /invariant/i.test(String(error))) {
        const message = "the pools of this route cannot swap this amount";
        return new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
      }
      // What ethers cannot read or compute with came from a chain: the caller's own values are checked before.
      if (ethersInputErrorCodes.has(String((error as { code?: unknown }).code))) {
        const message = "a chain gives an answer that Hop's contracts could not give";
        return new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
      }
      return error;
    },
    throwIfFailed() {
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** Sends the SDK's calls, and notes what goes wrong. */
function createRecordedSend(client: ChainClient, trouble: FailureRecorder, signal: AbortSignal): SendRpc {
  return async (method, params) => {
    try {
      return await trouble.track(sendAndValidate(client, method, params, signal));
    } catch (error) {
      if (error instanceof RevertError && isSwapCall(params)) trouble.recordSwapRevert();
      throw error;
    }
  };
}

/**
 * An answer that the SDK and ethers can be given: they check little, and a hostile one makes them compute for minutes
 * or run out of memory.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for any other
 */
async function sendAndValidate(
  client: ChainClient,
  method: string,
  params: readonly unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const result = await client.send(method, params, signal);
  const isRight = method === "eth_call" ? isAbiWords(result) : isQuantity(result);
  if (isRight) return result;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${client.slug} gives an answer that Hop's contracts could not give`);
}

/** Whole 32-byte words as hex, at least one: what every function that a quote calls returns. */
function isAbiWords(value: unknown): boolean {
  return typeof value === "string" && value.length <= MAX_RESULT_LENGTH && /^0x([0-9a-f]{64})+$/i.test(value);
}

function isSwapCall(params: readonly unknown[]): boolean {
  const [call] = params as [{ data?: unknown } | undefined];
  return typeof call?.data === "string" && swapSelectors.has(call.data.slice(0, 10));
}
