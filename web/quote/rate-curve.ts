import type { QuoteResponse, QuoteResult } from "../shared/api/api-types.js";
import type { QuotePoint } from "./price-impact.js";

const POINTS_PER_DECADE = 8;
const FACTOR_SCALE = 1_000_000;
/** The largest amount that the API accepts. */
const MAX_UINT256 = 2n ** 256n - 1n;

/**
 * Returns amounts around one, evenly spaced on a logarithmic scale from a hundredth of it to a hundred times it, in
 * ascending order and without duplicates. There are fewer near the smallest unit and near the largest amount.
 * @param amount in the token's smallest unit, at least 1
 */
export function sampleAmounts(amount: bigint): readonly bigint[] {
  const amounts = new Set<bigint>();
  for (let step = -2 * POINTS_PER_DECADE; step <= 2 * POINTS_PER_DECADE; step++) {
    const factor = BigInt(Math.round(10 ** (step / POINTS_PER_DECADE) * FACTOR_SCALE));
    const sample = step === 0 ? amount : truncateToThreeDigits((amount * factor) / BigInt(FACTOR_SCALE));
    if (sample >= 1n && sample <= MAX_UINT256) amounts.add(sample);
  }
  return [...amounts];
}

/** Keeps the first three digits, so that the table is easy to read. */
function truncateToThreeDigits(amount: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, amount.toString().length - 3));
  return (amount / unit) * unit;
}

/** An amount with its quote, or with the message of the error. */
export type CurvePoint =
  | { readonly sent: bigint; readonly quote: QuotePoint }
  | { readonly sent: bigint; readonly error: string };

/** Returns the points of the amounts, in their order. @param results of the same amounts, in the same order */
export function toCurvePoints(amounts: readonly bigint[], results: readonly QuoteResult[]): readonly CurvePoint[] {
  return amounts.map((sent, index) => {
    const { quote, error } = results[index] ?? {};
    return quote === undefined ? { sent, error: error?.message ?? "No quote." } : { sent, quote: toQuotePoint(quote) };
  });
}

export function toQuotePoint({ amountIn, estimatedReceived, bonderFee }: QuoteResponse): QuotePoint {
  return { sent: BigInt(amountIn), received: BigInt(estimatedReceived), fee: BigInt(bonderFee) };
}

/** Returns the quotes of the points that have one. */
export function selectQuotedPoints(points: readonly CurvePoint[]): readonly QuotePoint[] {
  return points.flatMap((point) => ("quote" in point ? [point.quote] : []));
}
