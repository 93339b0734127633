import { listTokens, type Route } from "../api/route-selection.js";
import { formatAmount } from "../format/amounts.js";
import type { ViewLocation, ViewName, ViewParameters } from "./location-hash.js";

/** The page's names of parameters by their names in the API, where they differ. */
const PAGE_NAMES: Readonly<Record<ViewName, Readonly<Record<string, string>>>> = {
  quote: { fromChain: "from", toChain: "to" },
  compare: { fromChain: "from" },
  transfer: { transferHash: "of", transactionHash: "of", transferId: "id" },
  account: { account: "of", fromChain: "from", toChain: "to" },
  chains: {},
  routes: {},
};
/** The parameters that are amounts: in whole tokens on the page, in the smallest unit in the API. */
const AMOUNTS: readonly string[] = ["amount", "receiveAmount"];
const CHAINS: readonly string[] = ["from", "to"];

/** Returns whether a link has parameters as the API names them, such as one made from the query of a request. */
export function isApiLink({ view, parameters }: ViewLocation): boolean {
  return [...parameters.keys()].some((name) => Object.hasOwn(PAGE_NAMES[view], name));
}

/**
 * Translates a link with the API's names, chain IDs and amounts in the smallest unit to the page's.
 * @param routes of the link's network; chain IDs of others stay as they are
 * @param getDecimals where it returns undefined, the page has amounts in the smallest unit too
 */
export function translateApiLink(
  { view, parameters }: ViewLocation,
  routes: readonly Route[],
  getDecimals: (token: string) => number | undefined,
): ViewLocation {
  const translated = new Map<string, string>();
  for (const [apiName, value] of parameters) {
    const name = PAGE_NAMES[view][apiName] ?? apiName;
    if (name !== apiName && parameters.has(name)) continue;
    translated.set(name, CHAINS.includes(name) ? toSlug(value, routes) : value);
  }
  const decimals = getDecimals(findSymbol(parameters, routes));
  for (const name of view === "quote" ? AMOUNTS : []) {
    const amount = translated.get(name) ?? "";
    if (/^[0-9]+$/.test(amount) && decimals !== undefined) translated.set(name, formatAmount(BigInt(amount), decimals));
  }
  return { view, parameters: translated };
}

/** Returns the slug of a chain ID. Anything else is a slug, in any case. */
function toSlug(chain: string, routes: readonly Route[]): string {
  const source = routes.find(({ sourceChainId }) => String(sourceChainId) === chain)?.sourceChainSlug;
  const destination = routes.find(({ destinationChainId }) => String(destinationChainId) === chain);
  return source ?? destination?.destinationChainSlug ?? chain.toLowerCase();
}

function findSymbol(parameters: ViewParameters, routes: readonly Route[]): string {
  const token = parameters.get("token") ?? "";
  return listTokens(routes).find((symbol) => symbol.toLowerCase() === token.toLowerCase()) ?? token;
}
