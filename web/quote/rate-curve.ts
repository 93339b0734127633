import type { DetailedQuoteResponse, QuoteResult } from "../shared/api/api-types.js";
import { formatPercent, toRatio } from "../shared/format/amounts.js";

/** Quotes with their details are large: more would exceed the budget of the page. */
const POINTS_PER_DECADE = 5;
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

/** Keeps the first three digits, so that the amount is easy to read. */
export function truncateToThreeDigits(amount: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, amount.toString().length - 3));
  return (amount / unit) * unit;
}

/** What the curve shows of a quote. Amounts are in the token's smallest unit. */
export interface QuotePoint {
  readonly sent: bigint;
  readonly received: bigint;
  readonly fee: bigint;
  /** Output of the swaps, before the fee. */
  readonly swapped: bigint;
  /** Percent, by the API; undefined if it is not known. */
  readonly priceImpact: number | undefined;
  readonly canBeDelivered: boolean;
}

/** Returns the amount received per unit sent, after the fee. */
export function effectiveRate({ received, sent }: QuotePoint): number {
  return toRatio(received, sent);
}

/** Returns the output of the swaps per unit sent, before the fee. Undefined if the swaps give nothing. */
export function swapRate({ swapped, sent }: QuotePoint): number | undefined {
  return swapped === 0n ? undefined : toRatio(swapped, sent);
}

/** An amount with its quote, or with the message of the error. */
export type CurvePoint =
  | { readonly sent: bigint; readonly quote: QuotePoint }
  | { readonly sent: bigint; readonly error: string };

/** Returns the points of the amounts, in their order. @param results of the same amounts, in the same order */
export function toCurvePoints(
  amounts: readonly bigint[],
  results: readonly QuoteResult<DetailedQuoteResponse>[],
): readonly CurvePoint[] {
  return amounts.map((sent, index) => {
    const { quote, error } = results[index] ?? {};
    return quote === undefined ? { sent, error: error?.message ?? "No quote." } : { sent, quote: toQuotePoint(quote) };
  });
}

function toQuotePoint({ amountIn, estimatedReceived, bonderFee, details }: DetailedQuoteResponse): QuotePoint {
  return {
    sent: BigInt(amountIn),
    received: BigInt(estimatedReceived),
    fee: BigInt(bonderFee),
    swapped: BigInt(details.amountOut),
    priceImpact: details.priceImpact,
    canBeDelivered: details.limits.isLiquidityAvailable,
  };
}

/** Returns the quotes of the points that have one. */
export function selectQuotedPoints(points: readonly CurvePoint[]): readonly QuotePoint[] {
  return points.flatMap((point) => ("quote" in point ? [point.quote] : []));
}

/** The summary names the amount from which on the price impact is more than this percentage. */
const NOTABLE_PRICE_IMPACT_PERCENT = 1;

/** Says from which amounts on the price impact is notable, and which cannot be delivered. @param points ascending */
export function describeCurve(points: readonly QuotePoint[], formatToken: (raw: bigint) => string): string {
  const last = points.at(-1);
  if (last === undefined) return "There is no quote for these amounts.";
  if (points.every(({ received }) => received === 0n)) return "Nothing arrives for any of these amounts.";
  const threshold = formatPercent(NOTABLE_PRICE_IMPACT_PERCENT / 100);
  // Rounding makes the rate of tiny amounts worse too.
  const isSteep = ({ priceImpact = 0 }: QuotePoint): boolean => priceImpact > NOTABLE_PRICE_IMPACT_PERCENT;
  const steepIndex = points.findLastIndex((point) => !isSteep(point)) + 1;
  const range =
    points[steepIndex] === undefined
      ? `at most ${threshold} up to ${formatToken(last.sent)}`
      : `more than ${threshold} ${steepIndex === 0 ? "for all of these amounts" : `from ${formatToken(points[steepIndex].sent)} on`}`;
  const shortage = last.canBeDelivered ? "" : " The amounts in the shaded range cannot be delivered now.";
  return `The price impact is ${range}.${shortage}`;
}

const MAX_AXIS_DECIMALS = 8;

/** Formats the values of an axis with as many decimals as its steps have: 0.9950, 0.9975, 1.0000. */
export function formatAxisValues(values: readonly number[]): string[] {
  const [first = 0, second = first + 1] = values;
  const step = Math.abs(second - first);
  // Differences of floating-point numbers are close to the step.
  const isWhole = (steps: number): boolean => steps > 0.5 && Math.abs(steps - Math.round(steps)) < 1e-4;
  let decimals = 0;
  while (decimals < MAX_AXIS_DECIMALS && !isWhole(step * 10 ** decimals)) decimals += 1;
  return values.map((value) => value.toFixed(decimals));
}
