import { selectorOf, uintAt, word } from "../../chain/abi/abi-encoding.js";
import type { View } from "../../chain/abi/multicall.js";
import type { UsdcSwap } from "../../hop/usdc-swap-pools.js";
import { maxTick, prepareUniswapSwap, sqrtPriceAt, type UniswapSwap } from "../math/uniswap-v3.js";

/** The part of a pool of Uniswap v3 that usual amounts need: what lies around its price. */
export interface UniswapWindow {
  /** What is to be read now. Where the price is, and which ticks there are, is learnt from one reading for the next. */
  plan(): WindowPlan;
}

export interface WindowPlan {
  /** To be read in one block, by names. */
  readonly views: ReadonlyMap<string, View>;
  /**
   * @param answerOf what the view of a name returned, 0x-prefixed hex; undefined where it reverted
   * @returns undefined for what no open pool could say
   */
  swapFrom(answerOf: (name: string) => string | undefined): UniswapSwap | undefined;
}

/** Words of the bitmap that are read behind the price, where it may be a block later, and ahead of it. */
const wordsBehind = 1;
const wordsAhead = 2;
const wordTicks = 256;
/** Most ticks that are read; of those behind the price, only what it may soon fall back to, in usable ticks. */
const mostTicks = 64;
const ticksBehind = 8;

const maxTickSpacing = 16_384n;
const slot0 = selectorOf("slot0()");
const liquidity = selectorOf("liquidity()");
const tickSpacing = selectorOf("tickSpacing()");
const tickBitmap = selectorOf("tickBitmap(int16)");
const ticks = selectorOf("ticks(int24)");
/** Place of liquidityNet in what `ticks` returns. */
const liquidityNetWord = 1;

/**
 * At the first reading the pair is taken to stand near 1 and no tick is known, so that only swaps up to the next tick can
 * be told from it; from the second on everything is read at once, in one block. Where a pool has changed in between, more
 * is unknown until the next reading. Nothing is ever guessed but what to ask.
 */
export function createUniswapWindow({ pool: to, bridged, native, fee }: UsdcSwap): UniswapWindow {
  const zeroForOne = BigInt(bridged) < BigInt(native);
  const ahead = zeroForOne ? -1 : 1;
  let nextCenter = zeroForOne ? 0 : -1;
  let nextTicks: readonly number[] = [];

  function plan(): WindowPlan {
    const [center, planned] = [nextCenter, nextTicks];
    const places = Array.from(
      { length: wordsBehind + 1 + wordsAhead },
      (_, index) => center + ahead * (index - wordsBehind),
    );
    const views = new Map<string, View>([
      [`${to} slot0`, { to, data: slot0 }],
      [`${to} liquidity`, { to, data: liquidity }],
      [`${to} spacing`, { to, data: tickSpacing }],
      ...places.map((place) => [`${to} word ${place}`, { to, data: tickBitmap + signedWord(place) }] as const),
      ...planned.map((tick) => [`${to} tick ${tick}`, { to, data: ticks + signedWord(tick) }] as const),
    ]);
    return {
      views,
      swapFrom(answerOf) {
        const uint = (name: string, index = 0): bigint | undefined => uintAt(answerOf(`${to} ${name}`) ?? "0x", index);
        const int = (name: string, index: number): bigint | undefined => {
          const value = uint(name, index);
          return value === undefined ? undefined : BigInt.asIntN(256, value);
        };
        const tick = between(BigInt(-maxTick), int("slot0", 1), BigInt(maxTick - 1));
        const atPrice = between(0n, uint("liquidity"), (1n << 128n) - 1n);
        const spacing = between(1n, int("spacing", 0), maxTickSpacing);
        if (tick === undefined || atPrice === undefined || spacing === undefined) return undefined;
        const sqrtPriceX96 = between(sqrtPriceAt(Number(tick)), uint("slot0"), sqrtPriceAt(Number(tick) + 1));
        if (sqrtPriceX96 === undefined) return undefined;
        const pool = {
          sqrtPriceX96,
          tick: Number(tick),
          liquidity: atPrice,
          fee,
          tickSpacing: Number(spacing),
          words: mapOf(places, (place) => uint(`word ${place}`)),
          liquidityNet: mapOf(planned, (each) => int(`tick ${each}`, liquidityNetWord)),
        };
        const usable = Math.floor(pool.tick / pool.tickSpacing);
        nextCenter = Math.floor(usable / wordTicks);
        nextTicks = initialisedIn(pool.words)
          .filter((each) => (each - usable) * ahead >= -ticksBehind)
          .sort((a, b) => (a - b) * ahead)
          .slice(0, mostTicks)
          .map((each) => each * pool.tickSpacing);
        return prepareUniswapSwap(pool, zeroForOne);
      },
    };
  }

  return { plan };
}

/** Initialised ticks in multiples of the spacing. */
function initialisedIn(words: ReadonlyMap<number, bigint>): number[] {
  return [...words].flatMap(([place, bits]) =>
    Array.from({ length: wordTicks }, (_, bit) => bit)
      .filter((bit) => (bits >> BigInt(bit)) & 1n)
      .map((bit) => place * wordTicks + bit),
  );
}

/** Values of the keys that have one. */
function mapOf(keys: readonly number[], answerFor: (key: number) => bigint | undefined): ReadonlyMap<number, bigint> {
  const pairs = keys.map((key) => [key, answerFor(key)] as const);
  return new Map(pairs.filter((pair): pair is readonly [number, bigint] => pair[1] !== undefined));
}

function between(least: bigint, value: bigint | undefined, most: bigint): bigint | undefined {
  return value !== undefined && value >= least && value <= most ? value : undefined;
}

/** A signed number as a word of calldata. */
function signedWord(value: number): string {
  return word(BigInt.asUintN(256, BigInt(value)));
}
