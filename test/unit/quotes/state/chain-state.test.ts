import { describe, expect, test } from "vitest";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import {
  ChainState,
  type ChainStateValues,
  captureReadTimestamps,
  coversReadSet,
} from "../../../../src/quotes/state/chain-state.js";
import { EMPTY_READ_SET, type ReadSet } from "../../../../src/quotes/state/read-set.js";
import { UniswapTickWindow } from "../../../../src/quotes/state/uniswap-tick-window.js";

const swapPool = findUsdcSwapPool("polygon");
if (swapPool === undefined) throw new Error("USDC.e is swapped on polygon");

const pool = { decimals: 6, balances: [1n, 2n] as const, aPrecise: 20_000n, swapFee: 0n };
const call = { to: "0xbb", data: "0x01" };
const delivery = {
  ...{ from: undefined, to: "0xdd", calldata: "0x03", deadlineSeconds: undefined },
  ...{ fallbackGas: 1n, gasMargin: 0n, hasL1Fee: false },
};
const swapState = {
  ...{ sqrtPriceX96: 2n ** 96n, tick: 0, liquidity: 10n ** 15n, feePips: 100n, tickSpacing: 1, zeroForOne: true },
  bitmapWords: new Map([
    [0, 0n],
    [-1, 0n],
  ]),
  liquidityNet: new Map([[5, 1n]]),
};
const values: ChainStateValues = {
  block: { number: 11n, timeSeconds: 12n },
  readAt: 13,
  readAtUnixSeconds: 14,
  gasPrice: 15n,
  pools: new Map([["pool", pool]]),
  uints: new Map([["uint", 16n]]),
  optionalUints: new Map([
    ["valid", 17n],
    ["invalid", undefined],
  ]),
  deliveries: new Map([["delivery", { gas: 18n, l1Fee: 19n }]]),
  swapPools: new Map([
    ["known", swapState],
    ["without ticks", { ...swapState, liquidityNet: new Map() }],
    ["invalid", undefined],
  ]),
};
const readSet: ReadSet = {
  pools: new Map([["pool", { address: "0xaa", decimals: 6 }]]),
  uintCalls: new Map([["uint", call]]),
  optionalUintCalls: new Map([
    ["valid", call],
    ["invalid", call],
  ]),
  deliveries: new Map([["delivery", delivery]]),
  tickWindows: new Map([
    ["known", new UniswapTickWindow(swapPool)],
    ["invalid", new UniswapTickWindow(swapPool)],
  ]),
  includesGasPrice: true,
};
/** The values without one of each kind. */
const gaps: readonly Partial<ChainStateValues>[] = [
  { pools: new Map() },
  { uints: new Map() },
  { deliveries: new Map() },
  { gasPrice: undefined },
];
const invalidResponse = expect.objectContaining({
  reason: "UPSTREAM_UNAVAILABLE",
  message: "polygon returned an invalid response for a Hop contract",
});

describe("the state of a chain", () => {
  const state = new ChainState(values, "polygon");

  test("has what was read", () => {
    const { block, readAt, readAtUnixSeconds, gasPrice } = values;
    expect(state).toMatchObject({ block, readAt, readAtUnixSeconds, gasPrice });
    expect(state.getPool("pool")).toBe(pool);
    expect(state.getUint("uint")).toBe(16n);
    expect(state.getDeliveryGasCost("delivery")).toEqual({ gas: 18n, l1Fee: 19n });
    expect([state.findOptionalUint("valid"), state.findOptionalUint("invalid")]).toEqual([17n, undefined]);
  });

  test("fails where a value is needed that was not read", () => {
    expect(() => state.getPool("other")).toThrow(invalidResponse);
    expect(() => state.getUint("other")).toThrow(invalidResponse);
    expect(() => state.getDeliveryGasCost("other")).toThrow(invalidResponse);
    expect(state.findOptionalUint("other")).toBeUndefined();
  });

  test("computes the swaps of pools whose responses were valid", () => {
    expect(state.findUniswapSwap("known")?.(1_000_000n)).toBe(999_899n);
    expect(state.findUniswapSwap("invalid")).toBeUndefined();
    expect(state.findUniswapSwap("other")).toBeUndefined();
    expect(["known", "without ticks", "invalid", "other"].map((pool) => state.hasTicks(pool))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("values that another process has read", () => {
  test("cover a read set with all their keys, also those of invalid responses", () => {
    expect(coversReadSet(values, readSet)).toBe(true);
    expect(coversReadSet(values, EMPTY_READ_SET)).toBe(true);
  });

  test.each([...gaps, { optionalUints: new Map([["valid", 17n]]) }, { swapPools: new Map([["known", swapState]]) }])(
    "do not cover it with a gap: %o",
    (gap) => {
      expect(coversReadSet({ ...values, ...gap }, readSet)).toBe(false);
    },
  );

  test("need a gas price only where one is read", () => {
    expect(coversReadSet({ ...values, gasPrice: undefined }, { ...readSet, includesGasPrice: false })).toBe(true);
  });
});

describe("a quote", () => {
  const assertCovers = (gap: Partial<ChainStateValues>, reads: ReadSet) =>
    new ChainState({ ...values, ...gap }, "polygon").assertCovers(reads);

  test("can be computed without optional values and swaps", () => {
    expect(() => assertCovers({ optionalUints: new Map(), swapPools: new Map() }, readSet)).not.toThrow();
    expect(() => assertCovers({ gasPrice: undefined }, { ...readSet, includesGasPrice: false })).not.toThrow();
  });

  test.each(gaps)("cannot be computed without a value that it needs: %o", (gap) => {
    expect(() => assertCovers(gap, readSet)).toThrow(invalidResponse);
  });
});

test("a read begins at the time of both clocks, in whole Unix seconds", () => {
  expect(captureReadTimestamps({ now: () => 1_999, monotonicNow: () => 55.5 })).toEqual({
    readAt: 55.5,
    readAtUnixSeconds: 1,
  });
});
