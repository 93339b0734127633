import type { UniswapPool } from "../../../src/quotes/math/uniswap-v3.js";
import { sqrtPriceAt } from "../../../src/quotes/math/uniswap-v3.js";

/** Where a swap in steps has come. */
export interface Stepped {
  /** undefined: the swap leaves the known words. */
  readonly amountOut: bigint | undefined;
  /** What had gone in at the end of each step that was taken as a whole. */
  readonly stops: readonly bigint[];
}

const q96 = 1n << 96n;
const million = 1_000_000n;
const floor = (dividend: bigint, divisor: bigint): bigint => dividend / divisor;
const ceiling = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor;

/**
 * Swaps an exact amount in a pool as its contract does, with nothing prepared: at each stop what is left, less its fee, is
 * held against what the way to the next stop takes.
 */
export function swapInSteps(pool: UniswapPool, zeroForOne: boolean, amountIn: bigint): Stepped {
  let { sqrtPriceX96: price, tick, liquidity } = pool;
  let [left, amountOut] = [amountIn, 0n];
  const stops: bigint[] = [];
  const limit = zeroForOne ? sqrtPriceAt(-887_272) + 1n : sqrtPriceAt(887_272) - 1n;
  while (left !== 0n && price !== limit) {
    const next = nextTick(pool, tick, zeroForOne);
    if (next === undefined) return { amountOut: undefined, stops };
    const atNext = sqrtPriceAt(next.tick);
    const target = (zeroForOne ? atNext < limit : atNext > limit) ? limit : atNext;
    const lessFee = floor(left * (million - pool.fee), million);
    const needed = amountBetween(price, target, liquidity, zeroForOne, ceiling);
    const isWhole = lessFee >= needed;
    const reached = isWhole ? target : priceAfter(price, liquidity, lessFee, zeroForOne);
    amountOut += amountBetween(price, reached, liquidity, !zeroForOne, floor);
    left = isWhole ? left - needed - ceiling(needed * pool.fee, million - pool.fee) : 0n;
    price = reached;
    if (!isWhole) break;
    stops.push(amountIn - left);
    if (price !== atNext) continue;
    if (next.initialised) {
      const net = pool.liquidityNet.get(next.tick);
      if (net === undefined) return { amountOut: left === 0n ? amountOut : undefined, stops };
      liquidity += zeroForOne ? -net : net;
    }
    tick = zeroForOne ? next.tick - 1 : next.tick;
  }
  return { amountOut, stops };
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
  if (!isToken0) return round(liquidity * (high - low), q96);
  return round(round(liquidity * q96 * (high - low), high), low);
}

function priceAfter(price: bigint, liquidity: bigint, added: bigint, zeroForOne: boolean): bigint {
  if (!zeroForOne) return price + floor(added * q96, liquidity);
  const sum = liquidity * q96 + added * price;
  if (sum < 1n << 256n) return ceiling(liquidity * q96 * price, sum);
  return ceiling(liquidity * q96, floor(liquidity * q96, price) + added);
}

/** Looks at one usable tick after the other, to the end of a word. */
function nextTick({ tickSpacing, words }: UniswapPool, tick: number, zeroForOne: boolean) {
  const start = Math.floor(tick / tickSpacing) + (zeroForOne ? 0 : 1);
  const word = words.get(start >> 8);
  if (word === undefined) return undefined;
  for (let usable = start; ; usable += zeroForOne ? -1 : 1) {
    const bit = usable & 255;
    const initialised = ((word >> BigInt(bit)) & 1n) === 1n;
    if (!initialised && bit !== (zeroForOne ? 0 : 255)) continue;
    return { tick: Math.min(887_272, Math.max(-887_272, usable * tickSpacing)), initialised };
  }
}
