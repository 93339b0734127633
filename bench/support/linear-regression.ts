/** A straight line through measurements. */
export interface Slope {
  /** Change of the value for each unit of time. */
  readonly perUnit: number;
  /** Half of the width of its 95 % confidence interval. */
  readonly margin: number;
}

/** Least squares; the interval takes the measurements' errors for independent and normal. At least three are needed. */
export function fitSlope(points: readonly { readonly at: number; readonly value: number }[]): Slope {
  const count = points.length;
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / count;
  const meanValue = points.reduce((sum, { value }) => sum + value, 0) / count;
  let spread = 0;
  let shared = 0;
  for (const { at, value } of points) {
    spread += (at - meanAt) ** 2;
    shared += (at - meanAt) * (value - meanValue);
  }
  const perUnit = shared / spread;
  const squares = points.reduce((sum, { at, value }) => sum + (value - meanValue - perUnit * (at - meanAt)) ** 2, 0);
  return { perUnit, margin: studentQuantile(count - 2) * Math.sqrt(squares / (count - 2) / spread) };
}

/** The 97.5 % point of Student's distribution, to a hundredth from three degrees of freedom on (Cornish-Fisher). */
function studentQuantile(freedom: number): number {
  const z = 1.959964;
  const first = (z ** 3 + z) / 4;
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
  const third = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384;
  return z + first / freedom + second / freedom ** 2 + third / freedom ** 3;
}
