import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ListPosition } from "../../../../../src/transfers/index/list/page-statement.js";
import { decodePageToken, encodePageToken } from "../../../../../src/transfers/index/list/page-token.js";

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => `0x${Buffer.from(value).toString("hex")}`);
const positions: fc.Arbitrary<ListPosition> = fc.record({
  timestamp: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
  transactionHash: hex(32),
  correlationKey: fc.oneof(hex(32), hex(12)),
  logIndex: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
});

test("a token gives the position back, for its query only", () => {
  fc.assert(
    fc.property(positions, fc.string(), fc.string(), (position, query, other) => {
      const token = encodePageToken(query, position);
      expect(token).toMatch(/^[A-Za-z0-9_-]{80,120}$/);
      expect(decodePageToken(query, token)).toEqual(position);
      if (other !== query) expect(decodePageToken(other, token)).toBeUndefined();
    }),
  );
});

test("a token that was altered in any character is none", () => {
  const alphabet = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ \n"];
  fc.assert(
    fc.property(positions, fc.nat(), fc.constantFrom(...alphabet), (position, seed, character) => {
      const token = encodePageToken("query", position);
      const place = seed % token.length;
      const altered = `${token.slice(0, place)}${character}${token.slice(place + 1)}`;
      if (altered !== token) expect(decodePageToken("query", altered)).toBeUndefined();
      expect(decodePageToken("query", token.slice(0, place))).toBeUndefined();
      expect(decodePageToken("query", token + character)).toBeUndefined();
    }),
    { numRuns: 1_000 },
  );
});

test("no other text is a token", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.base64String()), (text) => {
      expect(decodePageToken("query", text)).toBeUndefined();
    }),
    { numRuns: 1_000 },
  );
});

// Replicas of two versions serve the pages of one list during an update.
test("the format of a token is pinned, and the token of another version is none", () => {
  const create = (version: number): string => {
    const head = Buffer.from([version, ...[0, 0, 0x65, 0x53, 0xf1, 0x00], ...[0, 0, 0, 7]]);
    const content = Buffer.concat([head, Buffer.alloc(32, 0x2b), Buffer.alloc(12, 0x1a)]);
    const digest = createHash("sha256").update("query\0").update(content).digest().subarray(0, 8);
    return Buffer.concat([content, digest]).toString("base64url");
  };
  const position: ListPosition = {
    timestamp: 1_700_000_000,
    logIndex: 7,
    transactionHash: `0x${"2b".repeat(32)}`,
    correlationKey: `0x${"1a".repeat(12)}`,
  };
  expect(encodePageToken("query", position)).toBe(create(1));
  expect(decodePageToken("query", create(1))).toEqual(position);
  expect(decodePageToken("query", create(2))).toBeUndefined();
});
