import { decodeUintAt, encodeWord, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import type { ContractCall } from "../../chain/abi/multicall.js";
import type { UsdcSwapPool } from "../../hop/cctp.js";
import { getSqrtPriceAtTick, MAX_TICK, type UniswapV3Pool } from "../math/uniswap-v3.js";

export interface TickWindowRead {
  /** Calls to read in one block, by key. */
  readonly calls: ReadonlyMap<string, ContractCall>;
  /**
   * Decodes the state, and centers the next read on its price.
   * @param getReturnData return data of a call as 0x-prefixed hex; undefined if it reverted
   * @returns undefined for responses that an initialized pool cannot return
   */
  decodePool(getReturnData: (key: string) => string | undefined): SwapPoolState | undefined;
}

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
export class UniswapTickWindow {
  readonly pool: UsdcSwapPool;
  readonly #zeroForOne: boolean;
  readonly #direction: 1 | -1;
  #centerWord: number;
  #ticks: readonly number[] = [];

  constructor(pool: UsdcSwapPool) {
    this.pool = pool;
    this.#zeroForOne = BigInt(pool.bridgedUsdc) < BigInt(pool.nativeUsdc);
    this.#direction = this.#zeroForOne ? -1 : 1;
    this.#centerWord = this.#zeroForOne ? 0 : -1;
  }

  /** Plans the next read. Each decoded read tells the next one where the price is and which ticks exist. */
  planRead(): TickWindowRead {
    const { address: to } = this.pool;
    const [ticks, centerWord] = [this.#ticks, this.#centerWord];
    const wordPositions = Array.from(
      { length: WORDS_BEHIND + 1 + WORDS_AHEAD },
      (_, index) => centerWord + this.#direction * (index - WORDS_BEHIND),
    );
    const calls = new Map<string, ContractCall>([
      [`${to} slot0`, { to, data: slot0Selector }],
      [`${to} liquidity`, { to, data: liquiditySelector }],
      [`${to} spacing`, { to, data: tickSpacingSelector }],
      ...wordPositions.map(
        (position) => [`${to} word ${position}`, { to, data: tickBitmapSelector + encodeInt256(position) }] as const,
      ),
      ...ticks.map((tick) => [`${to} tick ${tick}`, { to, data: ticksSelector + encodeInt256(tick) }] as const),
    ]);
    const decodePool: TickWindowRead["decodePool"] = (getReturnData) => {
      const getPoolData = (key: string) => getReturnData(`${to} ${key}`) ?? "0x";
      const state = this.#decode(wordPositions, ticks, getPoolData);
      if (state !== undefined) this.follow(state);
      return state;
    };
    return { calls, decodePool };
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
    getReturnData: (key: string) => string,
  ): SwapPoolState | undefined {
    const findUint = (key: string, wordIndex = 0): bigint | undefined => decodeUintAt(getReturnData(key), wordIndex);
    const findInt = (key: string, wordIndex: number): bigint | undefined => {
      const value = findUint(key, wordIndex);
      return value === undefined ? undefined : BigInt.asIntN(256, value);
    };
    const tick = ifInRange(BigInt(-MAX_TICK), findInt("slot0", 1), BigInt(MAX_TICK - 1));
    const liquidity = ifInRange(0n, findUint("liquidity"), (1n << 128n) - 1n);
    const spacing = ifInRange(1n, findInt("spacing", 0), MAX_TICK_SPACING);
    if (tick === undefined || liquidity === undefined || spacing === undefined) return undefined;
    const [lowest, highest] = [getSqrtPriceAtTick(Number(tick)), getSqrtPriceAtTick(Number(tick) + 1)];
    const sqrtPriceX96 = ifInRange(lowest, findUint("slot0"), highest);
    if (sqrtPriceX96 === undefined) return undefined;
    return {
      zeroForOne: this.#zeroForOne,
      sqrtPriceX96,
      tick: Number(tick),
      liquidity,
      feePips: this.pool.feePips,
      tickSpacing: Number(spacing),
      bitmapWords: collectDefined(wordPositions, (position) => findUint(`word ${position}`)),
      liquidityNet: collectDefined(ticks, (index) => findInt(`tick ${index}`, LIQUIDITY_NET_WORD_INDEX)),
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

/** Returns the values of the keys that have one. */
function collectDefined(
  keys: readonly number[],
  findValue: (key: number) => bigint | undefined,
): ReadonlyMap<number, bigint> {
  const pairs = keys.map((key) => [key, findValue(key)] as const);
  return new Map(pairs.filter((pair): pair is readonly [number, bigint] => pair[1] !== undefined));
}

function ifInRange(min: bigint, value: bigint | undefined, max: bigint): bigint | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

/** Encodes a signed number as a word of calldata. */
function encodeInt256(value: number): string {
  return encodeWord(BigInt.asUintN(256, BigInt(value)));
}
