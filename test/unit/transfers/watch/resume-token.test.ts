import fc from "fast-check";
import { expect, test } from "vitest";
import {
  combineFingerprints,
  computeChecksum,
  computeFingerprint,
  computeQueryDigest,
  decodeResumeToken,
  encodeResumeToken,
  getFingerprintStage,
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
  const measure = (transfers: number, count = 100) => {
    const targets = Array.from({ length: count }, (_, index) => ({
      sent: Array.from({ length: transfers }, (_each, slot) => computeFingerprint(`${index} ${slot}`, slot % 8)),
      unknownSince: 0,
      isGivenUp: false,
    }));
    return encodeResumeToken(digest, { isComplete: false, targets }, NOW).length;
  };
  expect(measure(1)).toBe(683);
  expect(measure(8)).toBeLessThan(4_500);
  expect(measure(100)).toBe(683);
  // Over GET: 50 hashes of 66 characters with their names, and the token, within a URL of 8 KiB.
  expect(50 * "transferHash=&".length + 50 * 66 + "&resumeToken=".length + measure(8, 50)).toBeLessThan(8_192);
});

// Replicas of two versions serve one watch during an update.
test("the format of a token is pinned", () => {
  const value: WatchProgress = {
    isComplete: true,
    targets: [
      { sent: [0x01020304, 0xfffefdfc], unknownSince: NOW - 0x0102, isGivenUp: false },
      { sent: [], unknownSince: 0, isGivenUp: true },
    ],
  };
  const body = ["0101", "6b49d200", "12", "0102", "01020304", "fffefdfc", "20"].join("");
  const token = Buffer.from(encodeResumeToken(digest, value, NOW), "base64url").toString("hex");
  expect(token).toBe(`${body}eaad3c44edfe`);
});

test("the token of another version is refused", () => {
  const create = (version: number) => {
    const body = Buffer.from([version, 0, ...[0x6b, 0x49, 0xd2, 0x00]]);
    return Buffer.concat([body, computeChecksum(digest, body)]).toString("base64url");
  };
  expect(decodeResumeToken(create(1), digest, 0, NOW)).toEqual({ isComplete: false, targets: [] });
  expect(() => decodeResumeToken(create(2), digest, 0, NOW)).toThrow(
    expect.objectContaining({ reason: "INVALID_PARAMETER", field: "resumeToken" }),
  );
});

test.each([0, 1, 2, 5])("a token of %i bytes of its header is refused, also if its checksum is right", (length) => {
  const body = Buffer.from([1, 0, 0, 0, 0]).subarray(0, length);
  const token = Buffer.concat([body, computeChecksum(digest, body)]).toString("base64url");
  expect(() => decodeResumeToken(token, digest, 0, NOW)).toThrow(expect.objectContaining({ field: "resumeToken" }));
});

test("a token keeps for how long a transfer is unknown within its two bytes", () => {
  const decode = (unknownSince: number) => {
    const value = { isComplete: false, targets: [{ sent: [], unknownSince, isGivenUp: false }] };
    return decodeResumeToken(encodeResumeToken(digest, value, NOW), digest, 1, NOW)?.targets[0]?.unknownSince;
  };
  expect([NOW + 60, NOW, NOW - 1, NOW - 0xffff, NOW - 0x10000, 1].map(decode)).toEqual([
    ...[NOW, NOW, NOW - 1],
    ...[NOW - 0xffff, NOW - 0xffff, NOW - 0xffff],
  ]);
});

test("more than eight fingerprints are one, whatever their order, with the lowest stage", () => {
  const fingerprints = Array.from({ length: 9 }, (_, index) => computeFingerprint(String(index), 3));
  expect(combineFingerprints(fingerprints.slice(1))).toEqual(fingerprints.slice(1));
  const [compacted, ...others] = combineFingerprints(fingerprints);
  expect(others).toEqual([]);
  expect(getFingerprintStage(compacted ?? 7)).toBe(0);
  expect(combineFingerprints(fingerprints.toReversed())).toEqual([compacted]);
  expect(combineFingerprints([...fingerprints.slice(1), 5])).not.toEqual([compacted]);
  expect(combineFingerprints([1, 2, 3, 4, 5, 6, 7, 8, 910])).not.toEqual(
    combineFingerprints([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
  );
});

test("a fingerprint has the stage of its transfer, and differs from that of other texts", () => {
  const all = ["a", "b"].flatMap((text) => [0, 5, 7].map((stage) => computeFingerprint(text, stage)));
  expect(all.map(getFingerprintStage)).toEqual([0, 5, 7, 0, 5, 7]);
  expect(new Set(all).size).toBe(6);
  expect(new Set(all.map((fingerprint) => fingerprint >>> 3)).size).toBe(2);
  for (const fingerprint of all) expect(fingerprint).toBeGreaterThanOrEqual(0);
});

test("queries of different parts have different digests", () => {
  expect(computeQueryDigest(["a", "b"])).not.toBe(computeQueryDigest(["ab"]));
});
