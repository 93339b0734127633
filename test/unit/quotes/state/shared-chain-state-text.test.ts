import { describe, expect, test } from "vitest";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import { ChainState, type ChainStateValues, coversReadSet } from "../../../../src/quotes/state/chain-state.js";
import type { ReadSet } from "../../../../src/quotes/state/read-set.js";
import { parseChainState, printChainState } from "../../../../src/quotes/state/shared-chain-state.js";
import { UniswapTickWindow } from "../../../../src/quotes/state/uniswap-tick-window.js";

const swapPool = findUsdcSwapPool("polygon");
if (swapPool === undefined) throw new Error("USDC.e is swapped on polygon");
const KEY = "mainnet polygon";
const TIMESTAMPS = { readAt: 1_795_000_000_123.25, readAtUnixSeconds: 1_795_000_000 };
const MAX_UINT256 = 2n ** 256n - 1n;

const VALUES: ChainStateValues = {
  block: { number: 123_456_789n, timeSeconds: 1_795_000_000n },
  ...TIMESTAMPS,
  gasPrice: 30_000_000_001n,
  pools: new Map([["0xpool", { decimals: 18, balances: [1n, MAX_UINT256], aPrecise: 20_000n, swapFee: 4_000_000n }]]),
  uints: new Map([["0xto 0xdata", 0n]]),
  optionalUints: new Map([
    ["0xto 0xoptional", 1n],
    ["0xto 0xinvalid", undefined],
  ]),
  deliveries: new Map([["0xfrom 0xto 0xcalldata", { gas: 250_000n, l1Fee: MAX_UINT256 }]]),
  swapPools: new Map([
    [
      swapPool.address,
      {
        zeroForOne: true,
        sqrtPriceX96: 2n ** 96n,
        tick: -1,
        liquidity: 10n ** 18n,
        feePips: 100n,
        tickSpacing: 1,
        bitmapWords: new Map([[-1, MAX_UINT256]]),
        liquidityNet: new Map([[-5, -(2n ** 127n)]]),
      },
    ],
    ["0xinvalid", undefined],
  ]),
};

const READ_SET: ReadSet = {
  pools: new Map([["0xpool", { address: "0xpool", decimals: 18 }]]),
  uintCalls: new Map([["0xto 0xdata", { to: "0xto", data: "0xdata" }]]),
  optionalUintCalls: new Map([["0xto 0xoptional", { to: "0xto", data: "0xoptional" }]]),
  deliveries: new Map(
    [undefined, "0xfrom"].map((from) => [
      `${from ?? ""} 0xto 0xcalldata`,
      {
        from,
        to: "0xto",
        calldata: "0xcalldata",
        deadlineSeconds: from && 604_800,
        fallbackGas: 1n,
        gasMargin: 50_000n,
        hasL1Fee: from !== undefined,
      } as ReadSet["deliveries"] extends ReadonlyMap<string, infer Delivery> ? Delivery : never,
    ]),
  ),
  tickWindows: new Map([[swapPool.address, new UniswapTickWindow(swapPool)]]),
  includesGasPrice: true,
};

describe("chain state", () => {
  test.each([
    ["with everything", VALUES],
    ["without a gas price", { ...VALUES, gasPrice: undefined, pools: new Map() }],
    [
      "with a swap in the other direction",
      {
        ...VALUES,
        swapPools: new Map([...VALUES.swapPools].map(([key, pool]) => [key, pool && { ...pool, zeroForOne: false }])),
      },
    ],
  ])("%s is the same in another process", (_, values) => {
    expect(parseChainState(printChainState(values, KEY, "1"), KEY, TIMESTAMPS)).toEqual(values);
  });

  test("of another chain is not taken", () => {
    const printed = printChainState(VALUES, "goerli polygon", "1");
    expect(() => parseChainState(printed, KEY, TIMESTAMPS)).toThrow(TypeError);
  });

  test("covers a read set if every value was read", () => {
    const deliveries = new Map([["0xfrom 0xto 0xcalldata", [...READ_SET.deliveries.values()][1]]]);
    const readSet = { ...READ_SET, deliveries } as ReadSet;
    expect(coversReadSet(VALUES, readSet)).toBe(true);
    expect(coversReadSet(VALUES, READ_SET)).toBe(false);
    for (const name of ["pools", "uints", "deliveries", "swapPools"] as const)
      expect(coversReadSet({ ...VALUES, [name]: new Map() }, readSet), name).toBe(false);
    expect(coversReadSet({ ...VALUES, gasPrice: undefined }, readSet)).toBe(false);
  });

  test("swaps only with a valid Uniswap pool", () => {
    const state = new ChainState(VALUES, "polygon");
    expect(state.findUniswapSwap(swapPool.address)).toBeTypeOf("function");
    expect(state.findUniswapSwap("0xinvalid")).toBeUndefined();
    expect(() => state.getUint("missing")).toThrow("polygon returned an invalid response");
  });
});
