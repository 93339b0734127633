import type { DetailedQuoteResponse, QuoteResult } from "../shared/api/api-types.js";
import { formatAmount } from "../shared/format/amounts.js";

/** What a sum brings on one destination. */
export type ComparedRoute =
  | {
      readonly toChain: string;
      /** In the token's smallest unit. */
      readonly received: bigint;
      readonly receivedUsd: number;
      /** Seconds until half of the transfers have arrived; undefined if it is not known. */
      readonly arrivalSeconds: number | undefined;
      readonly canBeDelivered: boolean;
    }
  | { readonly toChain: string; readonly error: string };

/** Returns the destinations of a batch of quotes: those that can be delivered first, the one that brings most before others. */
export function compareRoutes(
  results: readonly QuoteResult<DetailedQuoteResponse>[],
  tokenUsd: number,
  decimals: number,
): readonly ComparedRoute[] {
  return results.map((result) => toComparedRoute(result, tokenUsd, decimals)).toSorted(compareByOutcome);
}

function toComparedRoute(
  { toChain, quote, error }: QuoteResult<DetailedQuoteResponse>,
  tokenUsd: number,
  decimals: number,
): ComparedRoute {
  if (quote === undefined) return { toChain, error: error?.message ?? "No quote." };
  const received = BigInt(quote.estimatedReceived);
  return {
    toChain,
    received,
    receivedUsd: Number(formatAmount(received, decimals)) * tokenUsd,
    arrivalSeconds: quote.details.deliveryTime?.p50Seconds,
    canBeDelivered: quote.details.limits.isLiquidityAvailable,
  };
}

function compareByOutcome(a: ComparedRoute, b: ComparedRoute): number {
  const rank = (route: ComparedRoute): number => ("error" in route ? 2 : route.canBeDelivered ? 0 : 1);
  if (rank(a) !== rank(b) || "error" in a || "error" in b) return rank(a) - rank(b);
  return a.received < b.received ? 1 : a.received > b.received ? -1 : 0;
}

/** Returns a sum of dollars as typed, or undefined if it is none. */
export function parseDollars(text: string): number | undefined {
  const dollars = /^[0-9]*\.?[0-9]+$/.test(text) ? Number(text) : Number.NaN;
  return dollars > 0 && dollars <= MAX_DOLLARS ? dollars : undefined;
}

/** More than any route carries. Longer sums would not fit on a phone. */
const MAX_DOLLARS = 1e9;
