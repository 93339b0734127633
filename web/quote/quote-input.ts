import { getNetwork, toNetworkParameter } from "../shared/api/network.js";
import { type Route, selectNearestRoute } from "../shared/api/route-selection.js";
import { formatChainName } from "../shared/format/chain-names.js";
import type { ViewParameters } from "../shared/navigation/location-hash.js";
import { DEFAULT_ROUTE, DEFAULT_SLIPPAGE_PERCENT, getTypicalAmount } from "./default-quote.js";

/** Whether an amount is what the sender sends, or what the recipient gets. */
export type AmountKind = "send" | "receive";

/** The contents of the quote form. Amount and slippage are as typed. */
export interface QuoteInput {
  readonly network: string;
  readonly token: string;
  readonly from: string;
  readonly to: string;
  readonly amountKind: AmountKind;
  readonly amount: string;
  readonly slippage: string;
}

/** Parameters of the API and of the URL. */
const AMOUNT_PARAMETERS: Readonly<Record<AmountKind, string>> = { send: "amount", receive: "receiveAmount" };

/** Converts form input to URL parameters. A blank stands for an emptied amount or slippage, so that it stays empty. */
export function toViewParameters({
  network,
  token,
  from,
  to,
  amountKind,
  amount,
  slippage,
}: QuoteInput): ViewParameters {
  const parameters = {
    network: toNetworkParameter(network),
    token,
    from,
    to,
    [AMOUNT_PARAMETERS[amountKind]]: amount || " ",
    slippage: slippage || " ",
  };
  return new Map(Object.entries(parameters).filter(([, value]) => value !== ""));
}

/**
 * Completes URL parameters to a full input. Absent ones come from the previous input or else from the defaults; an amount
 * is kept only for the same token. The result is always an existing route.
 * @param previous parameters of the input shown before; empty on the first visit
 * @throws Error if the network has no routes
 */
export function resolveQuoteInput(
  parameters: ViewParameters,
  previous: ViewParameters,
  routes: readonly Route[],
): QuoteInput {
  const network = getNetwork(parameters);
  const resolve = (name: string, fallback: string): string =>
    (parameters.get(name) ?? previous.get(name) ?? fallback).trim();
  const route = selectNearestRoute(routes, {
    token: resolve("token", DEFAULT_ROUTE.token),
    from: resolve("from", DEFAULT_ROUTE.from),
    to: resolve("to", DEFAULT_ROUTE.to),
  });
  if (route === undefined) throw new Error(`The network ${network} has no routes.`);
  const keptParameters = previous.get("token") === route.token ? previous : new Map<string, string>();
  const { amountKind, amount } = readAmount(parameters) ??
    readAmount(keptParameters) ?? { amountKind: "send", amount: getTypicalAmount(route.token) };
  return { network, ...route, amountKind, amount, slippage: resolve("slippage", DEFAULT_SLIPPAGE_PERCENT) };
}

function readAmount(parameters: ViewParameters): Pick<QuoteInput, "amountKind" | "amount"> | undefined {
  for (const amountKind of ["send", "receive"] as const) {
    const amount = parameters.get(AMOUNT_PARAMETERS[amountKind]);
    if (amount !== undefined) return { amountKind, amount: amount.trim() };
  }
  return undefined;
}

/** Explains that the URL names a route that does not exist. Returns undefined if the route exists. */
export function describeRouteChange(parameters: ViewParameters, { token, from, to }: QuoteInput): string | undefined {
  const requested = {
    token: parameters.get("token") ?? token,
    from: parameters.get("from") ?? from,
    to: parameters.get("to") ?? to,
  };
  const isSame = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
  if (isSame(requested.token, token) && isSame(requested.from, from) && isSame(requested.to, to)) return undefined;
  const missing = `There is no route for ${requested.token} from ${formatChainName(requested.from)} to ${formatChainName(requested.to)}.`;
  return `${missing} The quote is for ${token} from ${formatChainName(from)} to ${formatChainName(to)}.`;
}

/** @param amount in the token's smallest unit */
export function toQueryParameters(input: QuoteInput, amount: string): Readonly<Record<string, string>> {
  const { network, token, from, to, amountKind, slippage } = input;
  return {
    [AMOUNT_PARAMETERS[amountKind]]: amount,
    token,
    fromChain: from,
    toChain: to,
    slippage,
    network: toNetworkParameter(network),
  };
}
