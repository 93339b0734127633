import { describe, expect, test } from "vitest";
import { createAttestationClient } from "../../../../src/hop/cctp/attestation-client.js";
import { UpstreamError } from "../../../../src/resilience/upstream-error.js";

function setup(answers: readonly unknown[]) {
  let time = 0;
  const asked: string[] = [];
  const attestations = createAttestationClient({
    baseUrl: "https://attestations.example",
    fetchJson: async (url) => {
      asked.push(url);
      const answer = answers[asked.length - 1];
      if (answer instanceof Error) throw answer;
      return answer;
    },
    now: () => time,
  });
  const find = (hash = "0x12") => attestations.find(hash);
  return { attestations, find, asked, pass: (ms: number) => (time += ms) };
}

const notFound = new UpstreamError("answered 404", { status: 404 });

describe("attestations", () => {
  test("are asked for once, since they never change", async () => {
    const { find, asked, pass } = setup([{ attestation: "0xab" }]);
    expect(await find()).toBe("0xab");
    pass(1e9);
    expect(await find()).toBe("0xab");
    expect(asked).toEqual(["https://attestations.example/v1/attestations/0x12"]);
  });

  test.each([
    ["not found", notFound],
    ["pending", { attestation: "PENDING" }],
  ])("that are %s are none, and asked for again after a while", async (_, answer) => {
    const { find, asked, pass } = setup([answer, { attestation: "0xab" }]);
    expect(await find()).toBeUndefined();
    expect(await find()).toBeUndefined();
    expect(asked).toHaveLength(1);
    pass(60_000);
    // The last answer stands while the source is asked again.
    expect(await find()).toBeUndefined();
    await expect.poll(() => find()).toBe("0xab");
    expect(asked).toHaveLength(2);
  });

  test.each([
    ["null", null],
    ["a list", []],
    ["no attestation", {}],
    ["a number", { attestation: 12 }],
    ["bytes that are none", { attestation: "0xzz" }],
    ["no bytes", { attestation: "0x" }],
    ["a word", { attestation: "soon" }],
  ])("are not known to be none where the source says %s", async (_, answer) => {
    const { find, pass } = setup([answer, { attestation: "0xab" }]);
    await expect(find()).rejects.toMatchObject({ reason: "UPSTREAM_UNAVAILABLE" });
    pass(1_000);
    expect(await find()).toBe("0xab");
  });

  test("a source that fails is no answer, is asked once for all callers, and again after a second", async () => {
    const { find, asked, pass } = setup([new UpstreamError("answered 503", { status: 503 }), { attestation: "0xab" }]);
    const both = await Promise.allSettled([find(), find()]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(find()).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "the CCTP attestation source gives no answer",
    });
    expect(asked).toHaveLength(1);
    pass(1_000);
    expect(await find()).toBe("0xab");
  });

  test("that there is none is still known where the source fails later", async () => {
    const { find, pass } = setup([notFound, new UpstreamError("answered 503", { status: 503 })]);
    expect(await find()).toBeUndefined();
    pass(60_000);
    expect(await find()).toBeUndefined();
    expect(await find()).toBeUndefined();
  });
});

test("the health of the source is that of its last answers", async () => {
  const { attestations, find, pass } = setup([notFound, new UpstreamError("answered 503", { status: 503 })]);
  expect(attestations.health()).toEqual({ state: "unknown", ageMs: undefined });
  await find();
  pass(7);
  // That there is none is an answer.
  expect(attestations.health()).toEqual({ state: "ok", ageMs: 7 });
  await expect(find("0x34")).rejects.toThrow();
  expect(attestations.health()).toEqual({ state: "failing", ageMs: 7 });
});
