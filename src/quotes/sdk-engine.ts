import type { ChainClient } from "../chain/chain-client.js";
import type { NetworkChainClients } from "../chain/chains.js";
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
import { createSemaphore } from "../resilience/semaphore.js";
import type { Quote } from "./math/quote.js";
import type { QuoteSteps } from "./math/quote-steps.js";
import type { QuoteEngine, QuoteRequester, TimestampedQuote } from "./quote-engine.js";
import type { QuoteRequest } from "./state/quote-request.js";

export interface SdkEngineDeps {
  readonly settings: FeeSettingsSource;
  readonly prices: TokenPrices;
  /** undefined: the gas of CCTP deliveries is the SDK's constant. */
  readonly attestations: Pick<AttestationClient, "find"> | undefined;
  /** The chains of a network on the configured endpoints. */
  readonly chains: (network: NetworkSlug) => NetworkChainClients;
  /** Limits concurrent quotes for callers: each takes milliseconds of CPU. */
  readonly limiter: AdaptiveLimiter;
}

export interface SdkEngine extends QuoteEngine {
  /**
   * Quotes like quoteWithCustomEndpoints, but at another time (Unix seconds), without the limiter and always with the
   * intermediate values. The time affects the price through the deadline in the calldata of deliveries.
   */
  quoteAtTime(
    request: QuoteRequest,
    chains: NetworkChainClients,
    nowSeconds: number,
    signal: AbortSignal,
  ): Promise<ReferenceQuote>;
}

/** A quote with its intermediate values. */
export interface ReferenceQuote extends Quote {
  readonly steps: QuoteSteps;
}

/** Selectors of calls that may revert because of the amount: calculateSwap, aggregate3 (of such calls), quoteExactInput. */
const SWAP_SELECTORS = new Set(["0xa95b089f", "0x82ad56cb", "0xcdca1753"]);

/** Codes of the errors that ethers throws for invalid input. */
const ETHERS_INPUT_ERROR_CODES = new Set(["CALL_EXCEPTION", "INVALID_ARGUMENT", "NUMERIC_FAULT", "BUFFER_OVERRUN"]);

/** Maximum length of a contract's response in hex characters; three swaps in one aggregate3 take a quarter of it. */
const MAX_RESULT_LENGTH = 4098;

/** An SDK quote reads its inputs itself; they change about once per block. */
const SDK_QUOTE_FRESHNESS = { ageMs: 0, maxAgeMs: 2_000, refreshMs: 2_000 };

/** How many quotes of a batch are made at the same time: all at once would fill the limiter. */
const BATCH_CONCURRENCY = 2;

/** Creates an engine that quotes through the SDK, supplied with this service's chains, prices and settings. */
export function createSdkEngine({
  settings,
  prices,
  attestations,
  chains: configuredChains,
  limiter,
}: SdkEngineDeps): SdkEngine {
  let sdkQuoter: Promise<SdkQuoter> | undefined;

  async function quote(
    { network, token, source, destination, amountIn, slippagePercent }: QuoteRequest,
    chains: NetworkChainClients,
    getNowSeconds: (() => number) | undefined,
    signal: AbortSignal,
  ): Promise<ReferenceQuote> {
    sdkQuoter ??= loadSdkQuoter().catch((error: unknown) => {
      sdkQuoter = undefined;
      throw error;
    });
    const [quoteWithSdk, feeSettings] = await Promise.all([sdkQuoter, settings.getCurrent(network)]);
    if (feeSettings.bonderFeeBps[token.symbol] === undefined) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${token.symbol}`);
    }
    const failures = createFailureRecorder();
    const sources: SdkDataSources = {
      chains: [source, destination].map(({ slug, chainId }) => {
        return { slug, chainId, send: createRecordedSend(chains.getClient(slug), failures, signal) };
      }),
      settings: feeSettings,
      getUsdPrice: (symbol) => failures.track(prices.getUsdPrice(symbol)),
      findAttestation: async (hash) => attestations && failures.track(attestations.find(hash)),
      getNowSeconds,
    };
    const request = {
      network,
      token: token.requestedSymbol,
      sourceSlug: source.slug,
      destinationSlug: destination.slug,
    };
    const sdkQuote = await quoteWithSdk({ ...request, amountIn, slippagePercent }, sources).catch((error: unknown) => {
      throw failures.toReportedError(error);
    });
    // After a failed read, the SDK continues with a constant or 0, and the quote would be wrong without an error.
    failures.throwIfFailed();
    const { amountOutMin, deadline, steps } = sdkQuote;
    return {
      amountIn,
      amountOutMin,
      destinationAmountOutMin: sdkQuote.destinationAmountOutMin ?? amountOutMin,
      bonderFee: sdkQuote.totalFee,
      estimatedReceived: sdkQuote.estimatedReceived,
      deadline,
      destinationDeadline: sdkQuote.destinationDeadline ?? deadline,
      steps: { ...steps, priceImpact: Number.isFinite(steps.priceImpact) ? steps.priceImpact : 0 },
    };
  }

  async function quoteWithCustomEndpoints(
    request: QuoteRequest,
    chains: NetworkChainClients,
    { caller, signal }: QuoteRequester,
  ): Promise<Quote> {
    assertSupported(request);
    const { steps, ...basicQuote } = await limiter.run(caller, signal, () => quote(request, chains, undefined, signal));
    return basicQuote;
  }

  async function quoteConfigured(request: QuoteRequest, requester: QuoteRequester): Promise<TimestampedQuote> {
    const sdkQuote = await quoteWithCustomEndpoints(request, configuredChains(request.network), requester);
    return { quote: sdkQuote, freshness: SDK_QUOTE_FRESHNESS };
  }

  return {
    quote: quoteConfigured,
    quoteWithCustomEndpoints,
    prepareQuotes(requests, requester) {
      const semaphore = createSemaphore(BATCH_CONCURRENCY);
      return requests.map(
        (request) => () => semaphore.acquire(requester.signal, () => quoteConfigured(request, requester)),
      );
    },
    quoteAtTime: (request, chains, nowSeconds, signal) => quote(request, chains, () => nowSeconds, signal),
  };
}

/**
 * The SDK returns neither the blocks nor the gas of a quote, and to find an amount would take it many quotes, each with
 * reads of its own.
 * @throws ServiceError INVALID_PARAMETER
 */
function assertSupported({ receiveAmount, isFull }: QuoteRequest): void {
  const field = receiveAmount !== undefined ? "receiveAmount" : isFull ? "view" : undefined;
  if (field === undefined) return;
  const message = `${field} is not supported by this server, which quotes through the SDK (QUOTE_ENGINE=sdk)`;
  throw new ServiceError("INVALID_PARAMETER", message, { field });
}

/** Records failures below the SDK, which swallows some of them and rewords the others. */
interface FailureRecorder {
  /** Returns the promise's result and records its failure. */
  track<T>(promise: Promise<T>): Promise<T>;
  /** Records that a call which swaps the amount reverted. */
  recordSwapRevert(): void;
  /** Maps an error that the SDK threw to the one to report. */
  toReportedError(error: unknown): unknown;
  /** Throws the first recorded failure, if any. */
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
      // Where Uniswap's contract reverts, Uniswap's arithmetic inside the SDK fails with an invariant error.
      if (swapReverted || /invariant/i.test(String(error))) {
        const message = "the pools of this route cannot swap this amount";
        return new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
      }
      // Parameters are validated before, so what ethers rejects came from a chain.
      if (ETHERS_INPUT_ERROR_CODES.has(String((error as { code?: unknown }).code))) {
        const message = "a chain returned an invalid response for a Hop contract";
        return new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
      }
      return error;
    },
    throwIfFailed() {
      if (failure !== undefined) throw failure.error;
    },
  };
}

/** Returns a function that sends the SDK's calls and records their failures. */
function createRecordedSend(client: ChainClient, failures: FailureRecorder, signal: AbortSignal): SendRpc {
  return async (method, params) => {
    try {
      return await failures.track(sendAndValidate(client, method, params, signal));
    } catch (error) {
      if (error instanceof RevertError && isSwapCall(params)) failures.recordSwapRevert();
      throw error;
    }
  };
}

/**
 * Sends a call and validates the response. The SDK and ethers validate little: a malicious response would make them
 * compute for minutes or run out of memory.
 * @throws ServiceError UPSTREAM_UNAVAILABLE for an invalid response
 */
async function sendAndValidate(
  client: ChainClient,
  method: string,
  params: readonly unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const result = await client.send(method, params, signal);
  const isValid = method === "eth_call" ? isAbiWords(result) : isQuantity(result);
  if (isValid) return result;
  throw new ServiceError("UPSTREAM_UNAVAILABLE", `${client.slug} returned an invalid response for a Hop contract`);
}

/** Returns whether the value is one or more 32-byte words as hex, as all functions that a quote calls return. */
function isAbiWords(value: unknown): boolean {
  return typeof value === "string" && value.length <= MAX_RESULT_LENGTH && /^0x([0-9a-f]{64})+$/i.test(value);
}

function isSwapCall(params: readonly unknown[]): boolean {
  const [call] = params as [{ data?: unknown } | undefined];
  return typeof call?.data === "string" && SWAP_SELECTORS.has(call.data.slice(0, 10));
}
