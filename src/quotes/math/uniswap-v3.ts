import { SwapRevertError } from "./stable-swap.js";

/** A pool of Uniswap v3 at one block, as far as it is known: its state, and the ticks around its price. */
export interface UniswapV3Pool {
  /** Square root of the price, token 1 for token 0, times 2^96. */
  readonly sqrtPriceX96: bigint;
  /** `slot0().tick`; where a swap ended on a tick, it may be the one below the price's own. */
  readonly tick: number;
  /** Liquidity at the price. */
  readonly liquidity: bigint;
  /** Millionths of the amount in. */
  readonly feePips: bigint;
  readonly tickSpacing: number;
  /** The words of `tickBitmap` that are known, by their places: 256 usable ticks each. */
  readonly bitmapWords: ReadonlyMap<number, bigint>;
  /** By how much liquidity grows where the price rises through an initialised tick, for those that are known. */
  readonly liquidityNet: ReadonlyMap<number, bigint>;
}

/**
 * What the quoter answers for an amount in, in raw units; undefined where the price would leave what is known of the pool.
 * Throws SwapReverts where the quoter reverts.
 */
export type UniswapSwapCalculator = (amountIn: bigint) => bigint | undefined;

/** Prices have 96 binary digits behind the point. */
const Q96_RESOLUTION = 96n;
const MAX_UINT128 = (1n << 128n) - 1n;
const MAX_UINT256 = (1n << 256n) - 1n;
const FEE_PIPS_DENOMINATOR = 1_000_000n;
const TICKS_PER_WORD = 256;
export const MAX_TICK = 887_272;
/** 1.0001^(-2^i / 2) for each bit i of a tick, with 128 binary digits behind the point, rounded to the nearest. */
const sqrtPriceFactors = computeSqrtPriceFactors(20);
const minSqrtPrice = getSqrtPriceAtTick(-MAX_TICK);
const maxSqrtPrice = getSqrtPriceAtTick(MAX_TICK);

/** The way of the price from one stop to the next, under one liquidity. */
interface SwapStep {
  readonly startSqrtPrice: bigint;
  readonly liquidity: bigint;
  /** What has gone in (fees among it) and come out since the swap began, before this step and at its end. */
  readonly amountInBefore: bigint;
  readonly amountOutBefore: bigint;
  readonly amountInAfter: bigint;
  readonly amountOutAfter: bigint;
}

/** Where the steps end: the price can go no further, or nobody knows how it goes on. */
type SwapWalkEnd = "limit" | "unknown";

/**
 * Prepares swaps of an exact amount in one direction: token 0 for token 1, which lowers the price, or the other way.
 *
 * The pool goes from stop to stop and rounds at each: stops are the initialised ticks, the ends of the bitmap's words
 * (though nothing changes there) and the price's limit. Where the stops are and what it takes to reach them does not
 * depend on the amount, so each step is computed once, when an amount first gets so far. The pool takes a whole step when
 * the rest less its fee, floor(rest (10^6 - f) / 10^6), is at least the step's amount a; that is the same as rest >=
 * ceil(a 10^6 / (10^6 - f)) = a + ceil(a f / (10^6 - f)), and so the same as that the rest pays for a and its fee.
 */
export function createUniswapSwapCalculator(pool: UniswapV3Pool, zeroForOne: boolean): UniswapSwapCalculator {
  const walk = walkSwapSteps(pool, zeroForOne);
  const steps: SwapStep[] = [];
  let end: SwapWalkEnd | undefined;

  function stepAt(index: number): SwapStep | undefined {
    const known = steps[index];
    if (known !== undefined || end !== undefined) return known;
    const { value, done } = walk.next();
    if (done === true) end = value;
    else steps.push(value);
    return steps[index];
  }

  return (amountIn) => {
    if (amountIn <= 0n || amountIn >> 255n > 0n) throw new SwapRevertError("the amount is nothing, or leaves int256");
    let index = 0;
    let step = stepAt(index);
    while (step !== undefined && step.amountInAfter < amountIn) {
      index += 1;
      step = stepAt(index);
    }
    if (step !== undefined)
      return step.amountInAfter === amountIn
        ? step.amountOutAfter
        : computeAmountOutWithin(step, amountIn, pool, zeroForOne);
    if (end === "unknown") return undefined;
    // At the limit the pool keeps what it could take and the quoter tells what that gave, if there was anything.
    const last = steps.at(-1);
    if (last === undefined || last.amountInAfter === 0n) throw new SwapRevertError("the pool can take nothing");
    return last.amountOutAfter;
  };
}

/** What has come out when the amount ends on the way: the price stops short of the step's end. */
function computeAmountOutWithin(
  step: SwapStep,
  amountIn: bigint,
  { feePips }: UniswapV3Pool,
  zeroForOne: boolean,
): bigint {
  const { startSqrtPrice, liquidity, amountInBefore, amountOutBefore } = step;
  const added = ((amountIn - amountInBefore) * (FEE_PIPS_DENOMINATOR - feePips)) / FEE_PIPS_DENOMINATOR;
  const price = zeroForOne
    ? getNextSqrtPriceFromAmount0(startSqrtPrice, liquidity, added)
    : startSqrtPrice + (added << Q96_RESOLUTION) / liquidity;
  return (
    amountOutBefore +
    (zeroForOne ? getAmount1Delta(liquidity, price, startSqrtPrice) : getAmount0Delta(liquidity, startSqrtPrice, price))
  );
}

function* walkSwapSteps(pool: UniswapV3Pool, zeroForOne: boolean): Generator<SwapStep, SwapWalkEnd> {
  const limit = zeroForOne ? minSqrtPrice + 1n : maxSqrtPrice - 1n;
  const reaches = (price: bigint): boolean => (zeroForOne ? price <= limit : price >= limit);
  let { sqrtPriceX96: price, tick, liquidity } = pool;
  let [amountIn, amountOut] = [0n, 0n];
  while (!reaches(price)) {
    const stop = findNextTickWithinWord(pool, tick, zeroForOne);
    if (stop === undefined) return "unknown";
    const atStop = getSqrtPriceAtTick(stop.tick);
    const target = reaches(atStop) ? limit : atStop;
    const [low, high] = zeroForOne ? [target, price] : [price, target];
    const taken = zeroForOne
      ? getAmount0DeltaRoundingUp(liquidity, low, high)
      : divRoundingUp(liquidity * (high - low), 1n << Q96_RESOLUTION);
    const step = {
      startSqrtPrice: price,
      liquidity,
      amountInBefore: amountIn,
      amountOutBefore: amountOut,
      amountInAfter: amountIn + taken + divRoundingUp(taken * pool.feePips, FEE_PIPS_DENOMINATOR - pool.feePips),
      amountOutAfter:
        amountOut + (zeroForOne ? getAmount1Delta(liquidity, low, high) : getAmount0Delta(liquidity, low, high)),
    };
    yield step;
    if (stop.isInitialised && !reaches(target)) {
      const net = pool.liquidityNet.get(stop.tick);
      if (net === undefined) return "unknown";
      liquidity += zeroForOne ? -net : net;
      // No pool is like that; what the contract would do with it is for the chain to say.
      if (liquidity < 0n || liquidity > MAX_UINT128) return "unknown";
    }
    [price, amountIn, amountOut] = [target, step.amountInAfter, step.amountOutAfter];
    tick = zeroForOne ? stop.tick - 1 : stop.tick;
  }
  return "limit";
}

/** The next initialised tick of the word in which the way begins, or the last tick of that word. */
function findNextTickWithinWord(
  { bitmapWords, tickSpacing }: UniswapV3Pool,
  tick: number,
  zeroForOne: boolean,
): { readonly tick: number; readonly isInitialised: boolean } | undefined {
  // Downwards, the tick in which the price is counts; upwards, the next one is the first.
  const first = Math.floor(tick / tickSpacing) + (zeroForOne ? 0 : 1);
  const place = Math.floor(first / TICKS_PER_WORD);
  const word = bitmapWords.get(place);
  if (word === undefined) return undefined;
  const bit = first - place * TICKS_PER_WORD;
  const ahead = zeroForOne ? word & ((2n << BigInt(bit)) - 1n) : (word >> BigInt(bit)) << BigInt(bit);
  const isInitialised = ahead !== 0n;
  const stopBit = isInitialised
    ? zeroForOne
      ? mostSignificantBit(ahead)
      : mostSignificantBit(ahead & -ahead)
    : zeroForOne
      ? 0
      : 255;
  const stop = (place * TICKS_PER_WORD + stopBit) * tickSpacing;
  return { tick: Math.max(-MAX_TICK, Math.min(MAX_TICK, stop)), isInitialised };
}

/** Place of the highest bit that is set. */
function mostSignificantBit(value: bigint): number {
  return value.toString(2).length - 1;
}

/** The price after so much of token 0 more, rounded up; by the coarser of two ways where the finer leaves uint256. */
function getNextSqrtPriceFromAmount0(price: bigint, liquidity: bigint, added: bigint): bigint {
  const numerator = liquidity << Q96_RESOLUTION;
  const denominator = numerator + added * price;
  return denominator <= MAX_UINT256
    ? divRoundingUp(numerator * price, denominator)
    : divRoundingUp(numerator, numerator / price + added);
}

/** Token 0 between two prices: L (1/low - 1/high), floored at each division. */
function getAmount0Delta(liquidity: bigint, low: bigint, high: bigint): bigint {
  return ((liquidity << Q96_RESOLUTION) * (high - low)) / high / low;
}

function getAmount0DeltaRoundingUp(liquidity: bigint, low: bigint, high: bigint): bigint {
  return divRoundingUp(divRoundingUp((liquidity << Q96_RESOLUTION) * (high - low), high), low);
}

/** Token 1 between two prices: L (high - low), floored. */
function getAmount1Delta(liquidity: bigint, low: bigint, high: bigint): bigint {
  return (liquidity * (high - low)) >> Q96_RESOLUTION;
}

function divRoundingUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

/**
 * Square root of the price at a tick of Uniswap v3, sqrt(1.0001^tick) times 2^96, as the pool computes it: the powers of
 * the tick's bits multiplied, lowest bit first, floored to 128 digits each time; the inverse for a tick above 0; rounded up.
 * @param tick -887272 to 887272
 */
export function getSqrtPriceAtTick(tick: number): bigint {
  const distance = Math.abs(tick);
  let price = 1n << 128n;
  for (const [bit, power] of sqrtPriceFactors.entries()) if ((distance >> bit) & 1) price = (price * power) >> 128n;
  if (tick > 0) price = ((1n << 256n) - 1n) / price;
  return (price + (1n << 32n) - 1n) >> 32n;
}

/** From the root of 1 / 1.0001 by squaring, with twice the digits that are kept. */
function computeSqrtPriceFactors(count: number): readonly bigint[] {
  const digits = 256n;
  let power = integerSqrt(((1n << (2n * digits)) * 10_000n) / 10_001n);
  return Array.from({ length: count }, () => {
    const rounded = (power + (1n << 127n)) >> 128n;
    power = (power * power) >> digits;
    return rounded;
  });
}

/** Integer part of a square root, by Newton's method from above. */
function integerSqrt(square: bigint): bigint {
  let root = square;
  for (;;) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
