import type { QuotePoint } from "./price-impact.js";

const pointsPerDecade = 8;
const scale = 1_000_000;
/** The largest amount that the service takes. */
const maxUint256 = 2n ** 256n - 1n;

/**
 * Amounts around one, evenly spread over four decades on a logarithmic scale: from a hundredth of it to a hundred times
 * as much, itself among them. Fewer where the smallest unit or the largest amount is in the way; in order, none twice.
 * @param amount in the token's smallest unit, at least 1
 */
export function amountsAround(amount: bigint): readonly bigint[] {
  const amounts = new Set<bigint>();
  for (let step = -2 * pointsPerDecade; step <= 2 * pointsPerDecade; step++) {
    const factor = BigInt(Math.round(10 ** (step / pointsPerDecade) * scale));
    const point = step === 0 ? amount : roughly((amount * factor) / BigInt(scale));
    if (point >= 1n && point <= maxUint256) amounts.add(point);
  }
  return [...amounts];
}

/** Its first three digits: amounts that people like to read. */
function roughly(amount: bigint): bigint {
  const unit = 10n ** BigInt(Math.max(0, amount.toString().length - 3));
  return (amount / unit) * unit;
}

/** An amount with what the service says of it: a quote, or why there is none. */
export type CurvePoint =
  | { readonly sent: bigint; readonly quote: QuotePoint }
  | { readonly sent: bigint; readonly problem: string };

/** How many quotes are asked for at a time: a page is one caller of many. */
const atOnce = 4;

/**
 * Quotes for many amounts, in the order of the amounts.
 * @param quote does not fail but by the signal
 * @throws what the signal was aborted with
 */
export async function quoteEach(
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
  await Promise.all(Array.from({ length: atOnce }, work));
  signal.throwIfAborted();
  return points;
}

/** The points of which there is a quote, in order of amounts. */
export function quotedPoints(points: readonly CurvePoint[]): readonly QuotePoint[] {
  return points.flatMap((point) => ("quote" in point ? [point.quote] : []));
}
