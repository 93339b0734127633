import { toRatio } from "../shared/amounts.js";

/** What a quote says of an amount; all in the token's smallest unit. */
export interface QuotePoint {
  readonly sent: bigint;
  readonly received: bigint;
  readonly fee: bigint;
}

/** What arrives for each unit sent, the fee taken off. */
export function effectiveRate({ received, sent }: QuotePoint): number {
  return toRatio(received, sent);
}

/**
 * What the swaps give for each unit sent, before the fee; undefined where the fee takes everything, since the quote
 * does not tell then.
 */
export function swapRate({ received, fee, sent }: QuotePoint): number | undefined {
  return received === 0n ? undefined : toRatio(received + fee, sent);
}

/** Of less, whole units are too coarse to tell a rate: rounding would pass for a price. */
const MIN_RATE_AMOUNT = 1_000_000n;

/**
 * The smallest amount that tells what the swaps give where no pool is moved: of which something arrives, and not too
 * small for a rate. Points in order of amounts.
 */
export function findReferencePoint(points: readonly QuotePoint[]): QuotePoint | undefined {
  return points.find(({ received, fee }) => received > 0n && received + fee >= MIN_RATE_AMOUNT);
}

/**
 * How much worse the swaps are for an amount than for a small one, as a share: 0.01 is one percent worse. The fee, most
 * of which is the same for any amount, has no part in it. Undefined where the quote does not tell, or the amount is the
 * smaller one.
 */
export function priceImpact(point: QuotePoint, small: QuotePoint): number | undefined {
  const rate = swapRate(point);
  const smallRate = swapRate(small);
  if (rate === undefined || smallRate === undefined || point.sent < small.sent) return undefined;
  return 1 - rate / smallRate;
}

/** The first of the points at which the price impact is above a share; undefined: none. */
export function findFirstAboveImpact(
  share: number,
  points: readonly QuotePoint[],
  small: QuotePoint,
): QuotePoint | undefined {
  return points.find((point) => (priceImpact(point, small) ?? 0) > share);
}

/** A share in percent, with as many digits as tell something. */
export function formatPercent(share: number): string {
  const percent = share * 100;
  const digits = Number.isInteger(percent) ? 0 : Math.abs(percent) >= 10 ? 1 : Math.abs(percent) >= 0.1 ? 2 : 3;
  const shown = percent.toFixed(digits);
  return `${Number(shown) === 0 ? "0" : shown.replace("-", "−")} %`;
}
