import fc from "fast-check";
import { expect, test } from "vitest";
import {
  computeFingerprint,
  computeQueryDigest,
  decodeResumeToken,
  encodeResumeToken,
  type TargetProgress,
  type WatchProgress,
} from "../../../../src/transfers/watch/resume-token.js";

const NOW = 1_800_000_000;
const digest = computeQueryDigest(["mainnet BASIC id 0x01"]);

const uint32 = fc.integer({ min: 0, max: 0xffffffff });
const target: fc.Arbitrary<TargetProgress> = fc.record({
  sent: fc.array(uint32, { maxLength: 8 }),
  unknownSince: fc.oneof(fc.constant(0), fc.integer({ min: NOW - 60_000, max: NOW })),
  isGivenUp: fc.boolean(),
});
const progress: fc.Arbitrary<WatchProgress> = fc.record({
  isComplete: fc.boolean(),
  targets: fc.array(target, { minLength: 1, maxLength: 100 }),
});

test("a token says what it was made of", () => {
  fc.assert(
    fc.property(progress, (value) => {
      const token = encodeResumeToken(digest, value, NOW);
      expect(decodeResumeToken(token, digest, value.targets.length, NOW + 3_600)).toEqual(value);
    }),
  );
});

test("a token of which any character is changed, left out or added is refused", () => {
  fc.assert(
    fc.property(progress, fc.nat(), fc.constantFrom("A", "_", "=", " ", "é"), (value, position, character) => {
      const token = encodeResumeToken(digest, value, NOW);
      const at = position % token.length;
      const decode = (changed: string) => () => decodeResumeToken(changed, digest, value.targets.length, NOW);
      const replaced = token.slice(0, at) + character + token.slice(at + 1);
      if (replaced !== token) expect(decode(replaced)).toThrow(expect.objectContaining({ field: "resumeToken" }));
      expect(decode(token.slice(0, at) + token.slice(at + 1))).toThrow(/resumeToken/);
      expect(decode(token + character)).toThrow(/resumeToken/);
    }),
  );
});

test("any other text, and the token of another query or number of transfers, is refused", () => {
  const value = { isComplete: false, targets: [{ sent: [1], unknownSince: 0, isGivenUp: false }] };
  const token = encodeResumeToken(digest, value, NOW);
  expect(() => decodeResumeToken(token, computeQueryDigest(["other"]), 1, NOW)).toThrow(/resumeToken/);
  expect(() => decodeResumeToken(token, digest, 2, NOW)).toThrow(/resumeToken/);
  expect(() => decodeResumeToken(token, digest, 0, NOW)).toThrow(/resumeToken/);
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(() => decodeResumeToken(text, digest, 1, NOW)).toThrow(/resumeToken/);
    }),
  );
});

test("a token that is older than a day says nothing", () => {
  const token = encodeResumeToken(digest, { isComplete: true, targets: [] }, NOW);
  expect(decodeResumeToken(token, digest, 0, NOW + 86_400)).toBeDefined();
  expect(decodeResumeToken(token, digest, 0, NOW + 86_401)).toBeUndefined();
});

test("a token of 100 transfers fits into a header and a query, also if each is a transaction of a hundred", () => {
  const encode = (transfers: number, targets = 100) =>
    encodeResumeToken(
      digest,
      {
        isComplete: false,
        targets: Array.from({ length: targets }, (_, index) => ({
          sent: Array.from({ length: transfers }, (_each, slot) => computeFingerprint(`${index} ${slot}`, slot % 8)),
          unknownSince: 0,
          isGivenUp: false,
        })),
      },
      NOW,
    ).length;
  expect(encode(1)).toBe(683);
  expect(encode(8)).toBeLessThan(4_500);
  expect(encode(100)).toBe(683);
  // Over GET: 50 hashes of 66 characters with their names, and the token, within a URL of 8 KiB.
  expect(50 * "transferHash=&".length + 50 * 66 + "&resumeToken=".length + encode(8, 50)).toBeLessThan(8_192);
});
