import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { findTool } from "../../support/find-tool.js";
import { buildService } from "../../support/service/build-service.js";
import { startGatewayForTest } from "../../support/service/in-process-gateway.js";
import { scrapeMetrics } from "../../support/service/metrics-scrape.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { startServiceProcess } from "../../support/service/service-process.js";

// The clock of the machine is wrong by 20 minutes: twice as much as a price may be old. The network is the test's own: new
// blocks would make transfers of other tests final.

const OFFSET_SECONDS = 20 * 60;
const PATIENCE = { timeout: 120_000, interval: 200 };
const DEADLINE_SECONDS = 7 * 24 * 3600;

const { assetsUrl } = inject("network");
const realNow = Date.now;
const { network, chains } = useOwnNetwork();
let miner: NodeJS.Timeout;

const mineAll = () => Promise.all([...chains.values()].map(({ rpc }) => rpc("evm_mine"))).catch(() => {});

beforeAll(async () => {
  await mineAll();
  miner = setInterval(mineAll, 1_000);
});
afterAll(() => clearInterval(miner));
afterEach(() => {
  vi.restoreAllMocks();
});

const PATHS = [
  ["arbitrum", "optimism"],
  ["optimism", "ethereum"],
  ["ethereum", "arbitrum"],
].map(([from, to]) => `/v1/quote?amount=1000000000000000000&token=ETH&fromChain=${from}&toChain=${to}&slippage=0.5`);

interface Service {
  readonly url: string;
  readonly metricsUrl: string;
}

/** Quotes every route from the first request on, until `/readyz` and a metric tell of the clock. */
async function expectQuotesAndWarning({ url, metricsUrl }: Service, offsetSeconds: number): Promise<void> {
  const failures: unknown[] = [];
  const quoteAll = async (): Promise<void> => {
    for (const path of PATHS) {
      const response = await fetch(`${url}${path}`);
      const body = (await response.json()) as { readonly deadline: number };
      if (response.status !== 200) failures.push(body);
      else if (Math.abs(body.deadline - DEADLINE_SECONDS - realNow() / 1000) > 60) failures.push(body.deadline);
    }
  };
  await vi.waitFor(async () => {
    await quoteAll();
    const readiness = (await (await fetch(`${url}/readyz`)).json()) as { readonly reason?: string };
    expect(readiness.reason).toMatch(/the clock of this machine is wrong by (119\d|120\d)(\.\d)? s/);
    const reported = (await scrapeMetrics(metricsUrl)).value("hop_gateway_clock_offset_seconds") ?? Number.NaN;
    expect(Math.abs(reported + offsetSeconds)).toBeLessThan(10);
  }, PATIENCE);
  for (let round = 0; round < 10; round += 1) await quoteAll();
  expect(failures).toEqual([]);
}

const getEnvironment = (more: Readonly<Record<string, string>>) => ({
  ...network.environment,
  // The price document of the shared network comes from a process with the right time.
  ASSETS_URL: assetsUrl,
  MAX_BLOCK_AGE_MS: "120000",
  ...more,
});

describe.each([
  ["ahead", OFFSET_SECONDS],
  ["behind", -OFFSET_SECONDS],
])("a clock that is 20 minutes %s", (_, offsetSeconds) => {
  test.each([
    ["the price document", {}],
    ["feeds alone", { ASSETS_URL: "off" }],
  ])(
    "refuses no quote, and is reported: prices from %s",
    async (__, environment) => {
      vi.spyOn(Date, "now").mockImplementation(() => realNow() + offsetSeconds * 1000);
      await expectQuotesAndWarning(await startGatewayForTest(getEnvironment(environment)), offsetSeconds);
    },
    300_000,
  );
});

const library = findTool(
  "libfaketime (Debian: faketime)",
  ...["x86_64", "aarch64"].map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`),
);

test.skipIf(library === undefined)(
  "a process on a machine whose clock is 20 minutes ahead quotes, and warns",
  async () => {
    const service = await startServiceProcess(
      await buildService(),
      getEnvironment({ LD_PRELOAD: library ?? "", FAKETIME: "+20m", FAKETIME_DONT_FAKE_MONOTONIC: "1" }),
    );
    try {
      await expectQuotesAndWarning(service, OFFSET_SECONDS);
      expect(service.output().stdout).toContain(
        "the clock of this machine is wrong; ages, prices and deadlines are corrected",
      );
    } finally {
      service.signal("SIGTERM");
      await service.exitCode;
    }
  },
  300_000,
);
