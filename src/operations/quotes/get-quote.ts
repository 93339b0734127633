import type { GetQuoteRequest, GetQuoteResponse } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients, NetworkChainClients } from "../../chain/chains.js";
import type { FeeSettings, FeeSettingsSource } from "../../hop/fee-settings.js";
import type { DetailedQuote, QuoteEngine, TimestampedQuote } from "../../quotes/quote-engine.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import { isPromise, type MaybePromise } from "../../resilience/maybe-async.js";
import type { CallContext, Operation } from "../operation.js";
import { assertRouteEnabled, assertRouteExists, createQuoteRequestParser } from "./quote-request.js";
import {
  describeExceededLimit,
  describeExceededLimits,
  toQuoteCachePolicy,
  toQuoteResponse,
} from "./quote-response.js";

export function createGetQuote(deps: {
  readonly chains: Pick<ChainClients, "withCustomEndpoints">;
  readonly settings: FeeSettingsSource;
  readonly engine: Pick<QuoteEngine, "quote" | "quoteWithCustomEndpoints">;
}): Operation<GetQuoteRequest, GetQuoteResponse> {
  const { chains, settings, engine } = deps;
  const parse = createQuoteRequestParser();

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
    return toResponse(request, quote, context);
  }

  return (message, context) => {
    const parsed = parse(message);
    const { request, customUrls } = parsed;
    context.addLogFields(parsed.logFields);
    assertRouteExists(parsed);
    function quoteUnder(currentSettings: FeeSettings): MaybePromise<GetQuoteResponse> {
      assertRouteEnabled(parsed, currentSettings);
      return customUrls.size === 0 ? quoteShared(request, context) : quoteWithCustom(request, customUrls, context);
    }
    const cachedSettings = settings.peek(request.network);
    return cachedSettings === undefined
      ? settings.getCurrent(request.network).then(quoteUnder)
      : quoteUnder(cachedSettings);
  };
}

function respond(
  request: QuoteRequest,
  { quote, freshness }: TimestampedQuote,
  context: CallContext,
): GetQuoteResponse {
  context.setCachePolicy(toQuoteCachePolicy(freshness));
  return toResponse(request, quote, context);
}

function toResponse(request: QuoteRequest, quote: DetailedQuote, context: CallContext): GetQuoteResponse {
  if (quote.exceededBurnLimit !== undefined) {
    context.addWarning(describeExceededLimits([describeExceededLimit(request, quote, quote.exceededBurnLimit)]));
  }
  return toQuoteResponse(request, quote);
}
