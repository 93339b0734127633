import { describe, expect, test } from "vitest";
import { word } from "../../../../src/chain/abi/abi-encoding.js";
import { usdcSwapOn } from "../../../../src/hop/usdc-swap-pools.js";
import { sqrtPriceAt } from "../../../../src/quotes/math/uniswap-v3.js";
import { createUniswapWindow, type WindowPlan } from "../../../../src/quotes/state/uniswap-tick-window.js";

const [down, up] = [usdcSwapOn("polygon"), usdcSwapOn("optimism")];
if (down === undefined || up === undefined) throw new Error("USDC.e is swapped on both");

const signed = (value: number | bigint): string => word(BigInt.asUintN(256, BigInt(value)));

/** What a pool with one position says, by the end of a view's name. */
function poolOf(tick: number, lower: number, upper: number) {
  const liquidity = 10n ** 15n;
  const bitOf = (each: number, place: string): bigint => (each >> 8 === Number(place) ? 1n << BigInt(each & 255) : 0n);
  return (what: string): string => {
    const [kind, value = ""] = what.split(" ");
    if (kind === "slot0") return `0x${word(sqrtPriceAt(tick))}${signed(tick)}`;
    if (kind === "liquidity") return `0x${word(lower <= tick && tick < upper ? liquidity : 0n)}`;
    if (kind === "spacing") return `0x${word(1n)}`;
    if (kind === "word") return `0x${word(bitOf(lower, value) | bitOf(upper, value))}`;
    const net = { [lower]: liquidity, [upper]: -liquidity }[value] ?? 0n;
    return `0x${word(liquidity)}${signed(net)}`;
  };
}

/** Names without the address before them. */
const asked = ({ views }: WindowPlan): string[] => [...views.keys()].map((name) => name.slice(name.indexOf(" ") + 1));
const read = (plan: WindowPlan, pool: (what: string) => string | undefined) =>
  plan.swapFrom((name) => pool(name.slice(name.indexOf(" ") + 1)));

describe("the window of a pool", () => {
  test.each([
    ["downwards", down, ["word 1", "word 0", "word -1", "word -2"], ["tick 5", "tick -90"], -90],
    ["upwards", up, ["word -2", "word -1", "word 0", "word 1"], ["tick -5", "tick 90"], 90],
  ] as const)(
    "is first asked for near 1, %s, and then for the ticks ahead that were seen",
    (_, swap, words, ticks, edge) => {
      const window = createUniswapWindow(swap);
      const pool = edge < 0 ? poolOf(0, -90, 5) : poolOf(0, -5, 90);
      const first = window.plan();
      expect(asked(first)).toEqual(["slot0", "liquidity", "spacing", ...words]);
      const partly = read(first, pool);
      expect(partly?.(10n ** 12n)).toBeTypeOf("bigint");
      expect(partly?.(10n ** 13n)).toBeUndefined();
      const second = window.plan();
      expect(asked(second).filter((what) => what.startsWith("tick"))).toEqual(ticks);
      // Beyond its only position nothing is there to be had, as far as words are known.
      expect(read(second, pool)?.(10n ** 13n)).toBeUndefined();
    },
  );

  test("follows the price, and tells nothing while it is elsewhere", () => {
    const window = createUniswapWindow(down);
    const pool = poolOf(-3000, -3010, -2000);
    expect(read(window.plan(), pool)?.(1n)).toBeUndefined();
    const next = window.plan();
    expect(asked(next)).toEqual(expect.arrayContaining(["word -11", "word -12", "word -13", "word -14"]));
    expect(read(next, pool)?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test("asks for few ticks, however many there are", () => {
    const window = createUniswapWindow(up);
    const pool = poolOf(0, -5, 90);
    read(window.plan(), (what) => (what.startsWith("word") ? `0x${"f".repeat(64)}` : pool(what)));
    const ticks = asked(window.plan()).filter((what) => what.startsWith("tick"));
    expect(ticks).toHaveLength(64);
    expect(ticks.slice(0, 10)).toEqual([-8, -7, -6, -5, -4, -3, -2, -1, 0, 1].map((tick) => `tick ${tick}`));
  });

  test("reads each answer as what was asked for it, whatever was learnt meanwhile", () => {
    const window = createUniswapWindow(down);
    const early = window.plan();
    read(window.plan(), poolOf(-3000, -3010, -2000));
    expect(read(early, poolOf(0, -90, 5))?.(10n ** 6n)).toBeTypeOf("bigint");
  });

  test.each([
    ["slot0", undefined],
    ["slot0", `0x${word(0n)}${word(0n)}`],
    ["slot0", `0x${word(sqrtPriceAt(0))}`],
    ["slot0", `0x${word(sqrtPriceAt(0) - 1n)}${signed(0)}`],
    ["slot0", `0x${word(sqrtPriceAt(1) + 1n)}${signed(0)}`],
    ["slot0", `0x${word(sqrtPriceAt(0))}${signed(-887_273)}`],
    ["slot0", `0x${"f".repeat(128)}`],
    ["liquidity", `0x${word(1n << 128n)}`],
    ["spacing", `0x${word(0n)}`],
    ["spacing", undefined],
    ["liquidity", "0x"],
  ])("tells nothing when its %s is %s", (broken, answer) => {
    const pool = poolOf(0, -90, 90);
    expect(read(createUniswapWindow(down).plan(), (what) => (what === broken ? answer : pool(what)))).toBeUndefined();
  });
});
