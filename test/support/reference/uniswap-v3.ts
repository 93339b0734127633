import type { UniswapV3Pool } from "../../../src/quotes/math/uniswap-v3.js";
import { getSqrtPriceAtTick } from "../../../src/quotes/math/uniswap-v3.js";

/** Where a swap in steps has come. */
export interface SteppedSwap {
  /** undefined: the swap leaves the known words. */
  readonly amountOut: bigint | undefined;
  /** What had gone in at the end of each step that was taken as a whole. */
  readonly amountsInAtStops: readonly bigint[];
}

const Q96 = 1n << 96n;
const FEE_DENOMINATOR = 1_000_000n;
const floor = (dividend: bigint, divisor: bigint): bigint => dividend / divisor;
const ceiling = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor;

/**
 * Swaps an exact amount in a pool as its contract does, with nothing prepared: at each stop what is left, less its fee, is
 * held against what the way to the next stop takes.
 */
export function swapInSteps(pool: UniswapV3Pool, zeroForOne: boolean, amountIn: bigint): SteppedSwap {
  let { sqrtPriceX96: price, tick, liquidity } = pool;
  let [left, amountOut] = [amountIn, 0n];
  const amountsInAtStops: bigint[] = [];
  const limit = zeroForOne ? getSqrtPriceAtTick(-887_272) + 1n : getSqrtPriceAtTick(887_272) - 1n;
  while (left !== 0n && price !== limit) {
    const next = nextTick(pool, tick, zeroForOne);
    if (next === undefined) return { amountOut: undefined, amountsInAtStops };
    const atNext = getSqrtPriceAtTick(next.tick);
    const target = (zeroForOne ? atNext < limit : atNext > limit) ? limit : atNext;
    const lessFee = floor(left * (FEE_DENOMINATOR - pool.feePips), FEE_DENOMINATOR);
    const needed = amountBetween(price, target, liquidity, zeroForOne, ceiling);
    const isWhole = lessFee >= needed;
    const reached = isWhole ? target : priceAfter(price, liquidity, lessFee, zeroForOne);
    amountOut += amountBetween(price, reached, liquidity, !zeroForOne, floor);
    left = isWhole ? left - needed - ceiling(needed * pool.feePips, FEE_DENOMINATOR - pool.feePips) : 0n;
    price = reached;
    if (!isWhole) break;
    amountsInAtStops.push(amountIn - left);
    if (price !== atNext) continue;
    if (next.initialised) {
      const net = pool.liquidityNet.get(next.tick);
      if (net === undefined) return { amountOut: left === 0n ? amountOut : undefined, amountsInAtStops };
      liquidity += zeroForOne ? -net : net;
    }
    tick = zeroForOne ? next.tick - 1 : next.tick;
  }
  return { amountOut, amountsInAtStops };
}

/** Token 0 or token 1 that lies between two prices. */
function amountBetween(
  a: bigint,
  b: bigint,
  liquidity: bigint,
  isToken0: boolean,
  round: (dividend: bigint, divisor: bigint) => bigint,
): bigint {
  const [low, high] = a < b ? [a, b] : [b, a];
  if (!isToken0) return round(liquidity * (high - low), Q96);
  return round(round(liquidity * Q96 * (high - low), high), low);
}

function priceAfter(price: bigint, liquidity: bigint, added: bigint, zeroForOne: boolean): bigint {
  if (!zeroForOne) return price + floor(added * Q96, liquidity);
  const sum = liquidity * Q96 + added * price;
  if (sum < 1n << 256n) return ceiling(liquidity * Q96 * price, sum);
  return ceiling(liquidity * Q96, floor(liquidity * Q96, price) + added);
}

/** Looks at one usable tick after the other, to the end of a word. */
function nextTick({ tickSpacing, bitmapWords }: UniswapV3Pool, tick: number, zeroForOne: boolean) {
  const start = Math.floor(tick / tickSpacing) + (zeroForOne ? 0 : 1);
  const word = bitmapWords.get(start >> 8);
  if (word === undefined) return undefined;
  for (let usable = start; ; usable += zeroForOne ? -1 : 1) {
    const bit = usable & 255;
    const initialised = ((word >> BigInt(bit)) & 1n) === 1n;
    if (!initialised && bit !== (zeroForOne ? 0 : 255)) continue;
    return { tick: Math.min(887_272, Math.max(-887_272, usable * tickSpacing)), initialised };
  }
}
