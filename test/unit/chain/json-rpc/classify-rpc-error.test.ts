import { describe, expect, test } from "vitest";
import { classifyRpcError } from "../../../../src/chain/json-rpc/rpc-errors.js";

describe("classifyRpcError", () => {
  test.each([
    ["block range is limited to 2000", [2_000]],
    ["at most 10,000 blocks may be searched.", [10_000]],
    ["up to a 10k range, please", [10_000]],
    ["max: 5000, asked: 100000", [5_000, 100_000]],
    ["a [0x0, 0x1f4] range works; more than 10000 results", []],
    ["took longer than 10 seconds, or 500ms, or 99 %", []],
    ["answer over 150000000 bytes, id 1a2b-1234-99", []],
    ["v1.2.3 of 2000x", []],
    ["1,00 is none", []],
  ])("finds the numbers of %j: %j", (message, numbers) => {
    expect(classifyRpcError({ code: -32000, message })).toEqual({ kind: undefined, numbers });
  });

  test.each([
    ["rate limit exceeded", "rate_limited"],
    ["Too Many Requests", "rate_limited"],
    ["over the compute capacity", "rate_limited"],
    ["out of credits", "rate_limited"],
    ["your daily quota is used up", "rate_limited"],
    ["header not found", "not_found"],
    ["range ends beyond current head block", "not_found"],
    ["BlockOutOfRange: block height is low", "not_found"],
    ["to is greater than the latest head", "not_found"],
    ["limit exceeded", undefined],
    ["the range generates too much", undefined],
    ["query timeout exceeded", undefined],
    [undefined, undefined],
  ])("classifies %j as %j", (message, kind) => {
    expect(classifyRpcError({ code: -32000, message })).toEqual({ kind, numbers: [] });
  });

  test.each([
    [{ code: 429, message: "no" }, "rate_limited"],
    [{ code: -32601, message: "no" }, "not_found"],
    ["a word", undefined],
    [{ message: 7 }, undefined],
  ])("classifies %j as %j", (error, kind) => {
    expect(classifyRpcError(error).kind).toBe(kind);
  });
});
