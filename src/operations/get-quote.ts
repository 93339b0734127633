import { create } from "@bufbuild/protobuf";
import {
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { Chains, NetworkChains } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Network } from "../hop/networks.js";
import type { Quote } from "../quotes/math/quote.js";
import type { QuoteEngine, QuoteFreshness, TimestampedQuote } from "../quotes/quote-engine.js";
import type { QuoteRequest } from "../quotes/state/quote-request.js";
import { hasRouteContracts, isRouteEnabled } from "../routes/available-routes.js";
import type { CachePolicy, CallContext, Operation } from "./operation.js";
import {
  parseAmount,
  parseChain,
  parseNetwork,
  parseRpcUrls,
  parseSlippage,
  parseToken,
  requireParameter,
} from "./parameters.js";

export function createGetQuote(deps: {
  readonly chains: Pick<Chains, "withCustomEndpoints">;
  readonly settings: FeeSettingsSource;
  readonly engine: QuoteEngine;
}): Operation<GetQuoteRequest, GetQuoteResponse> {
  const { chains, settings, engine } = deps;

  function quoted(request: QuoteRequest, context: CallContext): GetQuoteResponse | Promise<GetQuoteResponse> {
    const answer = engine.quote(request, context);
    const respond = ({ quote, freshness }: TimestampedQuote): GetQuoteResponse => {
      context.setCachePolicy(toCachePolicy(freshness));
      return toResponse(request, quote);
    };
    return answer instanceof Promise ? answer.then(respond) : respond(answer);
  }

  async function quotedPrivately(
    request: QuoteRequest,
    custom: ReadonlyMap<string, string>,
    context: CallContext,
  ): Promise<GetQuoteResponse> {
    const { network } = request;
    const quotePrivately = (access: NetworkChains): Promise<Quote> =>
      engine.quoteWithCustomEndpoints(request, access, context);
    const quote = await chains.withCustomEndpoints(network, custom, quotePrivately, context);
    context.setCachePolicy("private");
    return toResponse(request, quote);
  }

  return (request, context) => {
    const amountIn = parseAmount(requireParameter("amount", request.amount));
    const network = parseNetwork(request.network);
    const token = parseToken(network, requireParameter("token", request.token));
    const source = parseChain(network, "fromChain", requireParameter("fromChain", request.fromChain));
    const destination = parseChain(network, "toChain", requireParameter("toChain", request.toChain));
    const slippagePercent = parseSlippage(request.slippage);
    const custom = parseRpcUrls(network, request.rpcUrl);
    context.addLogFields({
      network: network.slug,
      token: token.requestedSymbol,
      route: `${source.slug}>${destination.slug}`,
    });

    const quoteRequest = { network: network.slug, token, source, destination, amountIn, slippagePercent };
    const route = { token: token.symbol, source, destination };
    // What is refused whatever the settings say is refused without them.
    if (!hasRouteContracts(network, route)) throw createUnsupportedRouteError(network, quoteRequest);
    const answer = (current: FeeSettings): GetQuoteResponse | Promise<GetQuoteResponse> => {
      if (!isRouteEnabled(route, current)) throw createUnsupportedRouteError(network, quoteRequest);
      return custom.size === 0 ? quoted(quoteRequest, context) : quotedPrivately(quoteRequest, custom, context);
    };
    const atHand = settings.peek(network.slug);
    return atHand === undefined ? settings.getCurrent(network.slug).then(answer) : answer(atHand);
  };
}

function createUnsupportedRouteError(network: Network, { token, source, destination }: QuoteRequest): ServiceError {
  const why = source === destination ? ": that is one chain" : "";
  const message = `${token.symbol} cannot be sent from ${source.slug} to ${destination.slug} on ${network.slug}${why}`;
  return new ServiceError("UNSUPPORTED_ROUTE", message);
}

function toResponse({ amountIn, slippagePercent }: QuoteRequest, quote: Quote): GetQuoteResponse {
  const estimatedReceived = quote.estimatedReceived.toString();
  return create(GetQuoteResponseSchema, {
    amountIn: amountIn.toString(),
    slippage: slippagePercent,
    amountOutMin: quote.amountOutMin.toString(),
    destinationAmountOutMin: quote.destinationAmountOutMin.toString(),
    bonderFee: quote.bonderFee.toString(),
    estimatedReceived,
    estimatedRecieved: estimatedReceived,
    deadline: BigInt(quote.deadline),
    destinationDeadline: BigInt(quote.destinationDeadline),
  });
}

/** Whoever keeps the answer may use it as long as we would, and for one more refresh while it is asked for anew. */
function toCachePolicy({ ageMs, maxAgeMs, refreshMs }: QuoteFreshness): CachePolicy {
  return {
    ageSeconds: Math.floor(ageMs / 1000),
    maxAgeSeconds: Math.floor(maxAgeMs / 1000),
    staleWhileRevalidateSeconds: Math.ceil(refreshMs / 1000),
  };
}
