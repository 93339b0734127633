/** Below this D, and up to this multiple of D as c, no step of the loop overflows uint256. */
const CLOSED_FORM_LIMIT = 1n << 120n;

/**
 * Returns the balance y with y^2 + k y = c where the loop of SwapUtils.getY, which starts at D, ends; undefined where that
 * is not proven.
 */
export type ClosedFormSolver = (k: bigint, c: bigint) => bigint | undefined;

/** @param d the invariant D of the pool */
export function createClosedFormSolver(d: bigint): ClosedFormSolver {
  const maxC = d < CLOSED_FORM_LIMIT ? d * CLOSED_FORM_LIMIT : -1n;
  return (k, c) => (c <= maxC ? solveQuadraticFloor(k, c) : undefined);
}

/**
 * Returns the result of Newton's method on g(y) = y^2 + k y - c without iterating; undefined where it is not proven.
 *
 * The contract's loop never falls below R = floor(r) of the root r, since N(y) = (y^2 + c) / (2 y + k) is
 * r + (y - r)^2 / (2 y + k). Each step at least halves the distance, so the loop ends (two steps within 1) at R or R + 1.
 * It ends at R + 1 only if N lifts r above it, that is, if r is within 9 / (2 R + k - 2) of R + 1. Then g(R + 1), which is
 * the product of R + 1 - r and about 2 R + k + 2, is below 10 as long as 2 R + k >= 100. So g(R) <= 0, 2 R + k >= 100 and
 * g(R + 1) >= 10 prove that the result is R.
 */
function solveQuadraticFloor(k: bigint, c: bigint): bigint | undefined {
  const approximateK = Number(k);
  const approximateC = Number(c);
  const root = Math.sqrt(approximateK * approximateK + 4 * approximateC);
  // Of the two forms, the one without cancellation. A double holds 15 digits; one Newton step doubles them.
  const guess = BigInt(
    Math.floor(approximateK > 0 ? (2 * approximateC) / (approximateK + root) : (root - approximateK) / 2),
  );
  const slope = guess * 2n + k;
  if (slope <= 0n) return undefined;
  const y = (guess * guess + c) / slope;
  const atY = y * (y + k) - c;
  const slopeAtY = y * 2n + k;
  return atY <= 0n && slopeAtY >= 100n && atY + slopeAtY >= 9n ? y : undefined;
}
