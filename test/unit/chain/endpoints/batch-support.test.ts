import { describe, expect, test } from "vitest";
import {
  type BatchSupport,
  INITIAL_BATCH_SUPPORT,
  isPossibleBatchRejection,
  isUntriedSize,
  onBatchAccepted,
  onBatchHttpError,
  onBatchMixedUp,
  onBatchRejected,
  onBatchResponse,
  onRejectionConfirmed,
  shouldBatch,
} from "../../../../src/chain/endpoints/batch-support.js";

const MINUTES = 60_000;
const accepted = onBatchAccepted(INITIAL_BATCH_SUPPORT, 10);

function fail(state: BatchSupport, status: number, size = 5): BatchSupport {
  return onBatchHttpError(state, status, isUntriedSize(state, size));
}

describe("a batch size", () => {
  test("is untried above the largest accepted one", () => {
    expect([2, 10, 11].map((size) => isUntriedSize(INITIAL_BATCH_SUPPORT, size))).toEqual([true, true, true]);
    expect([2, 10, 11].map((size) => isUntriedSize(accepted, size))).toEqual([false, false, true]);
    expect(onBatchAccepted(accepted, 3)).toEqual(accepted);
  });

  test("is not used for ten minutes at and above a confirmed rejection", () => {
    const rejected = onRejectionConfirmed(onBatchRejected(accepted, true), 20, 1_000);
    expect([19, 20, 21].map((size) => shouldBatch(rejected, size, 1_000))).toEqual([true, false, false]);
    expect(shouldBatch(rejected, 20, 1_000 + 10 * MINUTES - 1)).toBe(false);
    expect(shouldBatch(rejected, 20, 1_000 + 10 * MINUTES)).toBe(true);
  });

  test("is not used for 30 seconds after an uncertain rejection", () => {
    for (const uncertain of [fail(INITIAL_BATCH_SUPPORT, 500), onBatchMixedUp(accepted)]) {
      const rejected = onRejectionConfirmed(uncertain, 5, 0);
      expect([29_999, 30_000].map((now) => shouldBatch(rejected, 5, now))).toEqual([false, true]);
    }
  });

  test("stays rejected at the smallest confirmed size", () => {
    const rejected = onRejectionConfirmed(onRejectionConfirmed(INITIAL_BATCH_SUPPORT, 5, 0), 50, 1);
    expect(rejected.rejection?.size).toBe(5);
  });

  test("ends the rejection of smaller sizes when it is accepted", () => {
    const rejected = onRejectionConfirmed(INITIAL_BATCH_SUPPORT, 5, 0);
    expect(onBatchAccepted(rejected, 4).rejection).toEqual(rejected.rejection);
    expect(onBatchAccepted(rejected, 5).rejection).toBeUndefined();
  });
});

describe("a size that was accepted before", () => {
  test("becomes untried when the endpoint rejects it", () => {
    expect(isUntriedSize(onBatchRejected(accepted, false), 10)).toBe(true);
    expect(isUntriedSize(onBatchRejected(accepted, true), 10)).toBe(false);
  });

  test("becomes untried with a client error", () => {
    expect(isUntriedSize(fail(accepted, 413), 10)).toBe(true);
  });

  test("becomes untried with the third server error in a row", () => {
    const two = fail(fail(accepted, 502), 503);
    expect(isUntriedSize(two, 10)).toBe(false);
    expect(isUntriedSize(fail(two, 500), 10)).toBe(true);
    expect(isUntriedSize(fail(onBatchResponse(two), 500), 10)).toBe(false);
  });

  test("becomes untried when the response mixes up the calls", () => {
    expect(isUntriedSize(onBatchMixedUp(accepted), 10)).toBe(true);
  });
});

test.each([
  [undefined, false],
  [401, false],
  [403, false],
  [429, false],
  [200, true],
  [400, true],
  [500, true],
])("HTTP status %s as a possible batch rejection: %s", (status, expected) => {
  expect(isPossibleBatchRejection(status)).toBe(expected);
});
