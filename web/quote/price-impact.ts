import { toRatio } from "../shared/format/amounts.js";

/** Amounts of a quote in the token's smallest unit. */
export interface QuotePoint {
  readonly sent: bigint;
  readonly received: bigint;
  readonly fee: bigint;
}

/** Returns the amount received per unit sent, after the fee. */
export function effectiveRate({ received, sent }: QuotePoint): number {
  return toRatio(received, sent);
}

/**
 * Returns the output of the swaps per unit sent, before the fee. Returns undefined if the fee exceeds the output: a quote
 * does not contain the output then.
 */
export function swapRate({ received, fee, sent }: QuotePoint): number | undefined {
  return received === 0n ? undefined : toRatio(received + fee, sent);
}

/** Below this output, rounding to the smallest unit distorts the rate noticeably. */
const MIN_REFERENCE_OUTPUT = 1_000_000n;

/**
 * Returns the smallest amount whose rate is precise: the reference for price impact, since it hardly moves the pools.
 * @param points in ascending order of amounts
 */
export function findReferencePoint(points: readonly QuotePoint[]): QuotePoint | undefined {
  return points.find(({ received, fee }) => received > 0n && received + fee >= MIN_REFERENCE_OUTPUT);
}

/**
 * Returns by which share the swap rate is worse than at the reference: 0.01 is one percent. The fee is left out, since
 * most of it does not depend on the amount. Returns undefined if a rate is unknown or the amount is below the reference.
 */
export function priceImpact(point: QuotePoint, reference: QuotePoint): number | undefined {
  const rate = swapRate(point);
  const referenceRate = swapRate(reference);
  if (rate === undefined || referenceRate === undefined || point.sent < reference.sent) return undefined;
  return 1 - rate / referenceRate;
}

/** Returns the first point whose price impact exceeds a threshold. */
export function findFirstAboveImpact(
  threshold: number,
  points: readonly QuotePoint[],
  reference: QuotePoint,
): QuotePoint | undefined {
  return points.find((point) => (priceImpact(point, reference) ?? 0) > threshold);
}

/** Formats a share in percent with two to three significant digits. */
export function formatPercent(share: number): string {
  const percent = share * 100;
  const digits = Number.isInteger(percent) ? 0 : Math.abs(percent) >= 10 ? 1 : Math.abs(percent) >= 0.1 ? 2 : 3;
  const text = percent.toFixed(digits);
  return `${Number(text) === 0 ? "0" : text.replace("-", "−")} %`;
}
