/** State of a StableSwap pool of two tokens at one block, as the contract's getters return it. */
export interface StableSwapPool {
  /** Decimals of both tokens. */
  readonly decimals: number;
  /** Raw balances: canonical token, hToken. */
  readonly balances: readonly [bigint, bigint];
  /** `getAPrecise()`: the amplification coefficient times 100, ramped to the block's time. */
  readonly aPrecise: bigint;
  /** Swap fee in units of 1e-10. */
  readonly swapFee: bigint;
}

/** Index of a token in a pool. */
export const CANONICAL_TOKEN_INDEX = 0;
export const H_TOKEN_INDEX = 1;
export type PoolTokenIndex = typeof CANONICAL_TOKEN_INDEX | typeof H_TOKEN_INDEX;

/** Returns the result of the pool's `calculateSwap`. @throws SwapRevertError where the contract reverts. */
export type StableSwapCalculator = (from: PoolTokenIndex, amountIn: bigint) => bigint;

/** A swap for which the pool's contract would revert: its arithmetic cannot handle the amount or the pool's state. */
export class SwapRevertError extends Error {
  override readonly name = "SwapRevertError";
}

const MAX_UINT256 = (1n << 256n) - 1n;
/** SwapUtils stores A with two decimals. */
const A_PRECISION = 100n;
const FEE_DENOMINATOR = 10n ** 10n;
/** SwapUtils.MAX_LOOP_LIMIT. */
const MAX_ITERATIONS = 256;
/** Below this D, and up to this multiple of D as c, no step of the loop overflows uint256. */
const CLOSED_FORM_LIMIT = 1n << 120n;

/**
 * Returns the swap function of a pool; computes the invariant D once, on the first swap. The arithmetic is that of
 * Saddle's SwapUtils.calculateSwap (Newton's method on integers, divisions that floor, reverts on overflow of uint256),
 * so results are exact. A test compares them with results of the deployed contract.
 *
 * Where several intermediate values only grow, only the largest is checked: it overflows whenever one of them does.
 */
export function createStableSwapCalculator(pool: StableSwapPool): StableSwapCalculator {
  const multiplier = 10n ** BigInt(18 - pool.decimals);
  const { swapFee } = pool;
  let prepared: { readonly xp: readonly [bigint, bigint]; readonly solveBalance: (x: bigint) => bigint } | undefined;

  return (from, amountIn) => {
    prepared ??= prepareInvariant(pool, multiplier);
    const { xp, solveBalance } = prepared;
    const x = checkUint256(amountIn * multiplier + xp[from]);
    const dy = checkUint256(xp[from === 0 ? 1 : 0] - solveBalance(x) - 1n);
    const fee = checkUint256(dy * swapFee) / FEE_DENOMINATOR;
    return checkUint256(dy - fee) / multiplier;
  };
}

function prepareInvariant({ balances, aPrecise }: StableSwapPool, multiplier: bigint) {
  const nA = checkUint256(aPrecise * 2n);
  const xp = [checkUint256(balances[0] * multiplier), checkUint256(balances[1] * multiplier)] as const;
  return { xp, solveBalance: createBalanceSolver(computeInvariant(xp, nA), nA) };
}

/**
 * Returns the invariant D of two balances with the sum S, like SwapUtils.getD. Reverts for two balances of 0, with which
 * every swap reverts. Starts at D = S and iterates
 * D' = (nA S / 100 + 2 dP) D / ((nA - 100) D / 100 + 3 dP), where dP = D^3 / (4 xp0 xp1), floored at each step.
 */
function computeInvariant([xp0, xp1]: readonly [bigint, bigint], nA: bigint): bigint {
  const sum = checkUint256(xp0 + xp1);
  let d = sum;
  for (let iteration = 0; iteration < MAX_ITERATIONS; iteration++) {
    const half = divideOrRevert(checkUint256(d * d), checkUint256(xp0 * 2n));
    const dP = divideOrRevert(checkUint256(half * d), checkUint256(xp1 * 2n));
    const numerator = checkUint256((checkUint256(nA * sum) / A_PRECISION + dP * 2n) * d);
    const denominator = checkUint256(checkUint256(checkUint256(nA - A_PRECISION) * d) / A_PRECISION + dP * 3n);
    const next = divideOrRevert(numerator, denominator);
    if (isWithinOne(next, d)) return next;
    d = next;
  }
  throw new SwapRevertError("D does not converge");
}

/**
 * Returns a function that computes, for one token's balance x, the other token's balance y that keeps D, like
 * SwapUtils.getY. Starts at y = D and iterates y' = (y^2 + c) / (2 y + b - D), where c = D^3 100 / (4 x nA), floored at
 * each step, and b = x + 100 D / nA.
 */
function createBalanceSolver(d: bigint, nA: bigint): (x: bigint) => bigint {
  const dSquared = checkUint256(d * d);
  const scaledD = checkUint256(d * A_PRECISION);
  const twoNA = checkUint256(nA * 2n);
  const bMinusX = divideOrRevert(scaledD, nA);
  const solveClosedForm = createClosedFormSolver(d);
  return (x) => {
    const first = divideOrRevert(dSquared, checkUint256(x * 2n));
    const c = checkUint256(first * scaledD) / twoNA;
    const bMinusD = x + bMinusX - d;
    const closedForm = solveClosedForm(bMinusD, c);
    if (closedForm !== undefined) return closedForm;
    let y = d;
    for (let iteration = 0; iteration < MAX_ITERATIONS; iteration++) {
      // 2 y + b fits: x is below 2^255 because 2 x fits, and y and D are below 2^128 because their squares do. It is not
      // below D: y is D at first, and then at least the floor of the root, which is not below D - b.
      const next = divideOrRevert(checkUint256(y * y + c), y * 2n + bMinusD);
      if (isWithinOne(next, y)) return next;
      y = next;
    }
    throw new SwapRevertError("y does not converge");
  };
}

function isWithinOne(a: bigint, b: bigint): boolean {
  return a > b ? a - b <= 1n : b - a <= 1n;
}

function checkUint256(value: bigint): bigint {
  if (value < 0n || value > MAX_UINT256) throw new SwapRevertError("a value overflows uint256");
  return value;
}

function divideOrRevert(dividend: bigint, divisor: bigint): bigint {
  if (divisor === 0n) throw new SwapRevertError("division by zero");
  return dividend / divisor;
}

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
