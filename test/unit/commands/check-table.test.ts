import { expect, test } from "vitest";
import type { EndpointReport } from "../../../src/chain/diagnose/diagnose-endpoints.js";
import { type DependencyReport, formatCheckTable, suggestRpcBudget } from "../../../src/commands/check-table.js";
import { assessEndpoint } from "../../../src/commands/endpoint-assessment.js";

const healthyReport: EndpointReport = {
  name: "optimism[1]#a1b2c3",
  chainId: 10,
  head: { number: 123_456_789, ageSeconds: 1.84 },
  lag: { blocks: 0, seconds: 0 },
  latencyMs: 41.6,
  contracts: "together",
  batch: 50,
  logBlocks: Number.POSITIVE_INFINITY,
};

const chain = (slug: string, chainId: number, reports: readonly EndpointReport[]) => ({
  slug,
  chainId,
  endpoints: reports.map((report) => ({
    report,
    assessment: assessEndpoint(report, { chainId, multicallAddress: "0x" }),
  })),
});

const DEPENDENCIES: readonly DependencyReport[] = [
  { name: "settings_mainnet", state: "failing", detail: "DNS lookup failed", isNeeded: true, remedy: "ASSETS_URL=off" },
  { name: "index", state: "off" },
];

test("formats tables with a summary and lines to copy", () => {
  const stalledHead = { name: "nova[1]#00ff00", chainId: 42170, head: { number: 7, ageSeconds: 5_400 } };
  const chains = [
    chain("optimism", 10, [
      healthyReport,
      { ...healthyReport, name: "optimism[2]#123456", batch: 20, logBlocks: 2_000 },
    ]),
    chain("base", 8453, [
      { name: "base[1]#a1b2c3", chainId: 10 },
      { name: "base[2]#ffffff", trouble: "answered 401" },
    ]),
    chain("nova", 42170, [{ ...healthyReport, ...stalledHead, batch: 1, logBlocks: 0 }]),
  ];
  expect(formatCheckTable(chains, DEPENDENCIES, "RPC_URL_").split("\n")).toEqual([
    "chain     endpoint            chain id       head     age  lag  latency  batch  logs  verdict",
    "optimism  optimism[1]#a1b2c3        10  123456789   1.8 s    0    42 ms    50+   all  ok",
    "optimism  optimism[2]#123456        10  123456789   1.8 s    0    42 ms     20  2000  small log ranges: slow transfer lookups",
    "base      base[1]#a1b2c3            10          -       -    -        -      -     -  wrong chain: 10, not 8453",
    "base      base[2]#ffffff             -          -       -    -        -      -     -  unreachable: answered 401",
    "nova      nova[1]#00ff00         42170          7  90 min    0    42 ms     no    no  latest block is 90 min old; no batches: more requests; no log search: no transfer lookups",
    "",
    "also used         state    detail",
    "settings_mainnet  failing  DNS lookup failed",
    "index             off",
    "",
    "3 chains, 5 endpoints: 1 ok, 1 with warnings, 3 unusable.",
    "base has no usable endpoint: add one to RPC_URL_BASE.",
    "nova has no usable endpoint: add one to RPC_URL_NOVA.",
    "",
    "To copy:",
    "  RPC_URL_BASE=https://...",
    "  RPC_URL_NOVA=https://...",
    "  ASSETS_URL=off",
    "",
  ]);
});

test.each([
  [-3, "0.0 s"],
  [9.96, "10.0 s"],
  [12.4, "12 s"],
  [119, "119 s"],
  [7_190, "120 min"],
  [7_200, "2 h"],
  [10_000, "3 h"],
  [400_000, "5 d"],
])("formats an age of %d seconds as %s", (ageSeconds, text) => {
  const report = { ...healthyReport, head: { number: 1, ageSeconds } };
  expect(formatCheckTable([chain("optimism", 10, [report])], [], "")).toContain(`  ${text}  `);
});

test("suggests a budget of calls for the endpoint that throttles first, unless it is unusable", () => {
  const throttled = (name: string, callsAtOnce: number): EndpointReport => ({ ...healthyReport, name, callsAtOnce });
  const unusable = { ...throttled("optimism[3]#ffffff", 1), chainId: 1 };
  const chains = [
    chain("optimism", 10, [throttled("optimism[1]#a1b2c3", 30), throttled("optimism[2]#123456", 12), unusable]),
  ];
  expect(suggestRpcBudget(chains)).toEqual({ endpoint: "optimism[2]#123456", callsAtOnce: 12, callsPerSecond: 9 });
  expect(formatCheckTable(chains, DEPENDENCIES, "RPC_URL_")).toContain(
    "optimism[2]#123456 throttles: it answered 12 of 40 calls at once. RPC_BUDGET=9 stays below that.\n",
  );
  expect(
    suggestRpcBudget([chain("optimism", 10, [throttled("optimism[1]#a1b2c3", 40), healthyReport])]),
  ).toBeUndefined();
  expect(suggestRpcBudget([chain("optimism", 10, [throttled("optimism[1]#a1b2c3", 0)])])?.callsPerSecond).toBe(1);
});
