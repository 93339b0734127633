import { expect, test } from "vitest";
import { createRequestSampler } from "../../../../src/quotes/shadow-comparison/request-sampler.js";
import type { QuoteRequest } from "../../../../src/quotes/state/quote-request.js";

const createRequest = (amountIn: number) => ({ amountIn: BigInt(amountIn) }) as QuoteRequest;

/** A generator of pseudo-random numbers (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns how often each of ten requests was picked in many rounds. */
function countPicks(observe: (sampler: ReturnType<typeof createRequestSampler>) => void): readonly number[] {
  const sampler = createRequestSampler(createRandom(1));
  const picks = Array.from({ length: 10 }, () => 0);
  for (let round = 0; round < 20_000; round++) {
    observe(sampler);
    const index = Number(sampler.take()?.request.amountIn);
    picks[index] = (picks[index] ?? 0) + 1;
  }
  return picks;
}

const requests = Array.from({ length: 10 }, (_, index) => createRequest(index));

test("picks each request with the same probability", () => {
  const picks = countPicks((sampler) => {
    for (const request of requests) sampler.observe(request);
  });
  // 2,000 of 20,000, with a standard deviation of 42.
  for (const count of picks) expect(Math.abs(count - 2_000)).toBeLessThan(250);
});

test("gives the sample of another process the weight of all its requests", () => {
  const other = createRequestSampler(createRandom(2));
  const picks = countPicks((sampler) => {
    for (const request of requests.slice(0, 3)) sampler.observe(request);
    for (const request of requests.slice(3, 9)) other.observe(request);
    const { request, count } = other.take() ?? {};
    if (request !== undefined && count !== undefined) sampler.merge(request, count);
    for (const late of requests.slice(9)) sampler.observe(late);
  });
  for (const count of picks) expect(Math.abs(count - 2_000)).toBeLessThan(250);
});

test("returns no request twice, and none if there was none", () => {
  const sampler = createRequestSampler(Math.random);
  expect(sampler.take()).toBeUndefined();
  for (const request of requests) sampler.observe(request);
  expect(sampler.take()).toMatchObject({ count: 10 });
  expect(sampler.take()).toBeUndefined();
  sampler.observe(createRequest(3));
  expect(sampler.take()).toEqual({ request: createRequest(3), count: 1 });
});

test("draws a random number for few of many requests", () => {
  let draws = 0;
  const random = createRandom(3);
  const sampler = createRequestSampler(() => {
    draws += 1;
    return random();
  });
  const [request] = requests;
  for (let count = 0; request !== undefined && count < 1_000_000; count++) sampler.observe(request);
  // About ln(1,000,000).
  expect(draws).toBeLessThan(60);
});
