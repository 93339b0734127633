import { describe, expect, test } from "vitest";
import { findUsdcSwapPool } from "../../../../src/hop/cctp.js";
import {
  addOptionalCalls,
  addTickWindow,
  createReadSet,
  type DeliveryTransaction,
  EMPTY_READ_SET,
  encodeDeliveryCalldata,
  getCallKey,
  getDeliveryKey,
  getReadSetKey,
  mergeReadSets,
  type ReadSet,
} from "../../../../src/quotes/state/read-set.js";
import { UniswapTickWindow } from "../../../../src/quotes/state/uniswap-tick-window.js";

const swapPool = findUsdcSwapPool("polygon");
if (swapPool === undefined) throw new Error("USDC.e is swapped on polygon");

const pool = { address: "0xaa", decimals: 6 };
const call = { to: "0xbb", data: "0x01" };
const optionalCall = { to: "0xbb", data: "0x02" };
const delivery: DeliveryTransaction = {
  from: "0xcc",
  to: "0xdd",
  calldata: "0x03",
  deadlineSeconds: undefined,
  fallbackGas: 1n,
  gasMargin: 0n,
  hasL1Fee: false,
};
/** Creates a read set of parts of which there is at least one. */
const readSetOf = (parts: Parameters<typeof createReadSet>[0]): ReadSet => createReadSet(parts) ?? EMPTY_READ_SET;
const window = new UniswapTickWindow(swapPool);

describe("a read set", () => {
  test("is absent where there is nothing to read", () => {
    expect(createReadSet({})).toBeUndefined();
    expect(createReadSet({ pool: undefined, includesGasPrice: false })).toBeUndefined();
    expect(addOptionalCalls(undefined, [])).toBeUndefined();
  });

  test("has each of its parts by key, and nothing else", () => {
    expect(createReadSet({ pool })).toEqual({ ...EMPTY_READ_SET, pools: new Map([["0xaa", pool]]) });
    expect(createReadSet({ uintCall: call })).toEqual({ ...EMPTY_READ_SET, uintCalls: new Map([["0xbb 0x01", call]]) });
    const deliveries = new Map([[getDeliveryKey(delivery), delivery]]);
    expect(createReadSet({ delivery })).toEqual({ ...EMPTY_READ_SET, deliveries });
    expect(createReadSet({ includesGasPrice: true })).toEqual({ ...EMPTY_READ_SET, includesGasPrice: true });
  });

  test("is extended by calls whose failure does no harm, and by a tick window", () => {
    const readSet = readSetOf({ pool });
    expect(addOptionalCalls(readSet, [])).toBe(readSet);
    const optionalUintCalls = new Map([["0xbb 0x02", optionalCall]]);
    expect(addOptionalCalls(readSet, [optionalCall])).toEqual({ ...readSet, optionalUintCalls });
    expect(addOptionalCalls(undefined, [optionalCall])).toEqual({ ...EMPTY_READ_SET, optionalUintCalls });
    const tickWindows = new Map([[swapPool.address, window]]);
    expect(addTickWindow(readSet, window)).toEqual({ ...readSet, tickWindows });
    expect(addTickWindow(undefined, window)).toEqual({ ...EMPTY_READ_SET, tickWindows });
  });
});

const everything: ReadSet = addTickWindow(
  addOptionalCalls(createReadSet({ pool, uintCall: call, delivery, includesGasPrice: true }), [optionalCall]),
  window,
);

describe("several read sets", () => {
  test("together read all that any of them reads, and equal reads once", () => {
    const otherPool = { address: "0xab", decimals: 18 };
    const merged = mergeReadSets([everything, readSetOf({ pool: otherPool }), readSetOf({ pool, uintCall: call })]);
    expect(merged).toEqual({ ...everything, pools: new Map([...everything.pools, ["0xab", otherPool]]) });
    expect(mergeReadSets([EMPTY_READ_SET, everything])).toEqual(everything);
    expect(mergeReadSets([])).toEqual(EMPTY_READ_SET);
  });

  test("have one key if they read the same, and different ones otherwise", () => {
    expect(getReadSetKey(mergeReadSets([everything]))).toBe(getReadSetKey(everything));
    const different = [
      EMPTY_READ_SET,
      everything,
      { ...everything, pools: new Map() },
      { ...everything, uintCalls: new Map() },
      { ...everything, optionalUintCalls: new Map() },
      { ...everything, deliveries: new Map() },
      { ...everything, tickWindows: new Map() },
      { ...everything, includesGasPrice: false },
      // The same call, once with a value that is needed and once without.
      readSetOf({ uintCall: call }),
      addOptionalCalls(undefined, [call]) ?? EMPTY_READ_SET,
    ];
    expect(new Set(different.map(getReadSetKey)).size).toBe(different.length);
  });
});

describe("keys of reads", () => {
  test("differ for calls of different contracts or functions", () => {
    const calls = [call, optionalCall, { ...call, to: "0xba" }];
    expect(new Set(calls.map(getCallKey)).size).toBe(3);
  });

  test("differ for deliveries that may cost different gas, and not from day to day", () => {
    const distributing = { ...delivery, deadlineSeconds: 60 };
    const deliveries = [
      delivery,
      distributing,
      { ...delivery, from: undefined },
      { ...delivery, from: "0xce" },
      { ...delivery, to: "0xde" },
      { ...delivery, calldata: "0x04" },
    ];
    expect(new Set(deliveries.map(getDeliveryKey)).size).toBe(deliveries.length);
    expect(getDeliveryKey({ ...distributing })).toBe(getDeliveryKey(distributing));
  });
});

test("the calldata of a delivery ends in its deadline, if it has one", () => {
  expect(encodeDeliveryCalldata(delivery, 1_000)).toBe("0x03");
  expect(encodeDeliveryCalldata({ ...delivery, deadlineSeconds: 24 }, 1_000)).toBe(
    `0x03${(1_024).toString(16).padStart(64, "0")}`,
  );
});
