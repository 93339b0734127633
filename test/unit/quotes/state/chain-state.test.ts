import { describe, expect, test } from "vitest";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import type { ChainStateValues } from "../../../../src/quotes/state/chain-state.js";
import {
  createPoolRead,
  createReadSet,
  createUintRead,
  EMPTY_READ_SET,
  getDeliveryTransactionKey,
  type ReadSet,
} from "../../../../src/quotes/state/read-set.js";
import { UniswapTickWindow } from "../../../../src/quotes/state/uniswap-tick-window.js";
import { createChainState, UNISWAP_STATE } from "../../../support/stubs/quote-routes.js";

const swapPool = findUsdcSwapPool("polygon");
if (swapPool === undefined) throw new Error("USDC.e is swapped on polygon");

const pool = { decimals: 6, balances: [1n, 2n] as const, aPrecise: 20_000n, swapFee: 0n };
const poolRead = createPoolRead("0xaa", 6);
const uintRead = createUintRead({ to: "0xbb", data: "0x01" });
const [valid, invalid] = ["0x02", "0x03"].map((data) => createUintRead({ to: "0xbb", data }, true)) as [
  typeof uintRead,
  typeof uintRead,
];
const delivery = {
  ...{ from: undefined, to: "0xdd", calldata: "0x03", deadlineSeconds: undefined },
  ...{ fallbackGas: 1n, gasMargin: 0n, hasL1Fee: false },
};
const window = new UniswapTickWindow(swapPool);
const values = new Map<string, unknown>([
  [poolRead.key, pool],
  [uintRead.key, 16n],
  [valid.key, 17n],
  [invalid.key, undefined],
  [getDeliveryTransactionKey(delivery), { gas: 18n, l1Fee: 19n }],
  [swapPool.address, { ...UNISWAP_STATE, liquidityNet: new Map([[5, 1n]]) }],
  ["without ticks", UNISWAP_STATE],
  ["invalid", undefined],
]);
const readSet = createReadSet({
  contractReads: [poolRead, uintRead, valid, invalid, window],
  delivery,
  includesGasPrice: true,
}) as ReadSet;
const times = { block: { number: 11n, timeSeconds: 12n }, readAt: 13, readAtUnixSeconds: 14, gasPrice: 15n };
const invalidResponse = expect.objectContaining({
  reason: "UPSTREAM_UNAVAILABLE",
  message: "polygon returned an invalid response for a Hop contract",
});

describe("the state of a chain", () => {
  const state = createChainState(values, times);

  test("has what was read", () => {
    expect(state).toMatchObject(times);
    expect([state.get(poolRead), state.get(uintRead), state.getDeliveryGasCost(delivery)]).toEqual([
      ...[pool, 16n],
      { gas: 18n, l1Fee: 19n },
    ]);
    expect([state.find(valid), state.find(invalid)]).toEqual([17n, undefined]);
  });

  test("fails where a value is needed that was not read", () => {
    const other = createUintRead({ to: "0xbb", data: "0xff" });
    for (const read of [other, invalid]) expect(() => state.get(read)).toThrow(invalidResponse);
    expect(() => state.getDeliveryGasCost({ ...delivery, to: "0xde" })).toThrow(invalidResponse);
    expect(state.find(other)).toBeUndefined();
  });

  test("computes the swaps of pools whose responses were valid, with one calculator each", () => {
    const swap = state.findUniswapSwap(window.key);
    expect(swap?.(1_000_000n)).toBe(999_899n);
    expect(state.findUniswapSwap(window.key)).toBe(swap);
    expect(["invalid", "other"].map((address) => state.findUniswapSwap(address))).toEqual([undefined, undefined]);
    const addresses = [window.key, "without ticks", "invalid", "other"];
    expect(addresses.map((address) => state.hasTicks(address))).toEqual([true, false, false, false]);
  });
});

describe("a read set", () => {
  const covers = (gap: Partial<ChainStateValues>, reads = readSet) => {
    const state = createChainState(values, { ...times, ...gap });
    if (state.covers(reads)) expect(() => state.assertCovers(reads)).not.toThrow();
    else expect(() => state.assertCovers(reads)).toThrow(invalidResponse);
    return state.covers(reads);
  };

  test("is covered if all was read, also by invalid responses to optional reads", () => {
    expect([covers({}), covers({}, EMPTY_READ_SET)]).toEqual([true, true]);
    expect(covers({ gasPrice: undefined }, { ...readSet, includesGasPrice: false })).toBe(true);
  });

  test("is not covered where one of its values or the gas price is missing", () => {
    expect(covers({ gasPrice: undefined })).toBe(false);
    for (const missing of [...readSet.contractReads.keys(), ...readSet.deliveries.keys()])
      expect(covers({ values: new Map([...values].filter(([key]) => key !== missing)) }), missing).toBe(false);
  });
});
