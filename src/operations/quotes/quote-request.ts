import {
  type BatchGetQuotesRequest,
  type GetQuoteRequest,
  GetQuoteRequestSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { ServiceError } from "../../errors.js";
import type { FeeSettings, FeeSettingsSource } from "../../hop/fee-settings.js";
import type { Chain, Network } from "../../hop/networks.js";
import { findAvailableRoutes, hasRouteContracts, isRouteEnabled, type Route, RouteMap } from "../../hop/routes.js";
import type { Token } from "../../hop/tokens.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import { type MaybePromise, mapMaybeAsync } from "../../resilience/maybe-async.js";
import {
  createTooManyItemsError,
  MAX_LISTED_MESSAGES,
  parseAmount,
  parseChain,
  parseIsFullView,
  parseNetwork,
  parseRpcUrls,
  parseSlippage,
  parseToken,
  requireParameter,
} from "../parameters.js";

export const MAX_QUOTES_PER_BATCH = MAX_LISTED_MESSAGES;

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
  const requestedRoutes = new RouteMap<RequestedRoute>();

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

/**
 * Returns the requests of a batch, in the order of their results. What all of them share is valid in them.
 * @throws ServiceError for what fails the whole batch
 */
export function listQuoteRequests(
  message: BatchGetQuotesRequest,
  settings: Pick<FeeSettingsSource, "peek" | "getCurrentOrBuiltIn">,
): MaybePromise<readonly GetQuoteRequest[]> {
  if (message.requests.length > 0) return listGivenRequests(message);
  const amounts = message.amount;
  if (isNotGiven(amounts)) throw new ServiceError("MISSING_PARAMETER", "amount is required", { field: "amount" });
  const network = parseNetwork(message.network);
  const token = parseToken(network, requireParameter("token", message.token));
  const source = parseChain(network, "fromChain", requireParameter("fromChain", message.fromChain));
  parseSlippage(message.slippage);
  parseIsFullView(message.view);
  if (!isNotGiven(message.toChain)) return pairUp(message, message.toChain);
  const current = settings.peek(network.slug) ?? settings.getCurrentOrBuiltIn(network.slug);
  return mapMaybeAsync(current, (feeSettings) => {
    const routes = findAvailableRoutes(network, feeSettings);
    const reachable = routes.filter((route) => route.token === token.symbol && route.source === source);
    return pairUp(
      message,
      reachable.map(({ destination }) => destination.slug),
    );
  });
}

/** Returns whether a list is empty, or holds nothing but empty texts, as `amount=` does. */
function isNotGiven(values: readonly string[]): boolean {
  return values.every((value) => value === "");
}

function listGivenRequests(message: BatchGetQuotesRequest): readonly GetQuoteRequest[] {
  const { requests, amount, toChain, slippage } = message;
  if (requests.length > MAX_LISTED_MESSAGES) throw createTooManyItemsError("requests", MAX_LISTED_MESSAGES);
  const texts = [message.token, message.fromChain, message.network, message.view, ...amount, ...toChain];
  if (texts.some((text) => text !== "") || slippage !== undefined)
    throw createRequestsError("requests excludes all other parameters");
  for (const [index, { rpcUrl }] of requests.entries())
    if (Object.keys(rpcUrl).length > 0)
      throw createRequestsError(`requests[${index}].rpcUrl is not supported in a batch: it reads the chains for all`);
  return requests;
}

function createRequestsError(message: string): ServiceError {
  return new ServiceError("INVALID_PARAMETER", message, { field: "requests" });
}

/** Returns a request for every pair of a destination and an amount; all amounts of the first destination come first. */
function pairUp(message: BatchGetQuotesRequest, toChains: readonly string[]): readonly GetQuoteRequest[] {
  const { amount: amounts, token, fromChain, slippage, network, view } = message;
  const count = toChains.length * amounts.length;
  if (count > MAX_QUOTES_PER_BATCH) {
    const pairs = `${toChains.length} destinations with ${amounts.length} amounts`;
    const problem = `${pairs} are ${count} quotes: at most ${MAX_QUOTES_PER_BATCH} can be requested at once`;
    throw new ServiceError("INVALID_PARAMETER", problem, { field: "amount" });
  }
  return toChains.flatMap((toChain) =>
    amounts.map((amount) => ({
      $typeName: GetQuoteRequestSchema.typeName,
      amount,
      token,
      fromChain,
      toChain,
      network,
      view,
      ...(slippage !== undefined && { slippage }),
      rpcUrl: {},
      receiveAmount: "",
    })),
  );
}
