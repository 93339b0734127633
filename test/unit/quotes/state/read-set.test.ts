import { describe, expect, test } from "vitest";
import {
  addContractReads,
  createPoolRead,
  createReadSet,
  createUintRead,
  EMPTY_READ_SET,
  getDeliveryTransactionKey,
  getReadSetKey,
  mergeReadSets,
  type ReadSet,
} from "../../../../src/quotes/state/read-set.js";

const pool = createPoolRead("0xaa", 6);
const uint = createUintRead({ to: "0xbb", data: "0x01" });
const optional = createUintRead({ to: "0xbb", data: "0x02" }, true);
const delivery = {
  ...{ from: "0xcc", to: "0xdd", calldata: "0x03", deadlineSeconds: undefined },
  ...{ fallbackGas: 1n, gasMargin: 0n, hasL1Fee: false },
};
const readSetOf = (parts: Parameters<typeof createReadSet>[0]): ReadSet => createReadSet(parts) ?? EMPTY_READ_SET;
const everything = readSetOf({ contractReads: [pool, uint, optional], delivery, includesGasPrice: true });

test("a read set is extended by further reads", () => {
  const readSet = readSetOf({ contractReads: [pool], includesGasPrice: true });
  expect(addContractReads(readSet, [])).toBe(readSet);
  const extended = readSetOf({ contractReads: [pool, optional], includesGasPrice: true });
  expect(addContractReads(readSet, [optional])).toEqual(extended);
  expect(addContractReads(undefined, [optional])).toEqual(createReadSet({ contractReads: [optional] }));
});

describe("several read sets", () => {
  test("together read all that any of them reads, and equal reads once", () => {
    const other = createPoolRead("0xab", 18);
    const merged = mergeReadSets([everything, readSetOf({ contractReads: [other] }), everything]);
    expect(merged).toEqual(addContractReads(everything, [other]));
    expect(mergeReadSets([EMPTY_READ_SET, everything])).toEqual(everything);
    expect(mergeReadSets([])).toEqual(EMPTY_READ_SET);
  });

  test("have one key if they read the same, and different ones otherwise", () => {
    expect(getReadSetKey(mergeReadSets([everything]))).toBe(getReadSetKey(everything));
    const different = [
      EMPTY_READ_SET,
      everything,
      { ...everything, contractReads: new Map() },
      { ...everything, deliveries: new Map() },
      { ...everything, includesGasPrice: false },
      // The same call, once with a value that is needed and once without.
      ...[false, true].map((isOptional) => {
        return readSetOf({ contractReads: [createUintRead({ to: "0xbb", data: "0x01" }, isOptional)] });
      }),
    ];
    expect(new Set(different.map(getReadSetKey)).size).toBe(different.length);
  });
});

test("the keys of reads differ by contract and function", () => {
  const calls = [uint, optional, createUintRead({ to: "0xba", data: "0x01" }), pool];
  expect(new Set(calls.map(({ key }) => key)).size).toBe(4);
});

test("the keys of deliveries differ where they may cost different gas, and not from day to day", () => {
  const distributing = { ...delivery, deadlineSeconds: 60 };
  const deliveries = [
    ...[delivery, distributing, { ...delivery, from: undefined }, { ...delivery, from: "0xce" }],
    ...[
      { ...delivery, to: "0xde" },
      { ...delivery, calldata: "0x04" },
    ],
  ];
  expect(new Set(deliveries.map(getDeliveryTransactionKey)).size).toBe(deliveries.length);
  expect(getDeliveryTransactionKey({ ...distributing })).toBe(getDeliveryTransactionKey(distributing));
});
