import { expect, test } from "vitest";
import { TokenBucket } from "../../../src/resilience/token-bucket.js";

function create(perSecond: number, burst: number) {
  const clock = { ms: 0 };
  return { clock, bucket: new TokenBucket({ perSecond, burst, now: () => clock.ms }) };
}

test("permits a burst, then the rate", () => {
  const { clock, bucket } = create(10, 3);
  for (let taken = 0; taken < 3; taken += 1) {
    expect(bucket.waitMs()).toBe(0);
    bucket.take(1);
  }
  expect(bucket.waitMs()).toBe(100);
  clock.ms += 99;
  expect(bucket.waitMs()).toBe(1);
  clock.ms += 1;
  expect(bucket.waitMs()).toBe(0);
});

test("never holds more than the burst", () => {
  const { clock, bucket } = create(10, 3);
  clock.ms += 3_600_000;
  bucket.take(3);
  expect(bucket.level()).toBe(0);
  expect(bucket.waitMs()).toBe(100);
});

test("delays those that come next by the debt of a taker that takes more than there is", () => {
  const { clock, bucket } = create(10, 3);
  bucket.take(13);
  expect(bucket.level()).toBe(-10);
  expect(bucket.waitMs()).toBe(1_100);
  clock.ms += 1_100;
  expect(bucket.waitMs()).toBe(0);
});
