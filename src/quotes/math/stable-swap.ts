/** A StableSwap pool of two tokens at one block, as the contract's own getters give it. */
export interface StableSwapPool {
  /** Decimals of both of its tokens. */
  readonly decimals: number;
  /** Raw balances: canonical token, hToken. */
  readonly balances: readonly [bigint, bigint];
  /** `getAPrecise()`: the amplification coefficient times 100, as it ramps at the block's time. */
  readonly aPrecise: bigint;
  /** Swap fee in parts of 1e10. */
  readonly swapFee: bigint;
}

/** Place of a token in a pool. */
export const CANONICAL_TOKEN_INDEX = 0;
export const H_TOKEN_INDEX = 1;
type PoolTokenIndex = typeof CANONICAL_TOKEN_INDEX | typeof H_TOKEN_INDEX;

/** The contract would revert: the amount, or the pool, is nothing that its arithmetic can do. */
export class SwapRevertError extends Error {
  override readonly name = "SwapRevertError";
}

/** What the pool's `calculateSwap` returns for an amount in; throws SwapReverts where the contract reverts. */
export type StableSwapCalculator = (from: PoolTokenIndex, amountIn: bigint) => bigint;

const MAX_UINT256 = (1n << 256n) - 1n;
const HALF_UINT256 = 1n << 255n;
/** The contract keeps A with two decimals. */
const A_PRECISION = 100n;
const FEE_DENOMINATOR = 10n ** 10n;
const MAX_ITERATIONS = 256;
/** Below it the shortcut to y is proven to meet no overflow. */
const CLOSED_FORM_LIMIT = 1n << 120n;

/**
 * Prepares a pool for swaps: what depends on its state alone, above all the invariant D, is computed once. The arithmetic
 * is the contract's own (Newton's method on integers, divisions that floor, reverts on what leaves uint256), so that
 * every result is equal to the last unit; a test holds it against results of the deployed contract.
 *
 * Where several intermediate values only grow, the largest alone is checked: it leaves uint256 whenever one of them does.
 */
export function createStableSwapCalculator(pool: StableSwapPool): StableSwapCalculator {
  const multiplier = 10n ** BigInt(18 - pool.decimals);
  const { swapFee } = pool;
  let prepared: { readonly xp: readonly [bigint, bigint]; readonly balanceFor: (x: bigint) => bigint } | undefined;

  return (from, amountIn) => {
    prepared ??= prepareInvariant(pool, multiplier);
    const { xp, balanceFor } = prepared;
    const x = checkUint256(amountIn * multiplier + xp[from]);
    const dy = checkUint256(xp[from === 0 ? 1 : 0] - balanceFor(x) - 1n);
    const fee = checkUint256(dy * swapFee) / FEE_DENOMINATOR;
    return checkUint256(dy - fee) / multiplier;
  };
}

function prepareInvariant({ balances, aPrecise }: StableSwapPool, multiplier: bigint) {
  const nA = checkUint256(aPrecise * 2n);
  const xp = [checkUint256(balances[0] * multiplier), checkUint256(balances[1] * multiplier)] as const;
  return { xp, balanceFor: createBalanceSolver(computeInvariant(xp, nA), nA) };
}

/**
 * D of two balances: from D = S, with dP = D^3 / (4 xp0 xp1) floored at each step,
 * D' = (nA S / 100 + 2 dP) D / ((nA - 100) D / 100 + 3 dP).
 */
function computeInvariant([xp0, xp1]: readonly [bigint, bigint], nA: bigint): bigint {
  const sum = checkUint256(xp0 + xp1);
  if (sum === 0n) return 0n;
  let d = sum;
  for (let round = 0; round < MAX_ITERATIONS; round++) {
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
 * Makes the function that gives the balance of the other token which keeps D when one token's is x: from y = D,
 * y' = (y^2 + c) / (2 y + b - D) with c = D^3 100 / (4 x nA), floored at each step, and b = x + 100 D / nA.
 */
function createBalanceSolver(d: bigint, nA: bigint): (x: bigint) => bigint {
  const dSquared = d * d;
  const scaledD = d * A_PRECISION;
  const twoNA = nA * 2n;
  const largestC = d > 0n && d < CLOSED_FORM_LIMIT ? d * CLOSED_FORM_LIMIT : -1n;
  return (x) => {
    const first = divideOrRevert(checkUint256(dSquared), checkUint256(x * 2n));
    const c = divideOrRevert(checkUint256(first * scaledD), checkUint256(twoNA));
    const b = checkUint256(x + divideOrRevert(checkUint256(scaledD), nA));
    // y stays below 2^128, or its square leaves uint256: only next to a b this large can 2 y matter.
    const isLargeB = b > HALF_UINT256;
    const bLessD = b - d;
    const directly = c <= largestC && !isLargeB ? solveQuadraticFloor(bLessD, c) : undefined;
    if (directly !== undefined) return directly;
    let y = d;
    for (let round = 0; round < MAX_ITERATIONS; round++) {
      const denominator = y * 2n + bLessD;
      if (denominator <= 0n) throw new SwapRevertError("the denominator of y is not positive");
      const numerator = y * y + c;
      if (numerator > MAX_UINT256 || (isLargeB && denominator + d > MAX_UINT256))
        throw new SwapRevertError("y leaves uint256");
      const next = numerator / denominator;
      if (isWithinOne(next, y)) return next;
      y = next;
    }
    throw new SwapRevertError("y does not converge");
  };
}

/**
 * Where Newton's method on g(y) = y^2 + k y - c surely ends, without the way there; undefined where that is not sure.
 *
 * The contract's loop never falls below R = floor(r) of the root r, since N(y) = (y^2 + c) / (2 y + k) is
 * r + (y - r)^2 / (2 y + k). Each step at least halves the distance, so it ends (two steps within 1) at R or R + 1, and
 * at R + 1 only if N lifts r over it: if r is within 9 / (2 R + k - 2) of R + 1. Then g(R + 1), which is the product of
 * R + 1 - r and about 2 R + k + 2, is below 10 as long as 2 R + k >= 100. So g(R) <= 0, 2 R + k >= 100 and
 * g(R + 1) >= 10 prove that it is R. Nothing on the loop's way leaves uint256 with D < 2^120 and c <= 2^120 D.
 */
function solveQuadraticFloor(k: bigint, c: bigint): bigint | undefined {
  const kNear = Number(k);
  const root = Math.sqrt(kNear * kNear + 4 * Number(c));
  // The form in which nothing cancels; a double has the first 15 digits, and one step of Newton's twice as many.
  const guess = BigInt(Math.floor(kNear > 0 ? (2 * Number(c)) / (kNear + root) : (root - kNear) / 2));
  const slope = guess * 2n + k;
  if (slope <= 0n) return undefined;
  const y = (guess * guess + c) / slope;
  const atY = y * (y + k) - c;
  const slopeAtY = y * 2n + k;
  return atY <= 0n && slopeAtY >= 100n && atY + slopeAtY >= 9n ? y : undefined;
}

function isWithinOne(a: bigint, b: bigint): boolean {
  return a > b ? a - b <= 1n : b - a <= 1n;
}

function checkUint256(value: bigint): bigint {
  if (value < 0n || value > MAX_UINT256) throw new SwapRevertError("leaves uint256");
  return value;
}

function divideOrRevert(dividend: bigint, divisor: bigint): bigint {
  if (divisor === 0n) throw new SwapRevertError("divides by zero");
  return dividend / divisor;
}
