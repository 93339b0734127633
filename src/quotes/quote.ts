import type { ChainAccess } from "../chain/chains.js";
import type { Chain, NetworkSlug } from "../hop/networks.js";
import type { Token } from "../hop/tokens.js";

/** What is to be sent over a route that exists. */
export interface QuoteRequest {
  readonly network: NetworkSlug;
  readonly token: Token;
  readonly source: Chain;
  readonly destination: Chain;
  /** In the token's smallest unit, 1 to 2^256-1. */
  readonly amountIn: bigint;
  /** Percent, 0 <= slippage < 100. */
  readonly slippage: number;
}

/** Amounts in the token's smallest unit, times in Unix seconds. */
export interface Quote {
  readonly amountOutMin: bigint;
  readonly destinationAmountOutMin: bigint;
  readonly bonderFee: bigint;
  readonly estimatedReceived: bigint;
  readonly deadline: number;
  readonly destinationDeadline: number;
}

export interface QuoteEngine {
  /**
   * Prices a transfer.
   * @throws ServiceError INVALID_PARAMETER for an amount that a pool cannot swap, UPSTREAM_UNAVAILABLE when a chain,
   * the prices or the settings that the quote needs cannot be read.
   */
  quote(request: QuoteRequest, chains: ChainAccess, signal: AbortSignal): Promise<Quote>;
}
