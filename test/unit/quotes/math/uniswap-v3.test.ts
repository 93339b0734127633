import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SwapRevertError } from "../../../../src/quotes/math/stable-swap.js";
import {
  createUniswapSwapCalculator,
  getSqrtPriceAtTick,
  type UniswapV3Pool,
} from "../../../../src/quotes/math/uniswap-v3.js";
import { swapInSteps } from "../../../support/reference/uniswap-v3.js";

describe("getSqrtPriceAtTick", () => {
  test.each([
    [-887_272, 4_295_128_739n],
    [-500_000, 1_101_692_437_043_807_371n],
    [-50_000, 6_504_256_538_020_985_011_912_221_507n],
    [-4096, 64_556_580_881_331_167_221_767_657_720n],
    [-257, 78_216_644_124_655_454_786_675_147_356n],
    [-1, 79_224_201_403_219_477_170_569_942_574n],
    [0, 79_228_162_514_264_337_593_543_950_336n],
    [1, 79_232_123_823_359_799_118_286_999_568n],
    [255, 80_244_737_654_238_127_488_718_973_609n],
    [1000, 83_290_069_058_676_223_003_182_343_270n],
    [65_536, 2_098_478_828_474_011_932_436_660_412_518n],
    [132_822, 60_663_640_243_532_752_732_355_356_147_525n],
    [193_407, 1_254_438_145_716_537_915_468_852_558_246_390n],
    [250_000, 21_246_587_762_933_397_357_449_903_968_194_344n],
    [524_288, 19_190_206_568_837_448_476_620_805_525_116_361_302_670n],
    [738_203, 847_134_979_253_254_120_489_401_328_389_043_031_315_994_541n],
    [887_272, 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_342n],
  ])("returns Uniswap's value at tick %i", (tick, price) => {
    expect(getSqrtPriceAtTick(tick)).toBe(price);
  });

  test("rises by about 1/20,000 from tick to tick", () => {
    fc.assert(
      fc.property(fc.integer({ min: -100_000, max: 100_000 }), (tick) => {
        const [low, high] = [getSqrtPriceAtTick(tick), getSqrtPriceAtTick(tick + 1)];
        expect(Number(high) / Number(low)).toBeCloseTo(Math.sqrt(1.0001), 12);
      }),
    );
  });
});

/** Numbers of every magnitude up to this many bits. */
const magnitude = (bits: number): fc.Arbitrary<bigint> =>
  fc.integer({ min: 0, max: bits }).chain((n) => fc.bigInt({ min: 0n, max: (1n << BigInt(n)) - 1n }));

interface Position {
  readonly lower: number;
  readonly upper: number;
  readonly liquidity: bigint;
}

/**
 * Creates a pool of positions at a tick, of which only some bitmap words are known.
 * @param fraction how far the price is above the tick, in thousandths of the way to the next one
 */
function createPool(
  positions: readonly Position[],
  tick: number,
  fraction: number,
  tickSpacing: number,
  wordPositions: readonly number[],
) {
  const liquidityNet = new Map<number, bigint>();
  let liquidity = 0n;
  for (const position of positions) {
    const [lower, upper] = [position.lower * tickSpacing, position.upper * tickSpacing];
    liquidityNet.set(lower, (liquidityNet.get(lower) ?? 0n) + position.liquidity);
    liquidityNet.set(upper, (liquidityNet.get(upper) ?? 0n) - position.liquidity);
    if (lower <= tick && tick < upper) liquidity += position.liquidity;
  }
  const words = new Map(wordPositions.map((position) => [position, 0n]));
  for (const initializedTick of liquidityNet.keys()) {
    const usable = initializedTick / tickSpacing;
    const word = words.get(usable >> 8);
    if (word !== undefined) words.set(usable >> 8, word | (1n << BigInt(usable & 255)));
  }
  const [low, high] = [getSqrtPriceAtTick(tick), getSqrtPriceAtTick(tick + 1)];
  const sqrtPriceX96 = low + ((high - low) * BigInt(fraction)) / 1000n;
  return { sqrtPriceX96, tick, liquidity, feePips: 100n, tickSpacing, bitmapWords: words, liquidityNet };
}

const anyPosition = (reach: number): fc.Arbitrary<Position> =>
  fc
    .record({
      lower: fc.integer({ min: -reach, max: reach - 1 }),
      width: fc.integer({ min: 1, max: reach }),
      liquidity: magnitude(100).map((liquidity) => liquidity + 1n),
    })
    .map(({ lower, width, liquidity }) => ({ lower, upper: lower + width, liquidity }));

const anyPool: fc.Arbitrary<UniswapV3Pool> = fc
  .record({
    positions: fc.array(anyPosition(700), { maxLength: 12 }),
    tick: fc.integer({ min: -300, max: 300 }),
    fraction: fc.integer({ min: 0, max: 999 }),
    tickSpacing: fc.constantFrom(1, 10, 60),
    feePips: fc.constantFrom(0n, 100n, 500n, 3_000n, 999_999n),
  })
  .map(({ positions, tick, fraction, tickSpacing, feePips }) => ({
    ...createPool(positions, tick, fraction, tickSpacing, [-3, -2, -1, 0, 1, 2]),
    feePips,
  }));

function outcomeOf(swap: () => bigint | undefined): bigint | "reverts" | undefined {
  try {
    return swap();
  } catch (error) {
    if (error instanceof SwapRevertError) return "reverts";
    throw error;
  }
}

describe("createUniswapSwapCalculator", () => {
  test("equals the step-by-step reference implementation for any amount, and at and next to every stop", () => {
    const counts = { known: 0, unknown: 0 };
    fc.assert(
      fc.property(anyPool, fc.boolean(), fc.array(magnitude(140), { minLength: 1 }), (pool, zeroForOne, drawn) => {
        const { amountsInAtStops } = swapInSteps(pool, zeroForOne, 1n << 200n);
        const amounts = [...drawn, ...amountsInAtStops.flatMap((stop) => [stop - 1n, stop, stop + 1n])];
        const swap = createUniswapSwapCalculator(pool, zeroForOne);
        for (const amountIn of amounts.filter((amount) => amount > 0n)) {
          const { amountOut } = swapInSteps(pool, zeroForOne, amountIn);
          expect(
            outcomeOf(() => swap(amountIn)),
            `${amountIn}`,
          ).toBe(amountOut);
          counts[amountOut === undefined ? "unknown" : "known"] += 1;
        }
      }),
      { numRuns: 2_000 },
    );
    expect(counts.known).toBeGreaterThan(10_000);
    expect(counts.unknown).toBeGreaterThan(1_000);
  });

  test("never returns less for a larger input, nor more than the input is worth at the initial price", () => {
    fc.assert(
      fc.property(anyPool, fc.boolean(), magnitude(90), magnitude(90), (pool, zeroForOne, one, other) => {
        const swap = createUniswapSwapCalculator(pool, zeroForOne);
        const [less, more] = one < other ? [one + 1n, other + 1n] : [other + 1n, one + 1n];
        const [outOfLess, outOfMore] = [swap(less), swap(more)];
        if (outOfMore === undefined) return;
        expect(outOfLess).toBeLessThanOrEqual(outOfMore);
        const squared = pool.sqrtPriceX96 ** 2n;
        const worth = zeroForOne ? (more * squared) >> 192n : (more << 192n) / squared;
        expect(outOfMore).toBeLessThanOrEqual(worth);
      }),
      { numRuns: 2_000 },
    );
  });

  test("returns undefined exactly from the first amount that needs an unknown word or tick", () => {
    const whole = createPool(
      [
        { lower: -600, upper: 600, liquidity: 10n ** 15n },
        { lower: -20, upper: 30, liquidity: 10n ** 14n },
      ],
      3,
      0,
      1,
      [-1, 0],
    );
    for (const zeroForOne of [true, false]) {
      const swap = createUniswapSwapCalculator(whole, zeroForOne);
      const last = swapInSteps(whole, zeroForOne, 1n << 200n).amountsInAtStops.at(-1) ?? 0n;
      expect(last).toBeGreaterThan(10n ** 12n);
      expect(swap(last)).toBeTypeOf("bigint");
      expect(swap(last + 1n)).toBeUndefined();

      const edge = zeroForOne ? -20 : 30;
      const forgotten = { ...whole, liquidityNet: new Map([...whole.liquidityNet].filter(([tick]) => tick !== edge)) };
      const partly = createUniswapSwapCalculator(forgotten, zeroForOne);
      const atEdge = swapInSteps(forgotten, zeroForOne, 1n << 200n).amountsInAtStops.at(-1) ?? 0n;
      expect(partly(atEdge)).toBe(swap(atEdge));
      expect(swap(atEdge + 1n)).toBeTypeOf("bigint");
      expect(partly(atEdge + 1n)).toBeUndefined();
    }
    expect(createUniswapSwapCalculator({ ...whole, bitmapWords: new Map() }, true)(1n)).toBeUndefined();
  });

  test("returns undefined beyond a tick at which the liquidity would not be a uint128", () => {
    const MAX_UINT128 = (1n << 128n) - 1n;
    const liquidity = 10n ** 15n;
    for (const zeroForOne of [true, false]) {
      const sign = zeroForOne ? -1 : 1;
      /** Returns whether swaps beyond the tick are known, with this liquidity after it and the old one further on. */
      const areKnownWith = (liquidityAfter: bigint): readonly boolean[] => {
        const positions = [-20, 20, -40, 40].map((lower) => ({ lower, upper: 50, liquidity: 1n }));
        const pool = { ...createPool(positions, 3, 0, 1, [-1, 0]), liquidity };
        const change = BigInt(sign) * (liquidityAfter - liquidity);
        const swapWith = (liquidityNet: ReadonlyMap<number, bigint>) =>
          createUniswapSwapCalculator({ ...pool, liquidityNet }, zeroForOne);
        const swap = swapWith(
          new Map([
            [20 * sign, change],
            [40 * sign, -change],
          ]),
        );
        const upToEdge = { ...pool, liquidityNet: new Map() };
        const atEdge = swapInSteps(upToEdge, zeroForOne, 1n << 200n).amountsInAtStops.at(-1) ?? 0n;
        expect(swap(atEdge)).toBeTypeOf("bigint");
        return [1n, 10n ** 10n].map((more) => swap(atEdge + more) !== undefined);
      };
      for (const possible of [1n, liquidity, MAX_UINT128]) expect(areKnownWith(possible)).toEqual([true, true]);
      for (const impossible of [-1n, MAX_UINT128 + 1n]) expect(areKnownWith(impossible)).toEqual([false, false]);
    }
  });

  test("returns the output of the part that the pool can take when the price reaches its limit", () => {
    // Every word of the bitmap is known, and there is liquidity up to both ends.
    const wordPositions = Array.from({ length: 868 }, (_, index) => index - 434);
    const pool = createPool([{ lower: -110_909, upper: 110_909, liquidity: 10n ** 37n }], 3, 500, 8, wordPositions);
    for (const zeroForOne of [true, false]) {
      const swap = createUniswapSwapCalculator(pool, zeroForOne);
      const { amountOut, amountsInAtStops } = swapInSteps(pool, zeroForOne, 1n << 254n);
      const maxAmountIn = amountsInAtStops.at(-1) ?? 0n;
      expect(maxAmountIn).toBeLessThan(1n << 254n);
      expect(swap(maxAmountIn - 1n)).toBe(swapInSteps(pool, zeroForOne, maxAmountIn - 1n).amountOut);
      for (const amountIn of [maxAmountIn, maxAmountIn + 1n, (1n << 255n) - 1n]) expect(swap(amountIn)).toBe(amountOut);
    }
  });

  test("uses the contract's less precise rounding where the exact denominator overflows uint256", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 400_000, max: 800_000 }),
        magnitude(127),
        magnitude(170),
        (tick, liquidity, drawn) => {
          const pool = createPool([{ lower: -54, upper: 54, liquidity: liquidity + 1n }], tick, 500, 16_384, [-1, 0]);
          const amountIn = drawn + 1n;
          expect(createUniswapSwapCalculator(pool, true)(amountIn)).toBe(swapInSteps(pool, true, amountIn).amountOut);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  test("reverts for 0, for more than int256 holds, and in an empty pool", () => {
    const pool = createPool([{ lower: -54, upper: 54, liquidity: 10n ** 18n }], 3, 500, 16_384, [-1, 0]);
    const empty = createPool([], 3, 500, 16_384, [-1, 0]);
    for (const zeroForOne of [true, false]) {
      const swap = createUniswapSwapCalculator(pool, zeroForOne);
      for (const amountIn of [0n, 1n << 255n, (1n << 256n) - 1n]) expect(() => swap(amountIn)).toThrow(SwapRevertError);
      expect(swap(1_000n)).toBeTypeOf("bigint");
      expect(() => createUniswapSwapCalculator(empty, zeroForOne)(1n)).toThrow(SwapRevertError);
    }
  });

  test("reverts at a price beyond the limit", () => {
    const pool = createPool([], 3, 500, 16_384, [-1, 0]);
    const atEnd = (tick: number): UniswapV3Pool => ({
      ...pool,
      tick,
      sqrtPriceX96: getSqrtPriceAtTick(tick),
      liquidity: 1n,
    });
    expect(() => createUniswapSwapCalculator(atEnd(-887_272), true)(1n)).toThrow(SwapRevertError);
    expect(() => createUniswapSwapCalculator(atEnd(887_272), false)(1n)).toThrow(SwapRevertError);
  });
});
