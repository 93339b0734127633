import { describe, expect, test } from "vitest";
import { AttestationClient } from "../../../src/hop/attestation-client.js";
import { UpstreamError } from "../../../src/resilience/http-client/upstream-error.js";

type Share = NonNullable<ConstructorParameters<typeof AttestationClient>[0]["share"]>;

function setup(answers: readonly unknown[], share?: Share) {
  let time = 0;
  const requests: string[] = [];
  const attestations = new AttestationClient({
    baseUrl: "https://attestations.example",
    fetchJson: async (url) => {
      requests.push(url);
      const answer = answers[requests.length - 1];
      if (answer instanceof Error) throw answer;
      return answer;
    },
    now: () => time,
    share,
  });
  const find = (hash = "0x12") => attestations.find(hash);
  return { attestations, find, requests, pass: (ms: number) => (time += ms) };
}

const notFound = new UpstreamError("answered 404", { status: 404 });
const unavailable = new UpstreamError("answered 503", { status: 503 });
const failed = {
  reason: "UPSTREAM_UNAVAILABLE",
  message: "the CCTP attestation source does not respond",
  cause: unavailable,
};

describe("AttestationClient", () => {
  test("requests an attestation once, since it never changes", async () => {
    const { find, requests, pass } = setup([{ attestation: "0xab" }]);
    expect(await find()).toBe("0xab");
    pass(1e9);
    expect(await find()).toBe("0xab");
    expect(requests).toEqual(["https://attestations.example/v1/attestations/0x12"]);
  });

  test.each([
    ["not found", notFound],
    ["pending", { attestation: "PENDING" }],
  ])("returns undefined where the attestation is %s, and requests it again after a minute", async (_, answer) => {
    const { find, requests, pass } = setup([answer, { attestation: "0xab" }]);
    expect(await find()).toBeUndefined();
    expect(await find()).toBeUndefined();
    expect(requests).toHaveLength(1);
    pass(60_000);
    // The stale value is served during the request.
    expect(await find()).toBeUndefined();
    await expect.poll(() => find()).toBe("0xab");
    expect(requests).toHaveLength(2);
  });

  test("asks for a transfer's attestation as it is now: absence for ten seconds, failures for one", async () => {
    const answers = [notFound, unavailable, { attestation: "PENDING" }, { attestation: "0xAB" }];
    const { attestations, requests, pass } = setup(answers);
    const find = () => attestations.findCurrent("0x12", new AbortController().signal);
    pass(1);
    expect(await find()).toBeUndefined();
    expect(await find()).toBeUndefined();
    expect(requests).toHaveLength(1);
    pass(10_001);
    await expect(find()).rejects.toMatchObject(failed);
    await expect(find()).rejects.toMatchObject(failed);
    expect(requests).toHaveLength(2);
    pass(1_001);
    expect(await find()).toBeUndefined();
    pass(10_001);
    expect(await find()).toBe("0xab");
    pass(1e9);
    expect(await find()).toBe("0xab");
    expect(requests).toHaveLength(4);
  });

  test("takes an attestation that another process has loaded", async () => {
    const shared: [string, number][] = [];
    const { find, requests } = setup([notFound], (hash, ttlMs) => {
      shared.push([hash, ttlMs]);
      return async () => ({ value: "0xab", readAt: 0 });
    });
    expect(await find()).toBe("0xab");
    expect(shared).toEqual([["0x12", 60_000]]);
    expect(requests).toEqual([]);
  });

  test.each([
    ["null", null],
    ["a list", []],
    ["no attestation", {}],
    ["a number", { attestation: 12 }],
    ["invalid hex", { attestation: "0xzz" }],
    ["an empty attestation", { attestation: "0x" }],
    ["an unknown status", { attestation: "soon" }],
  ])("fails when the source returns %s", async (_, answer) => {
    const { find, pass } = setup([answer, { attestation: "0xab" }]);
    await expect(find()).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    pass(1_000);
    expect(await find()).toBe("0xab");
  });

  test("shares a failing request between callers, and retries after a second", async () => {
    const { find, requests, pass } = setup([unavailable, { attestation: "0xab" }]);
    const both = await Promise.allSettled([find(), find()]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(find()).rejects.toMatchObject(failed);
    expect(requests).toHaveLength(1);
    pass(1_000);
    expect(await find()).toBe("0xab");
  });

  test("keeps serving the absence of an attestation while the source fails", async () => {
    const { find, pass } = setup([notFound, unavailable]);
    expect(await find()).toBeUndefined();
    pass(60_000);
    expect(await find()).toBeUndefined();
    expect(await find()).toBeUndefined();
  });
});

describe("an outage of the attestation source", () => {
  test("is noticed within a minute, and its end too", async () => {
    const { attestations, requests, pass } = setup([{ attestation: "0xab" }, unavailable, { attestation: "0xab" }]);
    expect(await attestations.findOutage()).toBeUndefined();
    expect(await attestations.findOutage()).toBeUndefined();
    expect(requests).toHaveLength(1);
    pass(60_000);
    expect(await attestations.findOutage()).toBe("does not respond");
    expect(await attestations.findOutage()).toBe("does not respond");
    expect(requests).toHaveLength(2);
    pass(1_000);
    await expect.poll(() => attestations.findOutage()).toBeUndefined();
  });

  test.each([
    ["answers 404 to what it has attested", notFound, "does not know messages that it has attested"],
    ["has not attested it any more", { attestation: "PENDING" }, "does not know messages that it has attested"],
    ["does not respond", unavailable, "does not respond"],
  ])("is one where it %s", async (_, answer, outage) => {
    const { attestations, requests } = setup([answer]);
    expect(await attestations.findOutage()).toBe(outage);
    expect(requests).toEqual([expect.stringMatching(/v1\/attestations\/0x[0-9a-f]{64}$/)]);
    // Only what quotes need counts as a failing source.
    expect(attestations.health().state).toBe("unknown");
  });

  test.each([
    ["how it fails", unavailable, "answered 503"],
    ["that its answer has no usable form", { attestation: 5 }, "the attestation has an unexpected format"],
    ["that it has forgotten what it attested", notFound, "does not know messages that it has attested"],
  ])("tells operators %s", async (_, answer, message) => {
    await expect(setup([answer]).attestations.check()).rejects.toThrow(message);
  });

  test("is none for operators where the source has what it attested", async () => {
    await expect(setup([{ attestation: "0xab" }]).attestations.check()).resolves.toBeUndefined();
  });
});

test("reports the health of the last requests", async () => {
  const { attestations, find, pass } = setup([notFound, unavailable]);
  expect(attestations.health()).toEqual({ state: "unknown", ageMs: undefined });
  await find();
  pass(7);
  // 404 is a valid response.
  expect(attestations.health()).toEqual({ state: "ok", ageMs: 7 });
  await expect(find("0x34")).rejects.toThrow();
  expect(attestations.health()).toEqual({ state: "failing", ageMs: 7, failure: "answered 503" });
});
