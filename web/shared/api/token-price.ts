import { fetchApiWithRetry } from "./api-client.js";
import type { DetailedQuoteResponse } from "./api-types.js";
import { buildPath } from "./build-path.js";
import { toNetworkParameter } from "./network.js";
import { listDestinationChains, listSourceChains, type Route } from "./route-selection.js";

export interface PricedToken {
  readonly routes: readonly Route[];
  readonly token: string;
  readonly network: string;
  readonly decimals: number;
  /** Chain whose quote is asked for the price, if it has one. Others may not be reachable. */
  readonly fromChain?: string | undefined;
}

/**
 * Fetches the price of a token in dollars, which the details of a quote have unless it starts on ethereum.
 * @returns 0 if no price is known
 * @throws ApiError, or the abort reason of the signal
 */
export async function fetchTokenPrice(
  { routes, token, network, decimals, fromChain: preferredChain }: PricedToken,
  signal: AbortSignal,
): Promise<number> {
  const pricedChains = listSourceChains(routes, token).filter((slug) => slug !== "ethereum");
  const fromChain = pricedChains.find((slug) => slug === preferredChain) ?? pricedChains[0];
  const toChain = fromChain && listDestinationChains(routes, token, fromChain)[0];
  if (fromChain === undefined || toChain === undefined) return 0;
  const amount = String(10n ** BigInt(decimals));
  const query = { token, fromChain, toChain, amount, slippage: "0.5", view: "FULL" };
  const path = buildPath("/v1/quote", { ...query, network: toNetworkParameter(network) });
  const { body } = await fetchApiWithRetry<DetailedQuoteResponse>(path, signal);
  return body.details.prices.tokenUsd;
}
