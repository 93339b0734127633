/** State of a StableSwap pool of two tokens, as the contract's getters return it. */
export interface Pool {
  readonly decimals: number;
  /** Raw balances: canonical token, hToken. */
  readonly balances: readonly [bigint, bigint];
  /** getAPrecise(): A times 100. */
  readonly aPrecise: bigint;
  /** Of 1e10. */
  readonly swapFee: bigint;
}

const MAX_UINT256 = 2n ** 256n - 1n;
const COINS = 2n;
const PRECISION = 100n;

/**
 * What the pool's calculateSwap(i, j, dx) returns; throws RangeError where the contract reverts.
 * The arithmetic is that of the deployed pools: Newton's method on integers, divisions floor.
 */
export function calculateSwap(pool: Pool, i: 0 | 1, dx: bigint): bigint {
  const j = i === 0 ? 1 : 0;
  const multiplier = 10n ** BigInt(18 - pool.decimals);
  const xp = [u(pool.balances[0] * multiplier), u(pool.balances[1] * multiplier)] as const;
  const x = u(u(dx * multiplier) + xp[i]);
  const nA = u(pool.aPrecise * COINS);
  const d = invariant(xp, nA);
  const y = otherBalance(x, d, nA);
  const dy = u(xp[j] - y - 1n);
  const fee = u(dy * pool.swapFee) / 10n ** 10n;
  return u(dy - fee) / multiplier;
}

function invariant(xp: readonly [bigint, bigint], nA: bigint): bigint {
  const sum = u(xp[0] + xp[1]);
  if (sum === 0n) return 0n;
  let d = sum;
  for (let round = 0; round < 256; round++) {
    let dP = d;
    for (const balance of xp) dP = div(u(dP * d), u(balance * COINS));
    const previous = d;
    const numerator = u(u(u(nA * sum) / PRECISION + u(dP * COINS)) * d);
    const denominator = u(u(u(nA - PRECISION) * d) / PRECISION + u((COINS + 1n) * dP));
    d = div(numerator, denominator);
    if (isClose(d, previous)) return d;
  }
  throw new RangeError("D does not converge");
}

function otherBalance(x: bigint, d: bigint, nA: bigint): bigint {
  let c = d;
  c = div(u(c * d), u(x * COINS));
  c = div(u(u(c * d) * PRECISION), u(nA * COINS));
  const b = u(x + div(u(d * PRECISION), nA));
  let y = d;
  for (let round = 0; round < 256; round++) {
    const previous = y;
    y = div(u(u(y * y) + c), u(u(u(y * 2n) + b) - d));
    if (isClose(y, previous)) return y;
  }
  throw new RangeError("y does not converge");
}

function isClose(a: bigint, b: bigint): boolean {
  return a > b ? a - b <= 1n : b - a <= 1n;
}

/** Checks for uint256 overflow, on which the contract reverts. */
function u(value: bigint): bigint {
  if (value < 0n || value > MAX_UINT256) throw new RangeError("leaves uint256");
  return value;
}

function div(a: bigint, b: bigint): bigint {
  if (b === 0n) throw new RangeError("division by zero");
  return a / b;
}
