import { type GetQuoteResponse, GetQuoteResponseSchema } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import type { Quote } from "../../quotes/math/quote.js";
import type { DetailedQuote, QuoteFreshness } from "../../quotes/quote-engine.js";
import type { QuoteRequest } from "../../quotes/state/quote-request.js";
import type { CachePolicy } from "../operation.js";
import { toQuoteDetailsMessage } from "./quote-details-message.js";

/** Returns a quote as its message. */
export function toQuoteResponse(request: QuoteRequest, quote: DetailedQuote): GetQuoteResponse {
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
export function toQuoteCachePolicy({ ageMs, maxAgeMs, refreshMs }: QuoteFreshness): CachePolicy {
  return {
    ageSeconds: Math.floor(ageMs / 1000),
    maxAgeSeconds: Math.floor(maxAgeMs / 1000),
    staleWhileRevalidateSeconds: Math.ceil(refreshMs / 1000),
  };
}
