import type { ChainClient } from "../chain/chain-client.js";
import type { NetworkChainClients } from "../chain/chains.js";
import { isQuantity } from "../chain/hex.js";
import { RevertError } from "../chain/json-rpc/rpc-errors.js";
import { ServiceError } from "../errors.js";
import type { AttestationClient } from "../hop/attestation-client.js";
import type { FeeSettingsSource } from "../hop/fee-settings.js";
import type { NetworkSlug } from "../hop/networks.js";
import type { SdkDataSources, SendRpc } from "../hop/sdk-quoter.js";
import type { TokenPrices } from "../prices/token-prices.js";
import type { AdaptiveLimiter } from "../resilience/adaptive-limiter.js";
import { FairSemaphore } from "../resilience/fair-semaphore.js";
import type { Requester } from "../resilience/waiters.js";
import type { Quote, QuoteBreakdown } from "./math/quote.js";
import type { PreparedQuote, QuoteEngine, TimestampedQuote } from "./quote-engine.js";
import { createInvalidResponseError } from "./state/chain-state.js";
import type { QuoteRequest } from "./state/quote-request.js";

/** A quote with its intermediate values. */
export type QuoteWithBreakdown = Quote & { readonly breakdown: QuoteBreakdown };

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

/** Quotes through the SDK, supplied with this service's chains, prices and settings. */
export class SdkEngine implements QuoteEngine {
  readonly #deps;
  #sdk: Promise<typeof import("../hop/sdk-quoter.js")> | undefined;

  constructor(deps: {
    readonly settings: Pick<FeeSettingsSource, "getCurrent">;
    readonly prices: TokenPrices;
    /** undefined: the gas of CCTP deliveries is the SDK's constant. */
    readonly attestations: Pick<AttestationClient, "find"> | undefined;
    /** The chains of a network on the configured endpoints. */
    readonly chains: (network: NetworkSlug) => NetworkChainClients;
    /** Limits concurrent quotes for callers: each takes milliseconds of CPU. */
    readonly limiter: AdaptiveLimiter;
  }) {
    this.#deps = deps;
  }

  async quote(request: QuoteRequest, requester: Requester): Promise<TimestampedQuote> {
    const chains = this.#deps.chains(request.network);
    const quote = await this.quoteWithCustomEndpoints(request, chains, requester);
    return { quote, freshness: SDK_QUOTE_FRESHNESS };
  }

  async quoteWithCustomEndpoints(
    request: QuoteRequest,
    chains: NetworkChainClients,
    { caller, signal }: Requester,
  ): Promise<Quote> {
    assertSupported(request);
    const work = () => this.quoteAtTime(request, chains, undefined, signal);
    const { breakdown, ...basicQuote } = await this.#deps.limiter.run(caller, signal, work);
    return basicQuote;
  }

  prepareQuotes(requests: readonly QuoteRequest[], requester: Requester): readonly PreparedQuote[] {
    const semaphore = new FairSemaphore(BATCH_CONCURRENCY);
    const { caller, signal } = requester;
    return requests.map((request) => () => semaphore.acquire(caller, signal, () => this.quote(request, requester)));
  }

  /**
   * Quotes like quoteWithCustomEndpoints, without the limiter and always with the intermediate values.
   * @param nowSeconds Unix seconds, which affect the price through the deadline in the calldata of deliveries; undefined: now
   */
  async quoteAtTime(
    request: QuoteRequest,
    chains: NetworkChainClients,
    nowSeconds: number | undefined,
    signal: AbortSignal,
  ): Promise<QuoteWithBreakdown> {
    const { settings, prices, attestations } = this.#deps;
    const { network, token, source, destination, amountIn, slippagePercent } = request;
    const [sdk, feeSettings] = await Promise.all([this.#loadSdk(), settings.getCurrent(network)]);
    if (feeSettings.bonderFeeBps[token.symbol] === undefined) {
      throw new ServiceError("UPSTREAM_UNAVAILABLE", `the fee settings have no fee for ${token.symbol}`);
    }
    const failures = new FailureRecorder();
    const sources: SdkDataSources = {
      chains: [source, destination].map(({ slug, chainId }) => {
        return { slug, chainId, send: createRecordedSend(chains.getClient(slug), failures, signal) };
      }),
      settings: feeSettings,
      getUsdPrice: (symbol) => failures.track(prices.getUsdPrice(symbol)),
      findAttestation: async (hash) => attestations && failures.track(attestations.find(hash)),
      nowSeconds,
    };
    const route = { network, token: token.requestedSymbol, sourceSlug: source.slug, destinationSlug: destination.slug };
    const sdkQuote = await sdk
      .quoteWithSdk({ ...route, amountIn, slippagePercent }, sources)
      .catch((error: unknown) => {
        throw failures.toReportedError(error);
      });
    // After a failed read, the SDK continues with a constant or 0, and the quote would be wrong without an error.
    failures.throwIfFailed();
    const { amountOutMin, deadline, breakdown } = sdkQuote;
    return {
      amountIn,
      amountOutMin,
      destinationAmountOutMin: sdkQuote.destinationAmountOutMin ?? amountOutMin,
      bonderFee: sdkQuote.totalFee,
      estimatedReceived: sdkQuote.estimatedReceived,
      deadline,
      destinationDeadline: sdkQuote.destinationDeadline ?? deadline,
      breakdown: {
        ...breakdown,
        priceImpact: Number.isFinite(breakdown.priceImpact) ? breakdown.priceImpact : undefined,
      },
    };
  }

  /** Loads the SDK once, and again after a failure. */
  #loadSdk(): Promise<typeof import("../hop/sdk-quoter.js")> {
    this.#sdk ??= import("../hop/sdk-quoter.js").catch((error: unknown) => {
      this.#sdk = undefined;
      throw error;
    });
    return this.#sdk;
  }
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
class FailureRecorder {
  #failure: { readonly error: unknown } | undefined;
  #swapReverted = false;

  /** Returns the promise's result and records its failure. */
  async track<T>(promise: Promise<T>): Promise<T> {
    try {
      return await promise;
    } catch (error) {
      if (!(error instanceof RevertError)) this.#failure ??= { error };
      throw error;
    }
  }

  /** Records that a call which swaps the amount reverted. */
  recordSwapRevert(): void {
    this.#swapReverted = true;
  }

  /** Maps an error that the SDK threw to the one to report. */
  toReportedError(error: unknown): unknown {
    if (this.#failure !== undefined) return this.#failure.error;
    // Where Uniswap's contract reverts, Uniswap's arithmetic inside the SDK fails with an invariant error.
    if (this.#swapReverted || /invariant/i.test(String(error))) {
      const message = "the pools of this route cannot swap this amount";
      return new ServiceError("INVALID_PARAMETER", message, { field: "amount", cause: error });
    }
    // Parameters are validated before, so what ethers rejects came from a chain.
    if (ETHERS_INPUT_ERROR_CODES.has(String((error as { code?: unknown }).code))) {
      const message = "a chain returned an invalid response for a Hop contract";
      return new ServiceError("UPSTREAM_UNAVAILABLE", message, { cause: error });
    }
    return error;
  }

  /** Throws the first recorded failure, if any. */
  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

/**
 * Returns a function that sends the SDK's calls, validates the responses and records failures. The SDK and ethers validate
 * little: a malicious response would make them compute for minutes or run out of memory.
 */
function createRecordedSend(client: ChainClient, failures: FailureRecorder, signal: AbortSignal): SendRpc {
  async function sendAndValidate(method: string, params: readonly unknown[]): Promise<unknown> {
    const result = await client.send(method, params, signal);
    if (method === "eth_call" ? isAbiWords(result) : isQuantity(result)) return result;
    throw createInvalidResponseError(client.slug);
  }
  return async (method, params) => {
    try {
      return await failures.track(sendAndValidate(method, params));
    } catch (error) {
      if (error instanceof RevertError && isSwapCall(params)) failures.recordSwapRevert();
      throw error;
    }
  };
}

/** Returns whether the value is one or more 32-byte words as hex, as all functions that a quote calls return. */
function isAbiWords(value: unknown): boolean {
  return typeof value === "string" && value.length <= MAX_RESULT_LENGTH && /^0x([0-9a-f]{64})+$/i.test(value);
}

function isSwapCall(params: readonly unknown[]): boolean {
  const [call] = params as [{ data?: unknown } | undefined];
  return typeof call?.data === "string" && SWAP_SELECTORS.has(call.data.slice(0, 10));
}
