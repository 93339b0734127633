import { describe, expect, test } from "vitest";
import { createSigner, type Signer } from "../../../../src/shared-state/redis/signing.js";
import {
  MAX_MESSAGE_CHARS,
  parseTopicMessage,
  printTopicMessage,
  type TopicMessage,
} from "../../../../src/shared-state/redis/topic-message.js";

const NOW = 1_700_000_000_000;
const signerAt = (time: number, key = "the key of the replicas"): Signer => createSigner(key, () => time);

describe("a signed text", () => {
  const signed = signerAt(NOW).sign("place", "text\nof two lines");

  test("is returned for its place and within its time", () => {
    expect(signerAt(NOW).verify("place", signed, 0)).toBe("text\nof two lines");
    expect(signerAt(NOW + 5_000).verify("place", signed, 5_000)).toBe("text\nof two lines");
    // Clocks of other machines may differ by so much.
    expect(signerAt(NOW - 2_000).verify("place", signed, 0)).toBe("text\nof two lines");
  });

  test.each([
    ["of another place", () => signerAt(NOW).verify("other place", signed, 0), "forged"],
    ["of another key", () => signerAt(NOW, "other").verify("place", signed, 0), "forged"],
    ["that was changed", () => signerAt(NOW).verify("place", `${signed}.`, 0), "forged"],
    ["whose time was changed", () => signerAt(NOW).verify("place", signed.replace("17", "18"), 0), "forged"],
    ["that is empty", () => signerAt(NOW).verify("place", "", 0), "forged"],
    ["that is old", () => signerAt(NOW + 5_001).verify("place", signed, 5_000), "expired"],
    ["from the future", () => signerAt(NOW - 2_001).verify("place", signed, 5_000), "expired"],
  ])("%s is refused", (_, verify, reason) => {
    expect(verify).toThrow(expect.objectContaining({ reason }));
  });

  test("has pseudonyms that depend on the key", () => {
    const [first, second] = [signerAt(NOW), signerAt(NOW, "other")].map(({ pseudonymize }) =>
      pseudonymize("192.0.2.7"),
    );
    expect(first).toMatch(/^[\w-]{24}$/);
    expect(first).not.toBe(second);
    expect(signerAt(NOW + 1).pseudonymize("192.0.2.7")).toBe(first);
  });
});

describe("a message of a topic", () => {
  const signer = signerAt(NOW);
  const message: TopicMessage = {
    kind: "reply",
    topic: "prices",
    from: "0123456789abcdef",
    token: 5,
    id: 7,
    text: "a\nb",
  };
  const parse = (printed: string): TopicMessage => parseTopicMessage(signer, "place", printed, 0);

  test.each([message, { ...message, text: "" }, { ...message, text: undefined }])(
    "is read as it was: %j",
    (original) => {
      expect(parse(printTopicMessage(signer, "place", original))).toEqual(original);
    },
  );

  test.each([
    "",
    "null\n",
    "{}\n",
    "not JSON\n",
    '{"kind":"other","topic":"a","from":"0123456789abcdef","token":1,"id":1}\n',
    '{"kind":"reply","topic":"a","from":"x","token":1,"id":1}\n',
    '{"kind":"reply","topic":"a","from":"0123456789abcdef","token":1.5,"id":1}\n',
  ])("that is signed, but is %j, is refused", (body) => {
    expect(() => parse(signer.sign("place", body))).toThrow(expect.objectContaining({ reason: "malformed" }));
  });

  test("that is longer than any is refused before anything is computed", () => {
    expect(() => parse("x".repeat(MAX_MESSAGE_CHARS + 1))).toThrow(expect.objectContaining({ reason: "oversized" }));
  });
});
