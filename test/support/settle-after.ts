import { expect, vi } from "vitest";

/** Returns the outcome of a promise that must settle after `ms` of the fake timers, and not before. */
export async function settleAfter<T>(promise: Promise<T>, ms: number): Promise<T> {
  let isSettled = false;
  const onSettled = (): void => {
    isSettled = true;
  };
  promise.then(onSettled, onSettled);
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(isSettled, `settled before ${ms} ms`).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isSettled, `still pending after ${ms} ms`).toBe(true);
  return promise;
}
