import { expect, onTestFinished, test, vi } from "vitest";
import { checkClock, checkDependencies } from "../../../src/commands/check-dependencies.js";
import { loadConfig } from "../../../src/config/config.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";

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

test.each<[string, number, string, string]>([
  ["refuses the key", 401, "{}", "answered 401: the key is not accepted"],
  ["answers a page", 200, "<!doctype html>", "answered an HTML page"],
  ["throttles", 429, "", "answered 429: too many requests"],
])(
  "the source of attestations that %s is reported with how it fails, and without its URL",
  async (_, status, body, detail) => {
    const stub = await startHttpStub((_, response) => response.writeHead(status).end(body));
    onTestFinished(() => stub.close());
    const off = { ASSETS_URL: "off", EXPLORER_API_URL: "off", PRICE_SOURCES: "assets" };
    const config = loadConfig({ ...off, ATTESTATION_API_URL: `${stub.url}/secret-key` });
    const reports = await checkDependencies(config, "mainnet", 60_000);
    const report = reports.find(({ name }) => name === "attestations");
    expect(report).toEqual({ name: "attestations", state: "failing", detail, remedy: "ATTESTATION_API_URL=off" });
  },
);

test("open files are counted without a report, which would resolve the host names of all peers meanwhile", async () => {
  const getReport = vi.spyOn(process.report, "getReport");
  const off = { ASSETS_URL: "off", EXPLORER_API_URL: "off", ATTESTATION_API_URL: "off" };
  const closed = { RPC_URL_ETHEREUM: "http://127.0.0.1:1", RPC_URL_ARBITRUM: "http://127.0.0.1:1" };
  const reports = await checkDependencies(loadConfig({ ...off, ...closed }), "mainnet", 1);
  expect(reports.map(({ name }) => name)).toContain("open files");
  expect(getReport).not.toHaveBeenCalled();
});
