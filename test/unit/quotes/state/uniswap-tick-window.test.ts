import { describe, expect, test } from "vitest";
import { encodeWord } from "../../../../src/chain/abi/abi-encoding.js";
import { findUsdcSwapPool } from "../../../../src/hop/usdc-swap-pools.js";
import { getSqrtPriceAtTick } from "../../../../src/quotes/math/uniswap-v3.js";
import { createUniswapTickWindow, type TickWindowRead } from "../../../../src/quotes/state/uniswap-tick-window.js";

const [down, up] = [findUsdcSwapPool("polygon"), findUsdcSwapPool("optimism")];
if (down === undefined || up === undefined) throw new Error("USDC.e is swapped on both");

const signed = (value: number | bigint): string => encodeWord(BigInt.asUintN(256, BigInt(value)));

/** What a pool with one position says, by the end of a view's name. */
function poolOf(tick: number, lower: number, upper: number) {
  const liquidity = 10n ** 15n;
  const bitOf = (each: number, place: string): bigint => (each >> 8 === Number(place) ? 1n << BigInt(each & 255) : 0n);
  return (what: string): string => {
    const [kind, value = ""] = what.split(" ");
    if (kind === "slot0") return `0x${encodeWord(getSqrtPriceAtTick(tick))}${signed(tick)}`;
    if (kind === "liquidity") return `0x${encodeWord(lower <= tick && tick < upper ? liquidity : 0n)}`;
    if (kind === "spacing") return `0x${encodeWord(1n)}`;
    if (kind === "word") return `0x${encodeWord(bitOf(lower, value) | bitOf(upper, value))}`;
    const net = { [lower]: liquidity, [upper]: -liquidity }[value] ?? 0n;
    return `0x${encodeWord(liquidity)}${signed(net)}`;
  };
}

/** Names without the address before them. */
const asked = ({ calls }: TickWindowRead): string[] =>
  [...calls.keys()].map((name) => name.slice(name.indexOf(" ") + 1));
const read = (plan: TickWindowRead, pool: (what: string) => string | undefined) =>
  plan.decodeSwap((name) => pool(name.slice(name.indexOf(" ") + 1)));

describe("the window of a pool", () => {
  test.each([
    ["downwards", down, ["word 1", "word 0", "word -1", "word -2"], ["tick 5", "tick -90"], -90],
    ["upwards", up, ["word -2", "word -1", "word 0", "word 1"], ["tick -5", "tick 90"], 90],
  ] as const)(
    "is first asked for near 1, %s, and then for the ticks ahead that were seen",
    (_, swap, words, ticks, edge) => {
      const window = createUniswapTickWindow(swap);
      const pool = edge < 0 ? poolOf(0, -90, 5) : poolOf(0, -5, 90);
      const first = window.planRead();
      expect(asked(first)).toEqual(["slot0", "liquidity", "spacing", ...words]);
      const partly = read(first, pool);
      expect(partly?.(10n ** 12n)).toBeTypeOf("bigint");
      expect(partly?.(10n ** 13n)).toBeUndefined();
      const second = window.planRead();
      expect(asked(second).filter((what) => what.startsWith("tick"))).toEqual(ticks);
      // Beyond its only position nothing is there to be had, as far as words are known.
      expect(read(second, pool)?.(10n ** 13n)).toBeUndefined();
    },
  );

  test("follows the price, and tells nothing while it is elsewhere", () => {
    const window = createUniswapTickWindow(down);
    const pool = poolOf(-3000, -3010, -2000);
    expect(read(window.planRead(), pool)?.(1n)).toBeUndefined();
    const next = window.planRead();
    expect(asked(next)).toEqual(expect.arrayContaining(["word -11", "word -12", "word -13", "word -14"]));
    expect(read(next, pool)?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test("asks for few ticks, however many there are", () => {
    const window = createUniswapTickWindow(up);
    const pool = poolOf(0, -5, 90);
    read(window.planRead(), (what) => (what.startsWith("word") ? `0x${"f".repeat(64)}` : pool(what)));
    const ticks = asked(window.planRead()).filter((what) => what.startsWith("tick"));
    expect(ticks).toHaveLength(64);
    expect(ticks.slice(0, 10)).toEqual([-8, -7, -6, -5, -4, -3, -2, -1, 0, 1].map((tick) => `tick ${tick}`));
  });

  test("reads each answer as what was asked for it, whatever was learnt meanwhile", () => {
    const window = createUniswapTickWindow(down);
    const early = window.planRead();
    read(window.planRead(), poolOf(-3000, -3010, -2000));
    expect(read(early, poolOf(0, -90, 5))?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test.each([
    ["slot0", undefined],
    ["slot0", `0x${encodeWord(0n)}${encodeWord(0n)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(0))}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(0) - 1n)}${signed(0)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(1) + 1n)}${signed(0)}`],
    ["slot0", `0x${encodeWord(getSqrtPriceAtTick(0))}${signed(-887_273)}`],
    ["slot0", `0x${"f".repeat(128)}`],
    ["liquidity", `0x${encodeWord(1n << 128n)}`],
    ["spacing", `0x${encodeWord(0n)}`],
    ["spacing", undefined],
    ["liquidity", "0x"],
  ])("tells nothing when its %s is %s", (broken, answer) => {
    const pool = poolOf(0, -90, 90);
    expect(
      read(createUniswapTickWindow(down).planRead(), (what) => (what === broken ? answer : pool(what))),
    ).toBeUndefined();
  });
});
