import { decodeUintAt, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { UsdcSwapPool } from "../../hop/cctp.js";
import { getSqrtPriceAtTick, MAX_TICK, type UniswapV3Pool } from "../math/uniswap-v3.js";
import type { ContractRead } from "./read-set.js";

/** The known part of a pool that swaps USDC.e, as plain data. */
export interface SwapPoolState extends UniswapV3Pool {
  /** Whether USDC.e is token 0. */
  readonly zeroForOne: boolean;
}

/** Bitmap words to read ahead of the price, and behind it, where it may be one block later. */
const WORDS_BEHIND = 1;
const WORDS_AHEAD = 2;
const TICKS_PER_WORD = 256;
/** Maximum number of ticks to read, and how far behind the price (in usable ticks), where it may soon return. */
const MAX_TICKS = 64;
const TICKS_BEHIND = 8;

const MAX_TICK_SPACING = 16_384n;
const slot0Selector = toFunctionSelector("slot0()");
const liquiditySelector = toFunctionSelector("liquidity()");
const tickSpacingSelector = toFunctionSelector("tickSpacing()");
const tickBitmapSelector = toFunctionSelector("tickBitmap(int16)");
const ticksSelector = toFunctionSelector("ticks(int24)");
/** Index of liquidityNet in the result of `ticks`. */
const LIQUIDITY_NET_WORD_INDEX = 1;

/**
 * The part of a Uniswap v3 pool around its price, which suffices to swap usual amounts. The first read assumes a price near
 * 1 and reads no ticks, so it only covers swaps up to the next tick. Later reads cover everything, in one block; if the
 * pool has changed since the previous read, more is unknown until the next one. Only the choice of calls is a guess, never
 * a result.
 */
export class UniswapTickWindow implements ContractRead<SwapPoolState> {
  readonly key: string;
  /** Uniswap's Quoter contract can be asked instead. */
  readonly isOptional = true;
  readonly #feePips: bigint;
  readonly #zeroForOne: boolean;
  readonly #direction: 1 | -1;
  #centerWord: number;
  #ticks: readonly number[] = [];

  constructor({ address, feePips, bridgedUsdc, nativeUsdc }: UsdcSwapPool) {
    this.key = address;
    this.#feePips = feePips;
    this.#zeroForOne = BigInt(bridgedUsdc) < BigInt(nativeUsdc);
    this.#direction = this.#zeroForOne ? -1 : 1;
    this.#centerWord = this.#zeroForOne ? 0 : -1;
  }

  /** Plans the next read. Each decoded read tells the next one where the price is and which ticks exist. */
  plan(): ReturnType<ContractRead<SwapPoolState>["plan"]> {
    const [ticks, centerWord] = [this.#ticks, this.#centerWord];
    const wordPositions = Array.from(
      { length: WORDS_BEHIND + 1 + WORDS_AHEAD },
      (_, index) => centerWord + this.#direction * (index - WORDS_BEHIND),
    );
    const data = [
      slot0Selector,
      liquiditySelector,
      tickSpacingSelector,
      ...wordPositions.map((position) => tickBitmapSelector + encodeInt256(position)),
      ...ticks.map((tick) => ticksSelector + encodeInt256(tick)),
    ];
    return {
      calls: data.map((calldata) => ({ to: this.key, data: calldata })),
      decode: (returnData) => {
        const state = this.#decode(wordPositions, ticks, returnData);
        if (state !== undefined) this.follow(state);
        return state;
      },
    };
  }

  /** Centers the next read on the price of a state, which this process or another one has read. */
  follow({ tick, tickSpacing, bitmapWords }: SwapPoolState): void {
    const direction = this.#direction;
    const currentTick = Math.floor(tick / tickSpacing);
    this.#centerWord = Math.floor(currentTick / TICKS_PER_WORD);
    this.#ticks = findInitializedTicks(bitmapWords)
      .filter((usableTick) => (usableTick - currentTick) * direction >= -TICKS_BEHIND)
      .sort((a, b) => (a - b) * direction)
      .slice(0, MAX_TICKS)
      .map((usableTick) => usableTick * tickSpacing);
  }

  #decode(
    wordPositions: readonly number[],
    ticks: readonly number[],
    [slot0, liquidityData, spacingData, ...others]: readonly (string | undefined)[],
  ): SwapPoolState | undefined {
    const words = others.slice(0, wordPositions.length);
    const tickData = others.slice(wordPositions.length);
    const tick = ifInRange(BigInt(-MAX_TICK), decodeIntAt(slot0, 1), BigInt(MAX_TICK - 1));
    const liquidity = ifInRange(0n, decodeUintAt(liquidityData ?? "0x", 0), (1n << 128n) - 1n);
    const spacing = ifInRange(1n, decodeIntAt(spacingData, 0), MAX_TICK_SPACING);
    if (tick === undefined || liquidity === undefined || spacing === undefined) return undefined;
    const [lowest, highest] = [getSqrtPriceAtTick(Number(tick)), getSqrtPriceAtTick(Number(tick) + 1)];
    const sqrtPriceX96 = ifInRange(lowest, decodeUintAt(slot0 ?? "0x", 0), highest);
    if (sqrtPriceX96 === undefined) return undefined;
    return {
      zeroForOne: this.#zeroForOne,
      sqrtPriceX96,
      tick: Number(tick),
      liquidity,
      feePips: this.#feePips,
      tickSpacing: Number(spacing),
      bitmapWords: collectDefined(
        wordPositions,
        words.map((data) => decodeUintAt(data ?? "0x", 0)),
      ),
      liquidityNet: collectDefined(
        ticks,
        tickData.map((data) => decodeIntAt(data, LIQUIDITY_NET_WORD_INDEX)),
      ),
    };
  }
}

/** Returns the initialized ticks in multiples of the spacing. */
function findInitializedTicks(words: ReadonlyMap<number, bigint>): number[] {
  return [...words].flatMap(([position, bits]) =>
    Array.from({ length: TICKS_PER_WORD }, (_, bit) => bit)
      .filter((bit) => (bits >> BigInt(bit)) & 1n)
      .map((bit) => position * TICKS_PER_WORD + bit),
  );
}

/** Returns the values by the keys at the same places, without those that are undefined. */
function collectDefined(keys: readonly number[], values: readonly (bigint | undefined)[]): ReadonlyMap<number, bigint> {
  return new Map(
    keys.flatMap((key, index) => {
      const value = values[index];
      return value === undefined ? [] : [[key, value] as const];
    }),
  );
}

/** Decodes the n-th word of a result as a signed integer; undefined past the end. */
function decodeIntAt(data: string | undefined, index: number): bigint | undefined {
  const value = decodeUintAt(data ?? "0x", index);
  return value === undefined ? undefined : BigInt.asIntN(256, value);
}

function ifInRange(min: bigint, value: bigint | undefined, max: bigint): bigint | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

/** Encodes a signed number as a word of calldata. */
function encodeInt256(value: number): string {
  return encodeWord(BigInt.asUintN(256, BigInt(value)));
}
