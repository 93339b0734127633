import { create } from "@bufbuild/protobuf";
import {
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainAccess, Chains } from "../chain/chains.js";
import { ServiceError } from "../errors.js";
import type { FeeSettings } from "../hop/fee-settings.js";
import type { FeeSettingsSource } from "../hop/fee-settings-source.js";
import type { Network } from "../hop/networks.js";
import type { Quote } from "../quotes/math/quote.js";
import type { DatedQuote, Freshness, QuoteEngine, QuoteRequest } from "../quotes/quote-engine.js";
import { exists, isOpen } from "../routes/available-routes.js";
import type { CachePolicy, CallContext, Operation } from "./operation.js";
import {
  parseAmount,
  parseChain,
  parseNetwork,
  parseRpcUrls,
  parseSlippage,
  parseToken,
  required,
} from "./parameters.js";

export function createGetQuote(deps: {
  readonly chains: Pick<Chains, "use">;
  readonly settings: FeeSettingsSource;
  readonly engine: QuoteEngine;
}): Operation<GetQuoteRequest, GetQuoteResponse> {
  const { chains, settings, engine } = deps;

  function quoted(request: QuoteRequest, context: CallContext): GetQuoteResponse | Promise<GetQuoteResponse> {
    const answer = engine.quote(request, context);
    const respond = ({ quote, freshness }: DatedQuote): GetQuoteResponse => {
      context.cache(policyOf(freshness));
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
    const quotePrivately = (access: ChainAccess): Promise<Quote> => engine.quotePrivately(request, access, context);
    const quote = await chains.use(network, custom, quotePrivately, context);
    context.cache("private");
    return toResponse(request, quote);
  }

  return (request, context) => {
    const amountIn = parseAmount(required("amount", request.amount));
    const network = parseNetwork(request.network);
    const token = parseToken(network, required("token", request.token));
    const source = parseChain(network, "fromChain", required("fromChain", request.fromChain));
    const destination = parseChain(network, "toChain", required("toChain", request.toChain));
    const slippage = parseSlippage(request.slippage);
    const custom = parseRpcUrls(network, request.rpcUrl);
    context.note({ network: network.slug, token: token.name, route: `${source.slug}>${destination.slug}` });

    const quoteRequest = { network: network.slug, token, source, destination, amountIn, slippage };
    const route = { token: token.symbol, source, destination };
    // What is refused whatever the settings say is refused without them.
    if (!exists(network, route)) throw unsupported(network, quoteRequest);
    const answer = (current: FeeSettings): GetQuoteResponse | Promise<GetQuoteResponse> => {
      if (!isOpen(route, current)) throw unsupported(network, quoteRequest);
      return custom.size === 0 ? quoted(quoteRequest, context) : quotedPrivately(quoteRequest, custom, context);
    };
    const atHand = settings.peek(network.slug);
    return atHand === undefined ? settings.current(network.slug).then(answer) : answer(atHand);
  };
}

function unsupported(network: Network, { token, source, destination }: QuoteRequest): ServiceError {
  const why = source === destination ? ": that is one chain" : "";
  const message = `${token.symbol} cannot be sent from ${source.slug} to ${destination.slug} on ${network.slug}${why}`;
  return new ServiceError("UNSUPPORTED_ROUTE", message);
}

function toResponse({ amountIn, slippage }: QuoteRequest, quote: Quote): GetQuoteResponse {
  const estimatedReceived = quote.estimatedReceived.toString();
  return create(GetQuoteResponseSchema, {
    amountIn: amountIn.toString(),
    slippage,
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
function policyOf({ ageMs, maxAgeMs, refreshMs }: Freshness): CachePolicy {
  return {
    ageSeconds: Math.floor(ageMs / 1000),
    maxAgeSeconds: Math.floor(maxAgeMs / 1000),
    staleWhileRevalidateSeconds: Math.ceil(refreshMs / 1000),
  };
}
