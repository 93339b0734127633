import {
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients, NetworkChainClients } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Chain, Network } from "../hop/networks.js";
import { createRouteMap } from "../hop/route-map.js";
import type { Token } from "../hop/tokens.js";
import type { Quote } from "../quotes/math/quote.js";
import type { DetailedQuote, QuoteEngine, QuoteFreshness, TimestampedQuote } from "../quotes/quote-engine.js";
import type { QuoteRequest } from "../quotes/state/quote-request.js";
import { isPromise, type MaybePromise } from "../resilience/maybe-async.js";
import { hasRouteContracts, isRouteEnabled, type Route } from "../routes/available-routes.js";
import type { CachePolicy, CallContext, Operation } from "./operation.js";
import {
  parseAmount,
  parseChain,
  parseIsFullView,
  parseNetwork,
  parseRpcUrls,
  parseSlippage,
  parseToken,
  requireParameter,
} from "./parameters.js";
import { toQuoteDetailsMessage } from "./quote-details-message.js";

export function createGetQuote(deps: {
  readonly chains: Pick<ChainClients, "withCustomEndpoints">;
  readonly settings: FeeSettingsSource;
  readonly engine: QuoteEngine;
}): Operation<GetQuoteRequest, GetQuoteResponse> {
  const { chains, settings, engine } = deps;

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

  function quoteShared(request: QuoteRequest, context: CallContext): MaybePromise<GetQuoteResponse> {
    const result = engine.quote(request, context);
    return isPromise(result)
      ? result.then((quote) => respond(request, quote, context))
      : respond(request, result, context);
  }

  async function quoteWithCustom(
    request: QuoteRequest,
    customUrls: ReadonlyMap<string, string>,
    context: CallContext,
  ): Promise<GetQuoteResponse> {
    const quoteOn = (access: NetworkChainClients): Promise<DetailedQuote> =>
      engine.quoteWithCustomEndpoints(request, access, context);
    const quote = await chains.withCustomEndpoints(request.network, customUrls, quoteOn, context);
    context.setCachePolicy("private");
    return toResponse(request, quote);
  }

  return (request, context) => {
    const receiveAmount = parseReceiveAmount(request);
    const amountIn = receiveAmount === undefined ? parseAmount(requireParameter("amount", request.amount)) : 0n;
    const network = parseNetwork(request.network);
    const token = parseToken(network, requireParameter("token", request.token));
    const source = parseChain(network, "fromChain", requireParameter("fromChain", request.fromChain));
    const destination = parseChain(network, "toChain", requireParameter("toChain", request.toChain));
    const slippagePercent = parseSlippage(request.slippage);
    const customUrls = parseRpcUrls(network, request.rpcUrl);
    const isFull = parseIsFullView(request.view);
    const { route, hasContracts, logFields } =
      requestedRoutes.get(token, source, destination) ?? addRequestedRoute(network, token, source, destination);
    context.addLogFields(logFields);

    const slug = network.slug;
    const quoteRequest = {
      network: slug,
      token,
      source,
      destination,
      amountIn,
      slippagePercent,
      receiveAmount,
      isFull,
    };
    // Checked first, because it does not depend on the settings.
    if (!hasContracts) throw createUnsupportedRouteError(network, quoteRequest);
    function quoteUnder(currentSettings: FeeSettings): MaybePromise<GetQuoteResponse> {
      if (!isRouteEnabled(route, currentSettings)) throw createUnsupportedRouteError(network, quoteRequest);
      return customUrls.size === 0
        ? quoteShared(quoteRequest, context)
        : quoteWithCustom(quoteRequest, customUrls, context);
    }
    const cachedSettings = settings.peek(network.slug);
    return cachedSettings === undefined
      ? settings.getCurrent(network.slug).then(quoteUnder)
      : quoteUnder(cachedSettings);
  };
}

/** What all requests for one route share. */
interface RequestedRoute {
  readonly route: Route;
  /** Whether it exists, whatever the settings are. */
  readonly hasContracts: boolean;
  readonly logFields: Readonly<Record<string, string>>;
}

function createUnsupportedRouteError(network: Network, { token, source, destination }: QuoteRequest): ServiceError {
  const hint = source === destination ? ": source and destination are the same chain" : "";
  const message = `${token.symbol} cannot be sent from ${source.slug} to ${destination.slug} on ${network.slug}${hint}`;
  return new ServiceError("UNSUPPORTED_ROUTE", message);
}

function respond(
  request: QuoteRequest,
  { quote, freshness }: TimestampedQuote,
  context: CallContext,
): GetQuoteResponse {
  context.setCachePolicy(toCachePolicy(freshness));
  return toResponse(request, quote);
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

function toResponse(request: QuoteRequest, quote: DetailedQuote): GetQuoteResponse {
  const response = toBasicResponse(request, quote);
  if (quote.details !== undefined) response.details = toQuoteDetailsMessage(quote.details);
  return response;
}

/** Returns what `create` would return for these fields, which takes longer than the rest of the response. */
function toBasicResponse({ slippagePercent }: QuoteRequest, quote: Quote): GetQuoteResponse {
  const estimatedReceived = quote.estimatedReceived.toString();
  return {
    $typeName: GetQuoteResponseSchema.typeName,
    amountIn: quote.amountIn.toString(),
    slippage: slippagePercent,
    amountOutMin: quote.amountOutMin.toString(),
    destinationAmountOutMin: quote.destinationAmountOutMin.toString(),
    bonderFee: quote.bonderFee.toString(),
    estimatedReceived,
    estimatedRecieved: estimatedReceived,
    deadline: BigInt(quote.deadline),
    destinationDeadline: BigInt(quote.destinationDeadline),
  };
}

/** Lets caches use a quote as long as this service would, plus one refresh interval while they fetch a newer one. */
function toCachePolicy({ ageMs, maxAgeMs, refreshMs }: QuoteFreshness): CachePolicy {
  return {
    ageSeconds: Math.floor(ageMs / 1000),
    maxAgeSeconds: Math.floor(maxAgeMs / 1000),
    staleWhileRevalidateSeconds: Math.ceil(refreshMs / 1000),
  };
}
