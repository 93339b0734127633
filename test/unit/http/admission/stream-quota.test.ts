import { expect, test } from "vitest";
import { createStreamQuota, type StreamQuota } from "../../../../src/http/admission/stream-quota.js";

const fill = (quota: StreamQuota, caller: string, count: number): (() => void)[] =>
  Array.from({ length: count }, () => quota.acquire(caller));

test("refuses a caller with RATE_LIMITED at its share, while others still get streams", () => {
  const quota = createStreamQuota({ total: 10 });
  fill(quota, "a", 5);
  expect(() => quota.acquire("a")).toThrow(expect.objectContaining({ reason: "RATE_LIMITED", retryAfterSeconds: 5 }));
  fill(quota, "b", 2);
  expect(quota.openCount()).toBe(7);
});

test("limits a caller to a number of its own, however many are free", () => {
  const quota = createStreamQuota({ total: 1_000, perCaller: 3 });
  fill(quota, "a", 3);
  expect(() => quota.acquire("a")).toThrow(expect.objectContaining({ reason: "RATE_LIMITED" }));
});

test("refuses everybody with OVERLOADED when no place is left", () => {
  const quota = createStreamQuota({ total: 3 });
  for (const caller of ["a", "b", "c"]) fill(quota, caller, 1);
  for (const caller of ["a", "d"]) {
    expect(() => quota.acquire(caller)).toThrow(
      expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 5 }),
    );
  }
});

test("limits streams that take a connection to their share, and leaves the other places to the others", () => {
  const quota = createStreamQuota({ total: 100, connections: 4 });
  const release = quota.acquire("a", true);
  quota.acquire("a", true);
  expect(() => quota.acquire("a", true)).toThrow(expect.objectContaining({ reason: "RATE_LIMITED" }));
  quota.acquire("b", true);
  quota.acquire("c", true);
  expect(() => quota.acquire("d", true)).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
  expect(quota.openCount()).toBe(4);
  quota.acquire("a");
  release();
  quota.acquire("d", true);
  expect(quota.openCount()).toBe(5);
});

test("admits again what was released", () => {
  const quota = createStreamQuota({ total: 2 });
  for (let round = 0; round < 3; round += 1) {
    const [release] = fill(quota, "a", 1);
    expect(() => quota.acquire("a")).toThrow();
    release?.();
    expect(quota.openCount()).toBe(0);
  }
});
