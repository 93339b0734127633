import { describe, expect, test } from "vitest";
import { type JsonLimits, JsonScanner } from "../../../../src/resilience/http-client/json-size.js";

const scan = (limits: Partial<JsonLimits>, ...parts: readonly string[]) => {
  const scanner = new JsonScanner({ depth: 100, members: 100, ...limits });
  return parts.map((part) => scanner.scan(Buffer.from(part)));
};

describe("the nesting of JSON", () => {
  test.each([
    ["[[]]", undefined],
    ['{"a":[]}', undefined],
    ["[[[]]]", { kind: "depth" }],
    ['[{"a":{}}]', { kind: "depth" }],
    ["[[],[],[]]", undefined],
    ['["[[[["]', undefined],
    ['["\\"[[[","\\\\",[]]', undefined],
    ['["\\\\",[[]]]', { kind: "depth" }],
  ])("of %s", (text, excess) => {
    expect(scan({ depth: 2 }, text)).toEqual([excess]);
  });
});

describe("the members of JSON", () => {
  test.each([
    ["[1,2,3]", undefined],
    ["[1,2,3,4]", { kind: "members" }],
    ['{"a":[],"b":1}', undefined],
    ['{"a":[],"b":[]}', { kind: "members" }],
    ['",,,,,"', undefined],
  ])("of %s", (text, excess) => {
    expect(scan({ members: 3 }, text)).toEqual([excess]);
  });

  test("may be more in a longer text", () => {
    const limits = { members: 1, bytesPerMember: 10 };
    const number = "1".repeat(9);
    expect(scan(limits, `[${`${number},`.repeat(5)}`)).toEqual([undefined]);
    expect(scan(limits, `[${"1,".repeat(5)}`)).toEqual([{ kind: "members" }]);
  });
});

test("goes on where the last part ended", () => {
  const limits = { depth: 2, members: 3 };
  expect(scan(limits, "[", "[", "[")).toEqual([undefined, undefined, { kind: "depth" }]);
  expect(scan(limits, '["[', "[", "\\", '"[["', ",1,", "2")).toEqual(Array(6).fill(undefined));
  expect(scan(limits, "[1,", "2,", "3,")).toEqual([undefined, undefined, { kind: "members" }]);
});

describe("objects in a list of the outermost object", () => {
  const limits = { lists: new Map([["items", 2]]) };
  const excess = { kind: "list", name: "items", max: 2 };

  test.each([
    ['{"items":[{},{}]}', undefined],
    ['{"items":[{},{},{}]}', excess],
    ['{"x":"items","items":[{"a":{}},{"a":{}},{}', excess],
    ['{"items":[{"a":[{},{},{}]}]}', undefined],
    ['{"others":[{},{},{}]}', undefined],
    ['{"items":[1,2,3]}', undefined],
    ['{"items":{"a":{},"b":{},"c":{}}}', undefined],
    ['{"x":{"items":[{},{},{}]}}', undefined],
    ['[{"items":[{},{},{}]}]', undefined],
  ])("are counted in %s", (text, expected) => {
    expect(scan(limits, text)).toEqual([expected]);
  });
});
