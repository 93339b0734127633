/** Slope of a fitted line. */
export interface Slope {
  /** Change of the value per unit of time. */
  readonly perUnit: number;
  /** Half the width of its 95 % confidence interval. */
  readonly margin: number;
}

/** Fits a line by least squares. The interval assumes independent, normal errors. Needs at least three points. */
export function fitSlope(points: readonly { readonly at: number; readonly value: number }[]): Slope {
  const count = points.length;
  const meanAt = points.reduce((sum, { at }) => sum + at, 0) / count;
  const meanValue = points.reduce((sum, { value }) => sum + value, 0) / count;
  let variance = 0;
  let covariance = 0;
  for (const { at, value } of points) {
    variance += (at - meanAt) ** 2;
    covariance += (at - meanAt) * (value - meanValue);
  }
  const perUnit = covariance / variance;
  const squares = points.reduce((sum, { at, value }) => sum + (value - meanValue - perUnit * (at - meanAt)) ** 2, 0);
  return { perUnit, margin: studentQuantile(count - 2) * Math.sqrt(squares / (count - 2) / variance) };
}

/** Returns the 97.5 % quantile of Student's t by the Cornish-Fisher expansion; accurate to 0.01 from three degrees of degrees. */
function studentQuantile(degrees: number): number {
  const z = 1.959964;
  const first = (z ** 3 + z) / 4;
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
  const third = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384;
  return z + first / degrees + second / degrees ** 2 + third / degrees ** 3;
}
