import { fetchApiWithRetry } from "../shared/api/api-client.js";
import type { BatchQuotesResponse } from "../shared/api/api-types.js";
import { buildPath } from "../shared/api/build-path.js";
import { toNetworkParameter } from "../shared/api/network.js";
import { listSourceChains } from "../shared/api/route-selection.js";
import { fetchTokenPrice, type PricedToken } from "../shared/api/token-price.js";
import { convertFromUsd } from "../shared/format/amounts.js";
import { type RouteValue, SAMPLE_DOLLARS, toRouteValue } from "./route-value.js";

const SLIPPAGE_PERCENT = "0.5";

export interface RouteValuesOptions extends PricedToken {
  /** Receives the values of the routes from one chain, by destination. */
  readonly onValues: (from: string, values: ReadonlyMap<string, RouteValue>) => void;
  readonly signal: AbortSignal;
}

/**
 * Loads what a thousand dollars of a token bring on each of its routes: one call for each source, one after the other.
 * @returns whether there are values: false without a price
 * @throws ApiError, or the abort reason of the signal
 */
export async function loadRouteValues(options: RouteValuesOptions): Promise<boolean> {
  const { routes, token, network, decimals, onValues, signal } = options;
  const tokenUsd = await fetchTokenPrice(options, signal);
  if (tokenUsd === 0) return false;
  const amount = String(convertFromUsd(SAMPLE_DOLLARS, tokenUsd, decimals));
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
