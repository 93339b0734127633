import { decodeUintAt, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import type { UsdcSwapPool } from "../../hop/usdc-swap-pools.js";
import {
  createUniswapSwapCalculator,
  getSqrtPriceAtTick,
  MAX_TICK,
  type UniswapSwapCalculator,
} from "../math/uniswap-v3.js";

/** The part of a pool of Uniswap v3 that usual amounts need: what lies around its price. */
export interface UniswapTickWindow {
  /** What is to be read now. Where the price is, and which ticks there are, is learnt from one reading for the next. */
  planRead(): TickWindowRead;
}

export interface TickWindowRead {
  /** To be read in one block, by names. */
  readonly calls: ReadonlyMap<string, ContractCall>;
  /**
   * @param answerOf what the view of a name returned, 0x-prefixed hex; undefined where it reverted
   * @returns undefined for what no open pool could say
   */
  decodeSwap(answerOf: (name: string) => string | undefined): UniswapSwapCalculator | undefined;
}

/** Words of the bitmap that are read behind the price, where it may be a block later, and ahead of it. */
const WORDS_BEHIND = 1;
const WORDS_AHEAD = 2;
const TICKS_PER_WORD = 256;
/** Most ticks that are read; of those behind the price, only what it may soon fall back to, in usable ticks. */
const MAX_TICKS = 64;
const TICKS_BEHIND = 8;

const MAX_TICK_SPACING = 16_384n;
const slot0Selector = toFunctionSelector("slot0()");
const liquiditySelector = toFunctionSelector("liquidity()");
const tickSpacingSelector = toFunctionSelector("tickSpacing()");
const tickBitmapSelector = toFunctionSelector("tickBitmap(int16)");
const ticksSelector = toFunctionSelector("ticks(int24)");
/** Place of liquidityNet in what `ticks` returns. */
const LIQUIDITY_NET_WORD_INDEX = 1;

/**
 * At the first reading the pair is taken to stand near 1 and no tick is known, so that only swaps up to the next tick can
 * be told from it; from the second on everything is read at once, in one block. Where a pool has changed in between, more
 * is unknown until the next reading. Nothing is ever guessed but what to ask.
 */
export function createUniswapTickWindow({
  address: to,
  bridgedUsdc,
  nativeUsdc,
  feePips,
}: UsdcSwapPool): UniswapTickWindow {
  const zeroForOne = BigInt(bridgedUsdc) < BigInt(nativeUsdc);
  const ahead = zeroForOne ? -1 : 1;
  let nextCenter = zeroForOne ? 0 : -1;
  let nextTicks: readonly number[] = [];

  function planRead(): TickWindowRead {
    const [center, planned] = [nextCenter, nextTicks];
    const places = Array.from(
      { length: WORDS_BEHIND + 1 + WORDS_AHEAD },
      (_, index) => center + ahead * (index - WORDS_BEHIND),
    );
    const calls = new Map<string, ContractCall>([
      [`${to} slot0`, { to, data: slot0Selector }],
      [`${to} liquidity`, { to, data: liquiditySelector }],
      [`${to} spacing`, { to, data: tickSpacingSelector }],
      ...places.map(
        (place) => [`${to} word ${place}`, { to, data: tickBitmapSelector + encodeInt256(place) }] as const,
      ),
      ...planned.map((tick) => [`${to} tick ${tick}`, { to, data: ticksSelector + encodeInt256(tick) }] as const),
    ]);
    return {
      calls,
      decodeSwap(answerOf) {
        const uint = (name: string, index = 0): bigint | undefined =>
          decodeUintAt(answerOf(`${to} ${name}`) ?? "0x", index);
        const int = (name: string, index: number): bigint | undefined => {
          const value = uint(name, index);
          return value === undefined ? undefined : BigInt.asIntN(256, value);
        };
        const tick = ifInRange(BigInt(-MAX_TICK), int("slot0", 1), BigInt(MAX_TICK - 1));
        const atPrice = ifInRange(0n, uint("liquidity"), (1n << 128n) - 1n);
        const spacing = ifInRange(1n, int("spacing", 0), MAX_TICK_SPACING);
        if (tick === undefined || atPrice === undefined || spacing === undefined) return undefined;
        const sqrtPriceX96 = ifInRange(
          getSqrtPriceAtTick(Number(tick)),
          uint("slot0"),
          getSqrtPriceAtTick(Number(tick) + 1),
        );
        if (sqrtPriceX96 === undefined) return undefined;
        const pool = {
          sqrtPriceX96,
          tick: Number(tick),
          liquidity: atPrice,
          feePips,
          tickSpacing: Number(spacing),
          bitmapWords: collectDefined(places, (place) => uint(`word ${place}`)),
          liquidityNet: collectDefined(planned, (each) => int(`tick ${each}`, LIQUIDITY_NET_WORD_INDEX)),
        };
        const usable = Math.floor(pool.tick / pool.tickSpacing);
        nextCenter = Math.floor(usable / TICKS_PER_WORD);
        nextTicks = findInitializedTicks(pool.bitmapWords)
          .filter((each) => (each - usable) * ahead >= -TICKS_BEHIND)
          .sort((a, b) => (a - b) * ahead)
          .slice(0, MAX_TICKS)
          .map((each) => each * pool.tickSpacing);
        return createUniswapSwapCalculator(pool, zeroForOne);
      },
    };
  }

  return { planRead };
}

/** Initialised ticks in multiples of the spacing. */
function findInitializedTicks(words: ReadonlyMap<number, bigint>): number[] {
  return [...words].flatMap(([place, bits]) =>
    Array.from({ length: TICKS_PER_WORD }, (_, bit) => bit)
      .filter((bit) => (bits >> BigInt(bit)) & 1n)
      .map((bit) => place * TICKS_PER_WORD + bit),
  );
}

/** Values of the keys that have one. */
function collectDefined(
  keys: readonly number[],
  answerFor: (key: number) => bigint | undefined,
): ReadonlyMap<number, bigint> {
  const pairs = keys.map((key) => [key, answerFor(key)] as const);
  return new Map(pairs.filter((pair): pair is readonly [number, bigint] => pair[1] !== undefined));
}

function ifInRange(least: bigint, value: bigint | undefined, most: bigint): bigint | undefined {
  return value !== undefined && value >= least && value <= most ? value : undefined;
}

/** A signed number as a word of calldata. */
function encodeInt256(value: number): string {
  return encodeWord(BigInt.asUintN(256, BigInt(value)));
}
