import { expect, test } from "vitest";
import {
  createResponseMemory,
  MAX_RESPONSE_MEMORY_BYTES,
} from "../../../../../src/chain/endpoints/budget/response-memory.js";

const MEBIBYTE = 1024 * 1024;
const overloaded = expect.objectContaining({ reason: "OVERLOADED", retryAfterSeconds: 1 });

/** Reserves one mebibyte per response until there is no more. Returns the number of responses. */
function fill(memory: ReturnType<typeof createResponseMemory>, callerAt: (index: number) => string): number {
  for (let index = 0; ; index += 1) {
    try {
      memory.open(callerAt(index)).grow(MEBIBYTE);
    } catch (error) {
      expect(error).toEqual(overloaded);
      return index;
    }
  }
}

test("one budget bounds the responses of all callers together", () => {
  const memory = createResponseMemory();
  expect(fill(memory, (index) => `caller ${index}`)).toBeLessThanOrEqual(MAX_RESPONSE_MEMORY_BYTES / MEBIBYTE);
  expect(memory.reservedBytes()).toBeLessThanOrEqual(MAX_RESPONSE_MEMORY_BYTES);
});

test("a caller leaves as much as it holds to others", () => {
  const memory = createResponseMemory();
  fill(memory, () => "greedy");
  expect(memory.reservedBytes()).toBeLessThanOrEqual(MAX_RESPONSE_MEMORY_BYTES / 2);
  memory.open("other").grow(MEBIBYTE);
});

test("a response counts with its size until it is released", () => {
  const memory = createResponseMemory();
  const response = memory.open("a");
  response.grow(1);
  response.grow(100_000);
  expect(memory.reservedBytes()).toBe(128 * 1024);
  response.release();
  expect(memory.reservedBytes()).toBe(0);
});
