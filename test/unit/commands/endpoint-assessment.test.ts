import { describe, expect, test } from "vitest";
import type { EndpointReport } from "../../../src/chain/diagnose/diagnose-endpoints.js";
import { assessEndpoint, type EndpointProblem } from "../../../src/commands/endpoint-assessment.js";

const good: EndpointReport = {
  name: "rpc.example#a1b2c3",
  chainId: 10,
  head: { number: 1_000, ageSeconds: 3_599 },
  lag: { blocks: 15, seconds: 29 },
  latencyMs: 499,
  contracts: "together",
  batch: 10,
  logBlocks: 10_000,
};
const expected = { chainId: 10, hasMulticall: true };

describe("the verdict", () => {
  test("on one that is good enough", () => {
    expect(assessEndpoint(good, expected)).toEqual({ problems: [], isUsable: true, summary: "ok" });
  });

  test.each<[Partial<EndpointReport>, EndpointProblem, string]>([
    [{ lag: { blocks: 16, seconds: 0 } }, "lags", "lags: asked last"],
    [{ lag: { blocks: 0, seconds: 30 } }, "lags", "lags: asked last"],
    [{ head: { number: 1, ageSeconds: -61 } }, "wrong clock", "block of the future: its clock is wrong, or this one"],
    [{ latencyMs: 500 }, "slow", "slow: another is asked beside it"],
    [{ batch: 1 }, "no batch", "no batch: more requests"],
    [{ batch: 5 }, "no batch", "batches of 5: more requests"],
    [{ contracts: "singly" }, "no multicall", "no Multicall3: more requests"],
    [{ logBlocks: 0 }, "few logs", "searches no logs: no look-ups"],
    [{ logBlocks: 9_999 }, "few logs", "few logs at once: slow look-ups"],
  ])("%j: %s, and is used", (difference, problem, summary) => {
    expect(assessEndpoint({ ...good, ...difference }, expected)).toEqual({
      problems: [problem],
      isUsable: true,
      summary,
    });
  });

  test.each<[Partial<EndpointReport>, EndpointProblem, string]>([
    [{ chainId: 1 }, "wrong chain", "wrong chain: 1, not 10"],
    [{ contracts: "none" }, "no contracts", "calls no contracts: no quotes"],
    [{ head: { number: 1_000, ageSeconds: 3_600 } }, "stalled", "newest block is 60 min old"],
  ])("%j: %s, and is of no use", (difference, problem, summary) => {
    expect(assessEndpoint({ ...good, ...difference }, expected)).toEqual({
      problems: [problem],
      isUsable: false,
      summary,
    });
  });

  test.each(["latencyMs", "contracts", "batch", "logBlocks"] as const)("without %s is not sure", (name) => {
    const { [name]: _, ...report } = good;
    expect(assessEndpoint(report, expected)).toMatchObject({ problems: ["unsure"], isUsable: true });
  });

  test("on one that does not answer, or not with a block", () => {
    expect(assessEndpoint({ name: good.name, trouble: "answered 401" }, expected)).toEqual({
      problems: ["unreachable"],
      isUsable: false,
      summary: "unreachable: answered 401",
    });
    const { head: _, ...report } = good;
    expect(assessEndpoint(report, expected)).toMatchObject({ problems: ["unreachable"], isUsable: false });
  });

  test("of a chain without Multicall3 does not miss it", () => {
    expect(assessEndpoint({ ...good, contracts: "singly" }, { ...expected, hasMulticall: false }).summary).toBe("ok");
  });

  test("names all there is, worst first", () => {
    const verdict = assessEndpoint({ ...good, batch: 1, latencyMs: 900, contracts: "none" }, expected);
    expect(verdict.problems).toEqual(["no contracts", "slow", "no batch"]);
    expect(verdict.summary).toBe(
      "calls no contracts: no quotes; slow: another is asked beside it; no batch: more requests",
    );
    expect(verdict.isUsable).toBe(false);
  });
});
