import { describe, expect, test } from "vitest";
import { type AttestationClientOptions, createAttestationClient } from "../../../../src/hop/cctp/attestation-client.js";
import { UpstreamError } from "../../../../src/resilience/upstream-error.js";

type Share = NonNullable<AttestationClientOptions["share"]>;

function setup(answers: readonly unknown[], share?: Share) {
  let time = 0;
  const requests: string[] = [];
  const attestations = createAttestationClient({
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

describe("createAttestationClient", () => {
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

  test("keeps an attestation when another process has not found it, and when another one asks for it later", async () => {
    const hash = `0x${"12".repeat(32)}`;
    let findCache: Parameters<Share>[0] = () => undefined;
    const { find, requests, pass } = setup([{ attestation: "0xab" }, notFound], (find) => {
      findCache = find;
      return () => ({ request: async () => undefined, publish() {} });
    });
    expect(await find(hash)).toBe("0xab");
    pass(3_600_000);
    findCache(hash)?.offer({ value: undefined, readAt: 3_600_000 });
    expect(await find(hash)).toBe("0xab");
    expect((await findCache(hash)?.findNewer(undefined))?.value).toBe("0xab");
    expect(await find(hash)).toBe("0xab");
    expect(requests).toHaveLength(1);
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
    const { find, requests, pass } = setup([
      new UpstreamError("answered 503", { status: 503 }),
      { attestation: "0xab" },
    ]);
    const both = await Promise.allSettled([find(), find()]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(find()).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the CCTP attestation source does not respond",
    });
    expect(requests).toHaveLength(1);
    pass(1_000);
    expect(await find()).toBe("0xab");
  });

  test("keeps serving the absence of an attestation while the source fails", async () => {
    const { find, pass } = setup([notFound, new UpstreamError("answered 503", { status: 503 })]);
    expect(await find()).toBeUndefined();
    pass(60_000);
    expect(await find()).toBeUndefined();
    expect(await find()).toBeUndefined();
  });
});

test("reports the health of the last requests", async () => {
  const { attestations, find, pass } = setup([notFound, new UpstreamError("answered 503", { status: 503 })]);
  expect(attestations.health()).toEqual({ state: "unknown", ageMs: undefined });
  await find();
  pass(7);
  // 404 is a valid response.
  expect(attestations.health()).toEqual({ state: "ok", ageMs: 7 });
  await expect(find("0x34")).rejects.toThrow();
  expect(attestations.health()).toEqual({ state: "failing", ageMs: 7 });
});
