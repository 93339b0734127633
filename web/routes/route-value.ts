import type { QuoteResult } from "../shared/api/api-types.js";
import { formatAmount } from "../shared/format/amounts.js";

/** What is sent on every route, in dollars. */
export const SAMPLE_DOLLARS = 1000;

/** What a route brings of the sample: dollars, or the message of the error. */
export type RouteValue = { readonly dollars: number } | { readonly error: string };

export function toRouteValue({ quote, error }: QuoteResult, tokenUsd: number, decimals: number): RouteValue {
  if (quote === undefined) return { error: error?.message ?? "No quote." };
  return { dollars: Number(formatAmount(BigInt(quote.estimatedReceived), decimals)) * tokenUsd };
}
