import { describe, expect, test } from "vitest";
import type { EndpointReport } from "../../../src/chain/diagnose/diagnose-endpoints.js";
import { assessEndpoint, type EndpointProblem } from "../../../src/commands/endpoint-assessment.js";

const healthyReport: EndpointReport = {
  name: "optimism[1]#a1b2c3",
  chainId: 10,
  head: { number: 1_000, ageSeconds: 3_599 },
  lag: { blocks: 15, seconds: 29 },
  latencyMs: 499,
  contracts: "together",
  batch: 10,
  logBlocks: 10_000,
};
const expected = { chainId: 10, multicallAddress: "0x" };

describe("assessEndpoint", () => {
  test("reports no problem for an endpoint within all thresholds", () => {
    expect(assessEndpoint(healthyReport, expected)).toEqual({ problems: [], isUsable: true, summary: "ok" });
  });

  test.each<[Partial<EndpointReport>, EndpointProblem, string]>([
    [{ lag: { blocks: 16, seconds: 0 } }, "lags", "lags: used last"],
    [{ lag: { blocks: 0, seconds: 30 } }, "lags", "lags: used last"],
    [
      { head: { number: 1, ageSeconds: -61 } },
      "wrong clock",
      "latest block is in the future: clock of the endpoint or of this machine is wrong",
    ],
    [{ latencyMs: 500 }, "slow", "slow: requests are hedged"],
    [{ batch: 1 }, "no batch", "no batches: more requests"],
    [{ batch: 5 }, "no batch", "batches of 5: more requests"],
    [{ contracts: "singly" }, "no multicall", "no Multicall3: more requests"],
    [{ logBlocks: 0 }, "few logs", "no log search: no transfer lookups"],
    [{ logBlocks: 9_999 }, "few logs", "small log ranges: slow transfer lookups"],
  ])("%j: %s, but usable", (difference, problem, summary) => {
    expect(assessEndpoint({ ...healthyReport, ...difference }, expected)).toEqual({
      problems: [problem],
      isUsable: true,
      summary,
    });
  });

  test.each<[Partial<EndpointReport>, EndpointProblem, string]>([
    [{ chainId: 1 }, "wrong chain", "wrong chain: 1, not 10"],
    [{ contracts: "none" }, "no contracts", "contract calls fail: no quotes"],
    [{ head: { number: 1_000, ageSeconds: 3_600 } }, "stalled", "latest block is 60 min old"],
  ])("%j: %s, and unusable", (difference, problem, summary) => {
    expect(assessEndpoint({ ...healthyReport, ...difference }, expected)).toEqual({
      problems: [problem],
      isUsable: false,
      summary,
    });
  });

  test.each(["latencyMs", "contracts", "batch", "logBlocks"] as const)("is unsure without %s", (name) => {
    const { [name]: _, ...report } = healthyReport;
    expect(assessEndpoint(report, expected)).toMatchObject({ problems: ["unsure"], isUsable: true });
  });

  test("reports an endpoint as unreachable without a response or a head", () => {
    expect(assessEndpoint({ name: healthyReport.name, trouble: "answered 401" }, expected)).toEqual({
      problems: ["unreachable"],
      isUsable: false,
      summary: "unreachable: answered 401",
    });
    const { head: _, ...report } = healthyReport;
    expect(assessEndpoint(report, expected)).toMatchObject({ problems: ["unreachable"], isUsable: false });
  });

  test("does not require Multicall3 on a chain without it", () => {
    expect(
      assessEndpoint({ ...healthyReport, contracts: "singly" }, { ...expected, multicallAddress: undefined }).summary,
    ).toBe("ok");
  });

  test("lists all problems, most severe first", () => {
    const assessment = assessEndpoint({ ...healthyReport, batch: 1, latencyMs: 900, contracts: "none" }, expected);
    expect(assessment.problems).toEqual(["no contracts", "slow", "no batch"]);
    expect(assessment.summary).toBe(
      "contract calls fail: no quotes; slow: requests are hedged; no batches: more requests",
    );
    expect(assessment.isUsable).toBe(false);
  });
});
