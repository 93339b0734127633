import { type Chain, getNetwork, type Network, type NetworkSlug, type TokenContracts } from "../../hop/networks.js";
import type { Token } from "../../hop/tokens.js";

/** A transfer to quote, over a route that exists. */
export interface QuoteRequest {
  readonly network: NetworkSlug;
  readonly token: Token;
  readonly source: Chain;
  readonly destination: Chain;
  /** In the token's smallest unit, 1 to 2^256-1; 0n where `receiveAmount` is given. */
  readonly amountIn: bigint;
  /** Percent, 0 <= slippage < 100. */
  readonly slippagePercent: number;
  /** Instead of an amount, what the recipient is to receive at least, 1 to 2^256-1. */
  readonly receiveAmount?: bigint | undefined;
  /** Whether the quote has details. */
  readonly isFull?: boolean | undefined;
}

/** The route of a request, with its network resolved. */
export interface QuoteRoute {
  readonly network: Network;
  readonly token: Token;
  readonly source: Chain;
  readonly destination: Chain;
}

export function getQuoteRoute({ network, token, source, destination }: QuoteRequest): QuoteRoute {
  return { network: getNetwork(network), token, source, destination };
}

/** Returns the contracts of the route's token on a chain. */
export function getTokenContracts({ network, token }: QuoteRoute, chain: Chain): TokenContracts {
  return network.contracts.get(token.symbol)?.get(chain.slug) ?? {};
}

/** Returns an entry of the SDK's address book in lower case. @throws Error for a missing entry. */
export function requireContractAddress(value: string | number | undefined): string {
  if (typeof value !== "string") throw new Error("the address book has no such contract");
  return value.toLowerCase();
}
