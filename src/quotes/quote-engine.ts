import type { NetworkChains } from "../chain/chains.js";
import type { Chain, NetworkSlug } from "../hop/networks.js";
import type { Token } from "../hop/tokens.js";
import type { Quote } from "./math/quote.js";

/** What is to be sent over a route that exists. */
export interface QuoteRequest {
  readonly network: NetworkSlug;
  readonly token: Token;
  readonly source: Chain;
  readonly destination: Chain;
  /** In the token's smallest unit, 1 to 2^256-1. */
  readonly amountIn: bigint;
  /** Percent, 0 <= slippage < 100. */
  readonly slippagePercent: number;
}

/** How old the facts of a quote are and how old they may grow, in milliseconds. */
export interface QuoteFreshness {
  readonly ageMs: number;
  readonly maxAgeMs: number;
  /** About how often they are read again. */
  readonly refreshMs: number;
}

export interface TimestampedQuote {
  readonly quote: Quote;
  readonly freshness: QuoteFreshness;
}

/** Who waits for a quote; the signal is read only where there is something to wait for. */
export interface QuoteRequester {
  readonly caller: string;
  readonly signal: AbortSignal;
}

/**
 * Prices transfers. Both ways throw ServiceError INVALID_PARAMETER for an amount that a pool cannot swap, and
 * UPSTREAM_UNAVAILABLE when a chain, the prices or the settings that the quote needs cannot be read; OVERLOADED when too
 * many wait for what a quote of theirs needs to be done.
 */
export interface QuoteEngine {
  /** From what all callers share; without a promise where that is at hand. */
  quote(request: QuoteRequest, waiting: QuoteRequester): TimestampedQuote | Promise<TimestampedQuote>;
  /** With endpoints that this caller named: nothing that they answer is kept or reaches anybody else. */
  quoteWithCustomEndpoints(request: QuoteRequest, chains: NetworkChains, waiting: QuoteRequester): Promise<Quote>;
}
