import type { QuotePoint } from "./price-impact.js";

const POINTS_PER_DECADE = 8;
const FACTOR_SCALE = 1_000_000;
/** The largest amount that the service takes. */
const MAX_UINT256 = 2n ** 256n - 1n;

/**
 * Amounts around one, evenly spread over four decades on a logarithmic scale: from a hundredth of it to a hundred times
 * as much, itself among them. Fewer where the smallest unit or the largest amount is in the way; in order, none twice.
 * @param amount in the token's smallest unit, at least 1
 */
export function sampleAmounts(amount: bigint): readonly bigint[] {
  const amounts = new Set<bigint>();
  for (let step = -2 * POINTS_PER_DECADE; step <= 2 * POINTS_PER_DECADE; step++) {
    const factor = BigInt(Math.round(10 ** (step / POINTS_PER_DECADE) * FACTOR_SCALE));
    const point = step === 0 ? amount : roundToThreeDigits((amount * factor) / BigInt(FACTOR_SCALE));
    if (point >= 1n && point <= MAX_UINT256) amounts.add(point);
  }
  return [...amounts];
}

/** Its first three digits: amounts that people like to read. */
function roundToThreeDigits(amount: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, amount.toString().length - 3));
  return (amount / unit) * unit;
}

/** An amount with what the service says of it: a quote, or why there is none. */
export type CurvePoint =
  | { readonly sent: bigint; readonly quote: QuotePoint }
  | { readonly sent: bigint; readonly problem: string };

/** How many quotes are asked for at a time: a page is one caller of many. */
const MAX_CONCURRENT_QUOTES = 4;

/**
 * Quotes for many amounts, in the order of the amounts.
 * @param quote does not fail but by the signal
 * @throws what the signal was aborted with
 */
export async function quoteAmounts(
  amounts: readonly bigint[],
  quote: (sent: bigint, signal: AbortSignal) => Promise<CurvePoint>,
  signal: AbortSignal,
): Promise<readonly CurvePoint[]> {
  const points: CurvePoint[] = [];
  let next = 0;
  async function work(): Promise<void> {
    for (let index = next++; index < amounts.length; index = next++) {
      signal.throwIfAborted();
      points[index] = await quote(amounts[index] ?? 0n, signal);
    }
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT_QUOTES }, work));
  signal.throwIfAborted();
  return points;
}

/** The points of which there is a quote, in order of amounts. */
export function selectQuotedPoints(points: readonly CurvePoint[]): readonly QuotePoint[] {
  return points.flatMap((point) => ("quote" in point ? [point.quote] : []));
}
