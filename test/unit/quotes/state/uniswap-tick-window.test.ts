import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { encodeWord } from "../../../../src/chain/abi/abi-encoding.js";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import { createUniswapSwapCalculator, getSqrtPriceAtTick } from "../../../../src/quotes/math/uniswap-v3.js";
import { UniswapTickWindow } from "../../../../src/quotes/state/uniswap-tick-window.js";

const [down, up] = [findUsdcSwapPool("polygon"), findUsdcSwapPool("optimism")];
if (down === undefined || up === undefined) throw new Error("USDC.e is swapped on both");

const encodeInt256 = (value: number | bigint): string => encodeWord(BigInt.asUintN(256, BigInt(value)));

/** Responses of a pool with one position, by call key without the address. */
function createPool(tick: number, lower: number, upper: number, spacing = 1n) {
  const liquidity = 10n ** 15n;
  const getBit = (index: number, position: string): bigint =>
    index >> 8 === Number(position) ? 1n << BigInt(index & 255) : 0n;
  return (key: string): string => {
    const [kind, value = ""] = key.split(" ");
    if (kind === "slot0") return `0x${encodeWord(getSqrtPriceAtTick(tick))}${encodeInt256(tick)}`;
    if (kind === "liquidity") return `0x${encodeWord(lower <= tick && tick < upper ? liquidity : 0n)}`;
    if (kind === "spacing") return `0x${encodeWord(spacing)}`;
    if (kind === "word") return `0x${encodeWord(getBit(lower, value) | getBit(upper, value))}`;
    const net = { [lower]: liquidity, [upper]: -liquidity }[value] ?? 0n;
    return `0x${encodeWord(liquidity)}${encodeInt256(net)}`;
  };
}

const abi = new utils.Interface([
  ...["function slot0()", "function liquidity()", "function tickSpacing()"],
  ...["function tickBitmap(int16 position)", "function ticks(int24 tick)"],
]);
const NAMES: Readonly<Record<string, string>> = { tickSpacing: "spacing", tickBitmap: "word", ticks: "tick" };

type PlannedRead = ReturnType<UniswapTickWindow["plan"]>;

/** Returns what is called, by the names of createPool. */
const getCallKeys = ({ calls }: PlannedRead): string[] =>
  calls.map(({ data }) => {
    const { name, args } = abi.parseTransaction({ data });
    return [NAMES[name] ?? name, ...args].join(" ");
  });
const decodePool = (planned: PlannedRead, pool: (key: string) => string | undefined) =>
  planned.decode(getCallKeys(planned).map(pool));
function decode(planned: PlannedRead, pool: (key: string) => string | undefined) {
  const state = decodePool(planned, pool);
  return state && createUniswapSwapCalculator(state, state.zeroForOne);
}

describe("UniswapTickWindow", () => {
  test("calls the pool's functions as ethers encodes them, below 0 too", () => {
    const to = down.address;
    const window = new UniswapTickWindow(down);
    const first = window.plan();
    expect(first.calls).toEqual([
      { to, data: abi.encodeFunctionData("slot0") },
      { to, data: abi.encodeFunctionData("liquidity") },
      { to, data: abi.encodeFunctionData("tickSpacing") },
      ...[1, 0, -1, -2].map((position) => ({ to, data: abi.encodeFunctionData("tickBitmap", [position]) })),
    ]);
    decode(first, createPool(0, -90, 5));
    const ticks = window.plan().calls.slice(7);
    expect(ticks).toEqual([5, -90].map((tick) => ({ to, data: abi.encodeFunctionData("ticks", [tick]) })));
  });

  test.each([
    ["downwards", down, ["word 1", "word 0", "word -1", "word -2"], ["tick 5", "tick -90"], -90],
    ["upwards", up, ["word -2", "word -1", "word 0", "word 1"], ["tick -5", "tick 90"], 90],
  ] as const)(
    "first reads around a price of 1, %s, then the ticks that it found",
    (_, usdcPool, words, ticks, edge) => {
      const window = new UniswapTickWindow(usdcPool);
      const pool = edge < 0 ? createPool(0, -90, 5) : createPool(0, -5, 90);
      const first = window.plan();
      expect(getCallKeys(first)).toEqual(["slot0", "liquidity", "spacing", ...words]);
      const swap = decode(first, pool);
      expect(swap?.(10n ** 12n)).toBeTypeOf("bigint");
      expect(swap?.(10n ** 13n)).toBeUndefined();
      const second = window.plan();
      expect(getCallKeys(second).filter((key) => key.startsWith("tick"))).toEqual(ticks);
      // Beyond its only position, the known words contain no liquidity.
      expect(decode(second, pool)?.(10n ** 13n)).toBeUndefined();
    },
  );

  test("follows the price, and returns no swap while the price is outside the window", () => {
    const window = new UniswapTickWindow(down);
    const pool = createPool(-3000, -3010, -2000);
    expect(decode(window.plan(), pool)?.(1n)).toBeUndefined();
    const next = window.plan();
    expect(getCallKeys(next)).toEqual(expect.arrayContaining(["word -11", "word -12", "word -13", "word -14"]));
    expect(decode(next, pool)?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test("continues where another process has read", () => {
    const [reader, follower] = [new UniswapTickWindow(down), new UniswapTickWindow(down)];
    const pool = createPool(-3000, -3010, -2000);
    const state = decodePool(reader.plan(), pool);
    if (state === undefined) throw new Error("the pool is valid");
    follower.follow(state);
    expect(getCallKeys(follower.plan())).toEqual(getCallKeys(reader.plan()));
  });

  test("reads at most 64 ticks", () => {
    const window = new UniswapTickWindow(up);
    const pool = createPool(0, -5, 90);
    decode(window.plan(), (key) => (key.startsWith("word") ? `0x${"f".repeat(64)}` : pool(key)));
    const ticks = getCallKeys(window.plan()).filter((key) => key.startsWith("tick"));
    expect(ticks).toHaveLength(64);
    expect(ticks.slice(0, 10)).toEqual([-8, -7, -6, -5, -4, -3, -2, -1, 0, 1].map((tick) => `tick ${tick}`));
  });

  test("reads the ticks nearest to the price in the order of a swap, in multiples of the spacing", () => {
    const window = new UniswapTickWindow(down);
    const pool = createPool(-3_005, -4_000, 0, 10n);
    decode(window.plan(), (key) => (key.startsWith("word") ? `0x${"f".repeat(64)}` : pool(key)));
    const ticks = getCallKeys(window.plan()).filter((key) => key.startsWith("tick"));
    // The price is between -3010 and -3000; eight ticks behind it are read too.
    expect(ticks).toEqual(Array.from({ length: 64 }, (__, index) => `tick ${-2_930 - 10 * index}`));
  });

  test("swaps across ticks whose liquidity it has read", () => {
    const window = new UniswapTickWindow(down);
    const single = createPool(0, -90, 5);
    // Half of the liquidity ends at tick -40.
    const half = `0x${encodeWord(10n ** 15n)}${encodeInt256(5n * 10n ** 14n)}`;
    const bits = `0x${encodeWord((1n << BigInt(256 - 90)) | (1n << BigInt(256 - 40)))}`;
    const pool = (key: string): string => {
      if (key === "word -1") return bits;
      return key === "tick -40" || key === "tick -90" ? half : single(key);
    };
    const amountIn = 2_500_000_000_000n;
    expect(decode(window.plan(), pool)?.(amountIn)).toBeUndefined();
    const amountOut = decode(window.plan(), pool)?.(amountIn);
    // Fee 0.01 %, price impact between those of 40 and of 90 ticks.
    expect(amountOut).toBeGreaterThan((amountIn * 9_945n) / 10_000n);
    expect(amountOut).toBeLessThan((amountIn * 9_980n) / 10_000n);
  });

  test("knows a price exactly at the next tick, where a swap downwards ends", () => {
    const pool = createPool(0, -90, 90);
    const slot0 = `0x${encodeWord(getSqrtPriceAtTick(1))}${encodeInt256(0)}`;
    const swap = decode(new UniswapTickWindow(down).plan(), (key) => (key === "slot0" ? slot0 : pool(key)));
    expect(swap?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test("decodes a read by its own calls, even if another read has moved the window", () => {
    const window = new UniswapTickWindow(down);
    const early = window.plan();
    decode(window.plan(), createPool(-3000, -3010, -2000));
    expect(decode(early, createPool(0, -90, 5))?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test.each([
    ["slot0", undefined],
    ["slot0", `0x${encodeWord(0n)}${encodeWord(0n)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(0))}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(0) - 1n)}${encodeInt256(0)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(1) + 1n)}${encodeInt256(0)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(0))}${encodeInt256(-887_273)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(887_272))}${encodeInt256(887_272)}`],
    ["slot0", `0x${"f".repeat(128)}`],
    ["liquidity", `0x${encodeWord(1n << 128n)}`],
    ["spacing", `0x${encodeWord(0n)}`],
    ["spacing", undefined],
    ["liquidity", "0x"],
  ])("returns no swap when %s is %s", (brokenKey, response) => {
    const pool = createPool(0, -90, 90);
    expect(
      decode(new UniswapTickWindow(down).plan(), (key) => (key === brokenKey ? response : pool(key))),
    ).toBeUndefined();
  });
});
