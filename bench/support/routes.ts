import { getTokenDecimals } from "../../src/hop/tokens.js";
import { describeGetRequests, type HttpRequests, VALUE } from "./load/http-requests.js";
import { timedGet } from "./timed-get.js";

export interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
}

/** A route that uses every input of a quote except the L1 data fee: two pools, prices, settings, a gas estimate. */
export const FULL_ROUTE: Route = { token: "USDT", sourceChainSlug: "polygon", destinationChainSlug: "arbitrum" };

/** Returns every route of a gateway, shuffled deterministically so that the first few differ in token and chains. */
export async function fetchRoutes(gatewayUrl: string): Promise<readonly Route[]> {
  const routes = JSON.parse((await timedGet(`${gatewayUrl}/v1/available-routes`)).body) as readonly Route[];
  return pickSpread(routes);
}

/** Shuffles deterministically. */
export function pickSpread<T>(routes: readonly T[]): readonly T[] {
  // A step that is coprime to the number of routes visits each route once.
  const step = [97, 89, 83].find((prime) => routes.length % prime !== 0) ?? 1;
  return routes.map((_, index) => routes[(index * step) % routes.length] as T);
}

/** Builds the path of a quote request. The amount is about 25 whole tokens and distinct for each index. */
export function buildQuotePath(route: Route, index: number): string {
  return buildPath(route, `${25n * 10n ** BigInt(getTokenDecimals(route.token)) + BigInt(index)}`);
}

/** Describes quote requests for {@link FULL_ROUTE} whose amounts never repeat. */
export function describeQuotes(): HttpRequests {
  return describeGetRequests(buildPath(FULL_ROUTE, VALUE), 25 * 10 ** getTokenDecimals(FULL_ROUTE.token));
}

function buildPath({ token, sourceChainSlug, destinationChainSlug }: Route, amount: string): string {
  return `/v1/quote?amount=${amount}&token=${token}&fromChain=${sourceChainSlug}&toChain=${destinationChainSlug}&slippage=0.5`;
}
