import { getTypicalAmount } from "../quote/default-quote.js";
import { buildPath, fetchApiWithRetry } from "../shared/api/api-client.js";
import type { BatchQuotesResponse, QuoteResponse } from "../shared/api/api-types.js";
import { toNetworkParameter } from "../shared/api/network.js";
import { listDestinationChains, listSourceChains, type Route } from "../shared/api/route-selection.js";
import { parseAmount } from "../shared/format/amounts.js";
import { type RouteValue, toRouteValue, toSampleAmount } from "./route-value.js";

const SLIPPAGE_PERCENT = "0.5";

export interface RouteValuesOptions {
  readonly routes: readonly Route[];
  readonly token: string;
  readonly network: string;
  readonly decimals: number;
  /** Receives the values of the routes from one chain, by destination. */
  readonly onValues: (from: string, values: ReadonlyMap<string, RouteValue>) => void;
  readonly signal: AbortSignal;
}

interface PricedQuote extends QuoteResponse {
  readonly details?: { readonly prices: { readonly tokenUsd: number } };
}

/**
 * Loads what a thousand dollars of a token bring on each of its routes: one call for each source, one after the other.
 * @returns whether there are values: false without a price
 * @throws ApiError, or the abort reason of the signal
 */
export async function loadRouteValues(options: RouteValuesOptions): Promise<boolean> {
  const { routes, token, network, decimals, onValues, signal } = options;
  const tokenUsd = await fetchPrice(options);
  if (tokenUsd === 0) return false;
  const amount = String(toSampleAmount(tokenUsd, decimals));
  for (const fromChain of listSourceChains(routes, token)) {
    const query = { token, fromChain, amount, slippage: SLIPPAGE_PERCENT, network: toNetworkParameter(network) };
    const { body } = await fetchApiWithRetry<BatchQuotesResponse>(buildPath("/v1/quotes", query), signal);
    onValues(
      fromChain,
      new Map(body.results.map((result) => [result.toChain, toRouteValue(result, tokenUsd, decimals)])),
    );
  }
  return true;
}

/** Returns the price of a token, which the details of a quote have unless it starts on ethereum; 0: none is known. */
async function fetchPrice({ routes, token, network, decimals, signal }: RouteValuesOptions): Promise<number> {
  const fromChain = listSourceChains(routes, token).find((slug) => slug !== "ethereum");
  const toChain = fromChain && listDestinationChains(routes, token, fromChain)[0];
  if (fromChain === undefined || toChain === undefined) return 0;
  const amount = String(parseAmount(getTypicalAmount(token), decimals));
  const query = { token, fromChain, toChain, amount, slippage: SLIPPAGE_PERCENT, view: "FULL" };
  const path = buildPath("/v1/quote", { ...query, network: toNetworkParameter(network) });
  const { body } = await fetchApiWithRetry<PricedQuote>(path, signal);
  return body.details?.prices.tokenUsd ?? 0;
}
