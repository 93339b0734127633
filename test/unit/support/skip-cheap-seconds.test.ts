import { expect, test } from "vitest";
import { encodeDeliveryCalldata } from "../../../src/quotes/state/read-set.js";
import { skipCheapSecond } from "../../support/service/skip-cheap-seconds.js";

const bond = {
  ...{ from: undefined, to: "0x", calldata: "0x", deadlineSeconds: 7 * 24 * 3_600 },
  ...{ fallbackGas: 0n, gasMargin: 0n, hasL1Fee: false },
};
const START_MS = 1_790_000_000_000;
const times = Array.from({ length: 4 * 600 }, (_, index) => START_MS + index * 250);

test("no deadline ends in a zero byte", () => {
  const endsInZero = (timeMs: number) => encodeDeliveryCalldata(bond, Math.floor(timeMs / 1_000)).endsWith("00");
  expect(times.some(endsInZero)).toBe(true);
  expect(times.map(skipCheapSecond).some(endsInZero)).toBe(false);
});

test("the time goes on, and is never more than a second ahead", () => {
  const skipped = times.map(skipCheapSecond);
  expect(skipped).toEqual(skipped.toSorted((a, b) => a - b));
  expect(skipped.every((time, index) => time - (times[index] ?? 0) <= 1_000 && time >= (times[index] ?? 0))).toBe(true);
});
