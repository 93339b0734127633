import type { QuoteResult } from "../shared/api/api-types.js";
import { formatAmount, parseAmount } from "../shared/format/amounts.js";

/** What is sent on every route, in dollars. */
export const SAMPLE_DOLLARS = 1000;

/** What a route brings of the sample: dollars, or the message of the error. */
export type RouteValue = { readonly dollars: number } | { readonly error: string };

/** Returns how much of a token is worth the sample, in its smallest unit; at least 1. @param tokenUsd above 0 */
export function toSampleAmount(tokenUsd: number, decimals: number): bigint {
  const amount = parseAmount((SAMPLE_DOLLARS / tokenUsd).toFixed(Math.min(decimals, 6)), decimals);
  return amount === 0n ? 1n : amount;
}

export function toRouteValue({ quote, error }: QuoteResult, tokenUsd: number, decimals: number): RouteValue {
  if (quote === undefined) return { error: error?.message ?? "No quote." };
  return { dollars: Number(formatAmount(BigInt(quote.estimatedReceived), decimals)) * tokenUsd };
}
