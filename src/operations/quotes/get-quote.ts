import {
  DeliveryTimeSchema,
  DestinationGasSchema,
  type GetQuoteRequest,
  type GetQuoteResponse,
  GetQuoteResponseSchema,
  QuoteLimits_LiquidityBasis as LiquidityBasisEnum,
  type QuoteDetails as QuoteDetailsMessage,
  QuoteDetailsSchema,
  QuoteLimitsSchema,
  type QuotePrices as QuotePricesMessage,
  QuotePricesSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainClients, NetworkChainClients } from "../../chain/chains.js";
import type { FeeSettings, FeeSettingsSource } from "../../hop/fee-settings.js";
import type { Quote } from "../../quotes/math/quote.js";
import type { QuoteDetails } from "../../quotes/quote-details.js";
import type { DetailedQuote, QuoteEngine, QuoteFreshness, TimestampedQuote } from "../../quotes/quote-engine.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import { isPromise, type MaybePromise } from "../../resilience/maybe-async.js";
import type { CachePolicy, CallContext, Operation } from "../operation.js";
import { assertRouteEnabled, assertRouteExists, createQuoteRequestParser } from "./quote-request.js";

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
    context.addWarning(formatBurnLimitWarning([describeExceededBurnLimit(request, quote, quote.exceededBurnLimit)]));
  }
  return toQuoteResponse(request, quote);
}

/** Returns a quote as its message. */
export function toQuoteResponse(request: QuoteRequest, quote: DetailedQuote): GetQuoteResponse {
  const response = toBasicResponse(request, quote);
  if (quote.details !== undefined) response.details = toDetailsMessage(quote.details);
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

/** Returns the details of a quote as their message: what `create` would return, which takes longer than the quote. */
function toDetailsMessage(details: QuoteDetails): QuoteDetailsMessage {
  const { breakdown, minAmount, liquidity, gas, deliveryTime } = details;
  return {
    $typeName: QuoteDetailsSchema.typeName,
    amountOut: breakdown.amountOut.toString(),
    requiredLiquidity: breakdown.requiredLiquidity.toString(),
    bonderFeeRelative: breakdown.bonderFeeRelative.toString(),
    adjustedBonderFee: breakdown.adjustedBonderFee.toString(),
    destinationTxFee: breakdown.destinationTxFee.toString(),
    adjustedDestinationTxFee: breakdown.adjustedDestinationTxFee.toString(),
    totalFee: breakdown.totalFee.toString(),
    feeBps: breakdown.feeBps,
    rate: breakdown.rate,
    priceImpact: breakdown.priceImpact,
    lpFeeBps: breakdown.lpFeeBps,
    lpFees: breakdown.lpFees.toString(),
    limits: {
      $typeName: QuoteLimitsSchema.typeName,
      minAmount: minAmount?.toString() ?? "",
      availableLiquidity: liquidity.available?.toString() ?? "",
      isLiquidityAvailable: details.isLiquidityAvailable,
      liquidityBasis: LiquidityBasisEnum[liquidity.basis],
    },
    deliveryTime: deliveryTime && { $typeName: DeliveryTimeSchema.typeName, ...deliveryTime },
    gas: {
      $typeName: DestinationGasSchema.typeName,
      gasLimit: gas.gasLimit.toString(),
      gasPrice: gas.gasPrice.toString(),
      l1Fee: gas.l1Fee.toString(),
    },
    prices: toPricesMessage(details.prices),
    sourceBlock: details.sourceBlock,
    destinationBlock: details.destinationBlock,
    observedAt: BigInt(details.observedAt),
    validUntil: BigInt(details.validUntil),
  };
}

function toPricesMessage({
  tokenUsd,
  nativeUsd,
  tokenOrigin,
  nativeOrigin,
}: QuoteDetails["prices"]): QuotePricesMessage {
  return {
    $typeName: QuotePricesSchema.typeName,
    tokenUsd,
    nativeUsd,
    tokenSource: tokenOrigin?.source ?? "",
    tokenUpdatedAt: BigInt(tokenOrigin?.updatedAtSeconds ?? 0),
    nativeSource: nativeOrigin?.source ?? "",
    nativeUpdatedAt: BigInt(nativeOrigin?.updatedAtSeconds ?? 0),
  };
}

/** Longest list of transfers in a warning: callers limit the headers of a response. */
const MAX_NAMED_TRANSFERS = 20;

/** Names a transfer whose amount is above the burn limit. */
export function describeExceededBurnLimit(
  { token, source, destination }: QuoteRequest,
  quote: Quote,
  limit: bigint,
): string {
  return `${token.symbol} ${source.slug}>${destination.slug} ${quote.amountIn} (limit ${limit})`;
}

/**
 * Returns the warning for transfers that Circle's contracts refuse.
 * @param transfers as `describeExceededBurnLimit` names them
 */
export function formatBurnLimitWarning(transfers: readonly string[]): string {
  const named = transfers.slice(0, MAX_NAMED_TRANSFERS);
  const more = transfers.length > named.length ? [`and ${transfers.length - named.length} more`] : [];
  return `Circle's CCTP V1 burns no such amount in one transfer: ${[...named, ...more].join(", ")}`;
}

/** Lets caches use a quote as long as this service would, plus one refresh interval while they fetch a newer one. */
export function toQuoteCachePolicy({ ageMs, maxAgeMs, refreshMs }: QuoteFreshness): CachePolicy {
  return {
    ageSeconds: Math.floor(ageMs / 1000),
    maxAgeSeconds: Math.floor(maxAgeMs / 1000),
    staleWhileRevalidateSeconds: Math.ceil(refreshMs / 1000),
  };
}
