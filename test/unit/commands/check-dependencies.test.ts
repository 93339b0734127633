import { expect, test, vi } from "vitest";
import { checkClock, checkDependencies } from "../../../src/commands/check-dependencies.js";
import { loadConfig } from "../../../src/config/config.js";

const chainsWith = (...ages: readonly (number | undefined)[]) =>
  ages.map((ageSeconds, index) => {
    const head = ageSeconds === undefined ? {} : { head: { number: 1, ageSeconds } };
    const report = { name: `chain${index}[1]#000000`, ...head };
    return {
      slug: `chain${index}`,
      chainId: index,
      endpoints: [{ report, assessment: { problems: [], isUsable: true, summary: "ok" } }],
    };
  });

test.each([
  ["some blocks are new", [3, 900, undefined], "ok", undefined],
  ["a block is some seconds ahead", [-20, 4], "ok", undefined],
  ["a block is far in the future", [-75.2, -60], "failing", "it is slow: a block is 75 s in the future"],
  ["no block is new", [400, 380], "failing", "it may be fast: the newest of all blocks is 380 s old"],
  ["one chain responds", [400, undefined], "off", "too few chains to compare it with"],
])("the clock where %s", (_, ages, state, detail) => {
  const report = checkClock(chainsWith(...ages), { maxBlockAgeMs: undefined });
  expect([report.state, report.detail]).toEqual([state, detail]);
});

test("the clock is not compared where blocks may have any age", () => {
  expect(checkClock(chainsWith(400, 400), { maxBlockAgeMs: 0 }).state).toBe("off");
});

test("open files are counted without a report, which would resolve the host names of all peers meanwhile", async () => {
  const getReport = vi.spyOn(process.report, "getReport");
  const off = { ASSETS_URL: "off", EXPLORER_API_URL: "off", ATTESTATION_API_URL: "off" };
  const closed = { RPC_URL_ETHEREUM: "http://127.0.0.1:1", RPC_URL_ARBITRUM: "http://127.0.0.1:1" };
  const reports = await checkDependencies(loadConfig({ ...off, ...closed }), "mainnet", 1);
  expect(reports.map(({ name }) => name)).toContain("open files");
  expect(getReport).not.toHaveBeenCalled();
});
