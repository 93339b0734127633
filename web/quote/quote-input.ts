import { formatChainName } from "../shared/chain-names.js";
import type { ViewParameters } from "../shared/location-hash.js";
import { type Route, selectNearestRoute } from "../shared/route-selection.js";

/** What a quote is wanted for; amount and slippage as they were typed. */
export interface QuoteInput {
  readonly network: string;
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly amount: string;
  readonly slippage: string;
}

/** A wish as the values of an address. An amount or slippage that was emptied stays so: a blank stands for it. */
export function toViewParameters({ network, token, from, to, amount, slippage }: QuoteInput): ViewParameters {
  const values = {
    network: network === "mainnet" ? "" : network,
    token,
    from,
    to,
    amount: amount || " ",
    slippage: slippage || " ",
  };
  return new Map(Object.entries(values).filter(([, value]) => value !== ""));
}

/**
 * The wish that an address tells: what it leaves open is as it was last, and the chains are those of a route that there is.
 * @throws Error where the network has no route at all
 */
export function resolveQuoteInput(given: ViewParameters, last: ViewParameters, routes: readonly Route[]): QuoteInput {
  const network = given.get("network") ?? "mainnet";
  const value = (name: string): string => (given.get(name) ?? last.get(name) ?? "").trim();
  const route = selectNearestRoute(routes, { token: value("token"), from: value("from"), to: value("to") });
  if (route === undefined) throw new Error(`Nothing can be sent on ${network}.`);
  return { network, ...route, amount: value("amount"), slippage: value("slippage") };
}

/** Says that an address asks for a route that there is not; undefined: it does not. */
export function describeRouteChange(given: ViewParameters, { token, from, to }: QuoteInput): string | undefined {
  const asked = { token: given.get("token") ?? token, from: given.get("from") ?? from, to: given.get("to") ?? to };
  const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
  if (isSame(asked.token, token) && isSame(asked.from, from) && isSame(asked.to, to)) return undefined;
  const unknown = `No route of ${asked.token} from ${formatChainName(asked.from)} to ${formatChainName(asked.to)} is listed.`;
  return `${unknown} This is ${token} from ${formatChainName(from)} to ${formatChainName(to)}.`;
}

/** @param amount in the token's smallest unit */
export function toQueryParameters(wish: QuoteInput, amount: string): Readonly<Record<string, string>> {
  const { network, token, from, to, slippage } = wish;
  return {
    amount,
    token,
    fromChain: from,
    toChain: to,
    slippage,
    network: network === "mainnet" ? "" : network,
  };
}

/** The same as a gRPC message in JSON. */
export function toGrpcMessage(parameters: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const filled = Object.entries(parameters).filter(([, value]) => value !== "");
  // A number as people write one; the service says what is wrong with anything else.
  const isNumber = (name: string, value: string): boolean => name === "slippage" && /^[0-9]+(\.[0-9]+)?$/.test(value);
  return Object.fromEntries(filled.map(([name, value]) => [name, isNumber(name, value) ? Number(value) : value]));
}
