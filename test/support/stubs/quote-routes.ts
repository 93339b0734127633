import { getNetwork, type NetworkSlug } from "../../../src/hop/networks.js";
import { findToken } from "../../../src/hop/tokens.js";
import { ChainState, type ChainStateValues } from "../../../src/quotes/state/chain-state.js";
import type { QuoteRequest, QuoteRoute } from "../../../src/quotes/state/quote-request.js";

/** Returns a route by the names of its token and chains. */
export function findQuoteRoute(
  token: string,
  from: string,
  to: string,
  networkSlug: NetworkSlug = "mainnet",
): QuoteRoute {
  const network = getNetwork(networkSlug);
  const found = {
    token: findToken(network, token),
    source: network.chains.get(from),
    destination: network.chains.get(to),
  };
  if (!found.token || !found.source || !found.destination) throw new Error(`no route ${token} ${from} ${to}`);
  return { network, token: found.token, source: found.source, destination: found.destination };
}

/** Creates a request for a quote on mainnet; `more` replaces fields. */
export function createQuoteRequest(
  token: string,
  from: string,
  to: string,
  more: Partial<QuoteRequest> = {},
): QuoteRequest {
  const { network: _, ...route } = findQuoteRoute(token, from, to);
  return { network: "mainnet", ...route, amountIn: 10n ** 8n, slippagePercent: 0.5, ...more };
}

/** Returns the address of a token's contract on mainnet, in lower case. */
export function addressOf(token: string, slug: string, name: string): string {
  return String(getNetwork("mainnet").contracts.get(token)?.get(slug)?.[name]).toLowerCase();
}

/** Creates the state of a chain in which these values were read. */
export function createChainState(
  values: Iterable<readonly [key: string, value: unknown]> = [],
  more: Partial<ChainStateValues> = {},
): ChainState {
  const block = { number: 1n, timeSeconds: 1n };
  const state = { block, readAt: 0, readAtUnixSeconds: 0, gasPrice: undefined, values: new Map(values), ...more };
  return new ChainState(state, "polygon");
}

/** What is read of a Uniswap pool at a price of 1, with one position that is known up to tick -256. */
export const UNISWAP_STATE = {
  ...{ sqrtPriceX96: 2n ** 96n, tick: 0, liquidity: 10n ** 15n, feePips: 100n, tickSpacing: 1, zeroForOne: true },
  bitmapWords: new Map([
    [0, 0n],
    [-1, 0n],
  ]),
  liquidityNet: new Map<number, bigint>(),
};
