import { SwapRevertError } from "./stable-swap.js";

// Exact-input swaps of Uniswap v3. Each doc comment names the library of Uniswap's v3-core that it mirrors.

/** State of a Uniswap v3 pool at one block, with the part of its ticks that is known. */
export interface UniswapV3Pool {
  /** Square root of the price of token 0 in token 1, times 2^96. */
  readonly sqrtPriceX96: bigint;
  /** `slot0().tick`; after a swap that ended exactly on a tick, it may be one below the tick of the price. */
  readonly tick: number;
  /** Liquidity at the price. */
  readonly liquidity: bigint;
  /** Swap fee in millionths of the input amount. */
  readonly feePips: bigint;
  readonly tickSpacing: number;
  /** The known words of `tickBitmap` by word position; each covers 256 usable ticks. */
  readonly bitmapWords: ReadonlyMap<number, bigint>;
  /** Liquidity added when the price rises through an initialized tick, for the known ticks. */
  readonly liquidityNet: ReadonlyMap<number, bigint>;
}

/**
 * Returns what Uniswap's Quoter returns for an input amount, in raw units; undefined when the price would leave the known
 * part of the pool.
 * @throws SwapRevertError where the Quoter reverts.
 */
export type UniswapSwapCalculator = (amountIn: bigint) => bigint | undefined;

/** Prices are fixed-point numbers with 96 fraction bits (FixedPoint96). */
const Q96_RESOLUTION = 96n;
const MAX_UINT128 = (1n << 128n) - 1n;
const MAX_UINT256 = (1n << 256n) - 1n;
const FEE_PIPS_DENOMINATOR = 1_000_000n;
const TICKS_PER_WORD = 256;
export const MAX_TICK = 887_272;
/** 1.0001^(-2^i / 2) for each bit i of a tick, with 128 fraction bits, rounded to nearest: the constants of TickMath. */
const sqrtPriceFactors = computeSqrtPriceFactors(20);
const minSqrtPrice = getSqrtPriceAtTick(-MAX_TICK);
const maxSqrtPrice = getSqrtPriceAtTick(MAX_TICK);

/** Price movement between two stops at constant liquidity. */
interface SwapStep {
  readonly startSqrtPrice: bigint;
  readonly liquidity: bigint;
  /** Cumulative input (including fees) and output of the swap, before and after this step. */
  readonly amountInBefore: bigint;
  readonly amountOutBefore: bigint;
  readonly amountInAfter: bigint;
  readonly amountOutAfter: bigint;
}

/** Why the steps end: the price reached its limit, or the next word or tick is not known. */
type SwapWalkEnd = "limit" | "unknown";

/**
 * Returns a function for exact-input swaps in one direction: token 0 for token 1, which lowers the price, or the reverse.
 * Mirrors UniswapV3Pool.swap.
 *
 * The pool moves from stop to stop and rounds at each. Stops are the initialized ticks, the ends of bitmap words (although
 * nothing changes there) and the price limit. The stops and the input needed to reach them do not depend on the amount, so
 * each step is computed once, when an amount first reaches it. By SwapMath.computeSwapStep, the pool takes a whole step if
 * the remaining input r less its fee, floor(r (10^6 - f) / 10^6), is at least the step's input a. That is equivalent to
 * r >= ceil(a 10^6 / (10^6 - f)) = a + ceil(a f / (10^6 - f)): the remaining input pays for a and its fee.
 */
export function createUniswapSwapCalculator(pool: UniswapV3Pool, zeroForOne: boolean): UniswapSwapCalculator {
  const walk = walkSwapSteps(pool, zeroForOne);
  const steps: SwapStep[] = [];
  let end: SwapWalkEnd | undefined;

  function getStep(index: number): SwapStep | undefined {
    const computed = steps[index];
    if (computed !== undefined || end !== undefined) return computed;
    const { value, done } = walk.next();
    if (done === true) end = value;
    else steps.push(value);
    return steps[index];
  }

  return (amountIn) => {
    if (amountIn <= 0n || amountIn >> 255n > 0n) throw new SwapRevertError("the amount is 0 or overflows int256");
    let index = 0;
    let step = getStep(index);
    while (step !== undefined && step.amountInAfter < amountIn) {
      index += 1;
      step = getStep(index);
    }
    if (step !== undefined)
      return step.amountInAfter === amountIn
        ? step.amountOutAfter
        : computeAmountOutWithin(step, amountIn, pool, zeroForOne);
    if (end === "unknown") return undefined;
    // At the price limit, the pool takes only a part of the amount, and the Quoter returns the output of that part.
    const last = steps.at(-1);
    if (last === undefined || last.amountInAfter === 0n) throw new SwapRevertError("the pool cannot take any input");
    return last.amountOutAfter;
  };
}

/** Returns the total output when the input ends within a step (SwapMath.computeSwapStep, target not reached). */
function computeAmountOutWithin(
  step: SwapStep,
  amountIn: bigint,
  { feePips }: UniswapV3Pool,
  zeroForOne: boolean,
): bigint {
  const { startSqrtPrice, liquidity, amountInBefore, amountOutBefore } = step;
  const netInput = ((amountIn - amountInBefore) * (FEE_PIPS_DENOMINATOR - feePips)) / FEE_PIPS_DENOMINATOR;
  const price = zeroForOne
    ? getNextSqrtPriceFromAmount0(startSqrtPrice, liquidity, netInput)
    : startSqrtPrice + (netInput << Q96_RESOLUTION) / liquidity;
  return (
    amountOutBefore +
    (zeroForOne ? getAmount1Delta(liquidity, price, startSqrtPrice) : getAmount0Delta(liquidity, startSqrtPrice, price))
  );
}

/** Yields the steps of a swap of unlimited size, like the loop of UniswapV3Pool.swap. */
function* walkSwapSteps(pool: UniswapV3Pool, zeroForOne: boolean): Generator<SwapStep, SwapWalkEnd> {
  const limit = zeroForOne ? minSqrtPrice + 1n : maxSqrtPrice - 1n;
  const isAtLimit = (price: bigint): boolean => (zeroForOne ? price <= limit : price >= limit);
  let { sqrtPriceX96: price, tick, liquidity } = pool;
  let [amountIn, amountOut] = [0n, 0n];
  while (!isAtLimit(price)) {
    const stop = findNextTickWithinWord(pool, tick, zeroForOne);
    if (stop === undefined) return "unknown";
    const stopPrice = getSqrtPriceAtTick(stop.tick);
    const target = isAtLimit(stopPrice) ? limit : stopPrice;
    const [low, high] = zeroForOne ? [target, price] : [price, target];
    const input = zeroForOne
      ? getAmount0DeltaRoundingUp(liquidity, low, high)
      : divRoundingUp(liquidity * (high - low), 1n << Q96_RESOLUTION);
    const step = {
      startSqrtPrice: price,
      liquidity,
      amountInBefore: amountIn,
      amountOutBefore: amountOut,
      amountInAfter: amountIn + input + divRoundingUp(input * pool.feePips, FEE_PIPS_DENOMINATOR - pool.feePips),
      amountOutAfter:
        amountOut + (zeroForOne ? getAmount1Delta(liquidity, low, high) : getAmount0Delta(liquidity, low, high)),
    };
    yield step;
    if (stop.isInitialized && !isAtLimit(target)) {
      const net = pool.liquidityNet.get(stop.tick);
      if (net === undefined) return "unknown";
      liquidity += zeroForOne ? -net : net;
      // Impossible in a real pool; the Quoter contract decides.
      if (liquidity < 0n || liquidity > MAX_UINT128) return "unknown";
    }
    [price, amountIn, amountOut] = [target, step.amountInAfter, step.amountOutAfter];
    tick = zeroForOne ? stop.tick - 1 : stop.tick;
  }
  return "limit";
}

/** Returns the next initialized or last tick of the current word (TickBitmap.nextInitializedTickWithinOneWord). */
function findNextTickWithinWord(
  { bitmapWords, tickSpacing }: UniswapV3Pool,
  tick: number,
  zeroForOne: boolean,
): { readonly tick: number; readonly isInitialized: boolean } | undefined {
  // Downwards, the search includes the current tick; upwards, it starts at the next one.
  const first = Math.floor(tick / tickSpacing) + (zeroForOne ? 0 : 1);
  const wordPosition = Math.floor(first / TICKS_PER_WORD);
  const word = bitmapWords.get(wordPosition);
  if (word === undefined) return undefined;
  const bit = first - wordPosition * TICKS_PER_WORD;
  const bitsAhead = zeroForOne ? word & ((2n << BigInt(bit)) - 1n) : (word >> BigInt(bit)) << BigInt(bit);
  const isInitialized = bitsAhead !== 0n;
  const stopBit = isInitialized
    ? zeroForOne
      ? mostSignificantBit(bitsAhead)
      : mostSignificantBit(bitsAhead & -bitsAhead)
    : zeroForOne
      ? 0
      : 255;
  const stop = (wordPosition * TICKS_PER_WORD + stopBit) * tickSpacing;
  return { tick: Math.max(-MAX_TICK, Math.min(MAX_TICK, stop)), isInitialized };
}

/** Returns the index of the highest set bit (BitMath.mostSignificantBit). */
function mostSignificantBit(value: bigint): number {
  return value.toString(2).length - 1;
}

/**
 * Returns the price after an input of token 0, rounded up; less precise where the exact denominator overflows uint256
 * (SqrtPriceMath.getNextSqrtPriceFromAmount0RoundingUp).
 */
function getNextSqrtPriceFromAmount0(price: bigint, liquidity: bigint, amount: bigint): bigint {
  const numerator = liquidity << Q96_RESOLUTION;
  const denominator = numerator + amount * price;
  return denominator <= MAX_UINT256
    ? divRoundingUp(numerator * price, denominator)
    : divRoundingUp(numerator, numerator / price + amount);
}

/** Returns token 0 between two prices, L (1/low - 1/high), floored at each division (SqrtPriceMath.getAmount0Delta). */
function getAmount0Delta(liquidity: bigint, low: bigint, high: bigint): bigint {
  return ((liquidity << Q96_RESOLUTION) * (high - low)) / high / low;
}

function getAmount0DeltaRoundingUp(liquidity: bigint, low: bigint, high: bigint): bigint {
  return divRoundingUp(divRoundingUp((liquidity << Q96_RESOLUTION) * (high - low), high), low);
}

/** Returns token 1 between two prices, L (high - low), floored (SqrtPriceMath.getAmount1Delta). */
function getAmount1Delta(liquidity: bigint, low: bigint, high: bigint): bigint {
  return (liquidity * (high - low)) >> Q96_RESOLUTION;
}

function divRoundingUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

/**
 * Returns the square root of the price at a tick, sqrt(1.0001^tick) times 2^96, like TickMath.getSqrtRatioAtTick: multiplies
 * the factors of the tick's bits, lowest bit first, floored to 128 fraction bits each time; inverts for a tick above 0;
 * rounds up.
 * @param tick -887272 to 887272
 */
export function getSqrtPriceAtTick(tick: number): bigint {
  const distance = Math.abs(tick);
  let price = 1n << 128n;
  for (const [bit, factor] of sqrtPriceFactors.entries()) if ((distance >> bit) & 1) price = (price * factor) >> 128n;
  if (tick > 0) price = MAX_UINT256 / price;
  return (price + (1n << 32n) - 1n) >> 32n;
}

/** Computes the factors by repeated squaring of sqrt(1 / 1.0001), with twice the precision of the result. */
function computeSqrtPriceFactors(count: number): readonly bigint[] {
  const fractionBits = 256n;
  let power = integerSqrt(((1n << (2n * fractionBits)) * 10_000n) / 10_001n);
  return Array.from({ length: count }, () => {
    const rounded = (power + (1n << 127n)) >> 128n;
    power = (power * power) >> fractionBits;
    return rounded;
  });
}

/** Returns the integer part of a square root, by Newton's method from above. */
function integerSqrt(square: bigint): bigint {
  let root = square;
  for (;;) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
