import { getTokenDecimals } from "../../src/hop/tokens.js";
import { timedGet } from "./timed-get.js";

export interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
}

/** A route that needs all that a quote can need but a fee for data on L1: two pools, prices, settings, a gas estimate. */
export const FULL_ROUTE: Route = { token: "USDT", sourceChainSlug: "polygon", destinationChainSlug: "arbitrum" };

/** Every route that a gateway serves, first those that differ in token and chains, so that a few of them are diverse. */
export async function fetchRoutes(gatewayUrl: string): Promise<readonly Route[]> {
  const routes = JSON.parse((await timedGet(`${gatewayUrl}/v1/available-routes`)).body) as readonly Route[];
  // Steps of a number that has no divisor in common with how many there are visit each once.
  const step = [97, 89, 83].find((prime) => routes.length % prime !== 0) ?? 1;
  return routes.map((_, index) => routes[(index * step) % routes.length] as Route);
}

/** Path of a quote; every index is another amount, about 25 whole tokens. */
export function buildQuotePath({ token, sourceChainSlug, destinationChainSlug }: Route, index: number): string {
  const amount = 25n * 10n ** BigInt(getTokenDecimals(token)) + BigInt(index);
  return `/v1/quote?amount=${amount}&token=${token}&fromChain=${sourceChainSlug}&toChain=${destinationChainSlug}&slippage=0.5`;
}
