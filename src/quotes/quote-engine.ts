import type { NetworkChainClients } from "../chain/chains.js";
import type { MaybePromise } from "../resilience/maybe-async.js";
import type { Requester } from "../resilience/waiters.js";
import type { Quote } from "./math/quote.js";
import type { QuoteDetails } from "./quote-details.js";
import type { QuoteRequest } from "./state/quote-request.js";

/** Age of a quote's inputs and its limits, in milliseconds. */
export interface QuoteFreshness {
  readonly ageMs: number;
  readonly maxAgeMs: number;
  /** Approximate interval between refreshes. */
  readonly refreshMs: number;
}

/** A quote, with details if the request asks for them. */
export interface DetailedQuote extends Quote {
  readonly details?: QuoteDetails | undefined;
  /** The most that one CCTP message burns, where the amount is above it and no details say so. */
  readonly exceededBurnLimit?: bigint | undefined;
}

export interface TimestampedQuote {
  readonly quote: DetailedQuote;
  readonly freshness: QuoteFreshness;
}

/**
 * Computes a quote from inputs that are at hand. It only has to wait for what depends on the amount and is not computed
 * here. Throws like `QuoteEngine`.
 */
export type PreparedQuote = () => MaybePromise<TimestampedQuote>;

/**
 * Quotes transfers. All methods throw a ServiceError: INVALID_PARAMETER for an amount that a pool cannot swap, or that no
 * amount brings; UNSUPPORTED_ROUTE where Circle has closed CCTP V1; CHAIN_STALLED when a chain of the route is stalled; UPSTREAM_UNAVAILABLE when a chain, the prices or
 * the settings cannot be read; OVERLOADED when too much work is pending.
 */
export interface QuoteEngine {
  /**
   * Quotes from the inputs that all callers share; synchronously if they are cached.
   * @param requester its signal is only read if the quote has to wait
   */
  quote(request: QuoteRequest, requester: Requester): MaybePromise<TimestampedQuote>;
  /** Quotes through endpoints that the caller named; their responses are neither cached nor shared with other callers. */
  quoteWithCustomEndpoints(
    request: QuoteRequest,
    chains: NetworkChainClients,
    requester: Requester,
  ): Promise<DetailedQuote>;
  /**
   * Gets the inputs of several quotes, in their order; those that read the same chain get the same state of it, if the
   * engine reads the chains itself. Each element fails alone.
   */
  prepareQuotes(requests: readonly QuoteRequest[], requester: Requester): readonly MaybePromise<PreparedQuote>[];
}
