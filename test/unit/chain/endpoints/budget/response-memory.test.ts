import { expect, test } from "vitest";
import { createResponseMemory } from "../../../../../src/chain/endpoints/budget/response-memory.js";

const MEBIBYTE = 1024 * 1024;
const MAX_BYTES = 16 * MEBIBYTE;

const create = () => createResponseMemory({ maxBytes: MAX_BYTES, createError: () => new Error("no memory") });

/** Reserves one mebibyte per response until there is no more. Returns the number of responses. */
function fill(memory: ReturnType<typeof createResponseMemory>, holderAt: (index: number) => string): number {
  for (let index = 0; ; index += 1) {
    try {
      memory.open(holderAt(index)).grow(MEBIBYTE);
    } catch (error) {
      expect(error).toEqual(new Error("no memory"));
      return index;
    }
  }
}

test("one budget bounds the responses of all holders together", () => {
  const memory = create();
  expect(fill(memory, (index) => `holder ${index}`)).toBeGreaterThan(12);
  expect(memory.reservedBytes()).toBeLessThanOrEqual(MAX_BYTES);
});

test("a holder leaves as much as it holds to others", () => {
  const memory = create();
  expect(fill(memory, () => "greedy")).toBe(8);
  memory.open("other").grow(MEBIBYTE);
});

test("a response counts with its size until it is released", () => {
  const memory = create();
  const response = memory.open("a");
  response.grow(1);
  response.grow(100_000);
  expect(memory.reservedBytes()).toBe(100_000);
  response.release();
  expect(memory.reservedBytes()).toBe(0);
});

test("a response that gets no more memory keeps what it has until it is released", () => {
  const memory = create();
  const response = memory.open("a");
  response.grow(MEBIBYTE);
  expect(() => response.grow(MAX_BYTES)).toThrow("no memory");
  expect(memory.reservedBytes()).toBe(MEBIBYTE);
  response.release();
  expect(memory.reservedBytes()).toBe(0);
});
