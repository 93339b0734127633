import type { GetQuoteRequest } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../errors.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import type { Chain, Network } from "../../hop/networks.js";
import { createRouteMap } from "../../hop/route-map.js";
import type { Token } from "../../hop/tokens.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import { hasRouteContracts, isRouteEnabled, type Route } from "../../routes/available-routes.js";
import {
  parseAmount,
  parseChain,
  parseIsFullView,
  parseNetwork,
  parseRpcUrls,
  parseSlippage,
  parseToken,
  requireParameter,
} from "../parameters.js";

/** A request for a quote whose parameters are valid; its route may not exist. */
export interface ParsedQuoteRequest extends RequestedRoute {
  readonly request: QuoteRequest;
  /** RPC endpoints that the caller named, by chain slug. */
  readonly customUrls: ReadonlyMap<string, string>;
}

/** What all requests for one route share. */
interface RequestedRoute {
  readonly route: Route;
  /** Whether it exists, whatever the settings are. */
  readonly hasContracts: boolean;
  readonly logFields: Readonly<Record<string, string>>;
}

/** Creates a parser of requests. It throws a ServiceError that names the invalid parameter. */
export function createQuoteRequestParser(): (message: GetQuoteRequest) => ParsedQuoteRequest {
  const requestedRoutes = createRouteMap<RequestedRoute>();

  function addRequestedRoute(network: Network, token: Token, source: Chain, destination: Chain): RequestedRoute {
    const route = { token: token.symbol, source, destination };
    const logFields = {
      network: network.slug,
      token: token.requestedSymbol,
      route: `${source.slug}>${destination.slug}`,
    };
    const added = { route, hasContracts: hasRouteContracts(network, route), logFields: Object.freeze(logFields) };
    requestedRoutes.set(token, source, destination, added);
    return added;
  }

  return (message) => {
    const receiveAmount = parseReceiveAmount(message);
    const amountIn = receiveAmount === undefined ? parseAmount(requireParameter("amount", message.amount)) : 0n;
    const network = parseNetwork(message.network);
    const token = parseToken(network, requireParameter("token", message.token));
    const source = parseChain(network, "fromChain", requireParameter("fromChain", message.fromChain));
    const destination = parseChain(network, "toChain", requireParameter("toChain", message.toChain));
    const slippagePercent = parseSlippage(message.slippage);
    const customUrls = parseRpcUrls(network, message.rpcUrl);
    const isFull = parseIsFullView(message.view);
    const { route, hasContracts, logFields } =
      requestedRoutes.get(token, source, destination) ?? addRequestedRoute(network, token, source, destination);
    const request = {
      network: network.slug,
      token,
      source,
      destination,
      amountIn,
      slippagePercent,
      receiveAmount,
      isFull,
    };
    return { request, customUrls, route, hasContracts, logFields };
  };
}

/** Checks what does not depend on the settings. @throws ServiceError UNSUPPORTED_ROUTE */
export function assertRouteExists({ request, hasContracts }: ParsedQuoteRequest): void {
  if (!hasContracts) throw createUnsupportedRouteError(request);
}

/** @throws ServiceError UNSUPPORTED_ROUTE */
export function assertRouteEnabled({ request, route }: ParsedQuoteRequest, settings: FeeSettings): void {
  if (!isRouteEnabled(route, settings)) throw createUnsupportedRouteError(request);
}

function createUnsupportedRouteError({ network, token, source, destination }: QuoteRequest): ServiceError {
  const hint = source === destination ? ": source and destination are the same chain" : "";
  const message = `${token.symbol} cannot be sent from ${source.slug} to ${destination.slug} on ${network}${hint}`;
  return new ServiceError("UNSUPPORTED_ROUTE", message);
}

/** Returns the amount to receive; undefined when the amount to send is given. @throws ServiceError INVALID_PARAMETER. */
function parseReceiveAmount({ amount, receiveAmount }: GetQuoteRequest): bigint | undefined {
  if (receiveAmount === "") return undefined;
  const field = "receiveAmount";
  if (amount !== "") parseAmount(amount);
  const parsed = parseAmount(receiveAmount, field);
  if (amount === "") return parsed;
  throw new ServiceError("INVALID_PARAMETER", "amount and receiveAmount exclude each other", { field });
}
