import { expect, test } from "vitest";
import { createRequestId, resolveRequestId } from "../../../../src/http/request/request-id.js";

test("creates distinct UUIDs of version 4", () => {
  const ids = Array.from({ length: 1_000 }, createRequestId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  // Each of the other digits takes each value.
  for (const at of [0, 7, 9, 12, 15, 17, 20, 22, 24, 35]) {
    expect(new Set(ids.map((id) => id[at])).size).toBe(16);
  }
});

test.each([
  ["a-b_c.1", true],
  ["x".repeat(128), true],
  ["x".repeat(129), false],
  ["", false],
  ["a b", false],
  [["a"], false],
  [undefined, false],
])("keeps the id %j of a request: %s", (id, isKept) => {
  expect(resolveRequestId(id) === id).toBe(isKept);
});
